#include "sim/pair.h"

#include <algorithm>

#include "port/memory_port.h"

namespace urnic::sim {

struct Pair::Wire {};

Pair::Pair(const PairOptions& options) : wire_(std::make_unique<Wire>()) {
  port::MemoryPairOptions ports;
  ports.max_frame = options.mtu + 18;
  auto [a, b] = port::make_memory_pair(ports);
  engine::Options left = options.left, right = options.right;
  left.addresses = {"10.0.0.1/24", "fd00::1/64"};
  right.addresses = {"10.0.0.2/24", "fd00::2/64"};
  left.mtu = right.mtu = options.mtu;
  left.seed = options.seed * 2 + 1;
  right.seed = options.seed * 2 + 2;
  left_ = std::make_unique<Node>(left, std::move(a));
  right_ = std::make_unique<Node>(right, std::move(b));
}

Pair::~Pair() = default;

bool Pair::step() {
  const bool a = left_->engine().poll(now_);
  const bool b = right_->engine().poll(now_);
  return a || b;
}

Instant Pair::next_deadline() const {
  return earlier(left_->engine().next_deadline(), right_->engine().next_deadline());
}

bool Pair::run_until(const std::function<bool()>& done, Duration limit) {
  const Instant until = now_ + limit;
  for (;;) {
    if (done()) return true;
    if (step()) {
      // Work takes time: a frame is a microsecond away from its answer.
      now_ = now_ + Duration::us(1);
      continue;
    }
    const Instant next = next_deadline();
    if (next > until) {
      now_ = until;
      step();
      return done();
    }
    now_ = std::max(next, now_ + Duration::ns(1));
  }
}

void Pair::run_for(Duration d) {
  run_until([] { return false; }, d);
}

bool Pair::connect(verbs::QueuePair& left, verbs::QueuePair& right,
                   const std::function<void(engine::ConnectParams&)>& adjust_left,
                   const std::function<void(engine::ConnectParams&)>& adjust_right,
                   const std::string& address) {
  const auto to = SocketAddress::parse(address);
  if (!to) return false;
  Error error;
  right_->engine().listen(to->port, 16, &error);
  engine::ConnectParams params = left_->engine().default_params();
  if (adjust_left) adjust_left(params);
  if (!left_->engine().connect(left, *to, params, now_)) return false;
  using Kind = engine::CmEvent::Kind;
  bool accepted = false;
  const auto handle = [&] {
    auto& events = right_->events;
    for (auto it = events.begin(); it != events.end();) {
      if (it->kind != Kind::ConnectRequest) {
        ++it;
        continue;
      }
      const auto id = it->connection;
      it = events.erase(it);
      engine::ConnectParams answer = right_->engine().default_params();
      if (adjust_right) adjust_right(answer);
      accepted = right_->engine().accept(id, right, answer, now_).ok();
      return;
    }
  };
  const bool up = run_until(
      [&] {
        handle();
        return accepted && left.state == verbs::QpState::Rts && right.state == verbs::QpState::Rts;
      },
      Duration::s(30));
  return up;
}

}  // namespace urnic::sim
