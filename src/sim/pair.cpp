#include "sim/pair.h"

#include <algorithm>

#include "port/memory_port.h"

namespace urnic::sim {

fault::FaultyPort Pair::faulty(port::Port inner, const std::string& plan, std::uint64_t seed,
                               std::size_t records) {
  fault::FaultOptions options;
  options.log_capacity = records;
  if (const auto p = fault::FaultPlan::parse(plan)) options.tx = *p;
  if (plan.find("seed=") == std::string::npos) options.tx.seed = seed;
  options.clock.now_ns = [](void* context) {
    return static_cast<std::uint64_t>(static_cast<Pair*>(context)->now_.ns());
  };
  options.clock.context = this;
  return fault::wrap_faults(std::move(inner), options);
}

Pair::Pair(const PairOptions& options) : seed_(options.seed) {
  port::MemoryPairOptions ports;
  ports.max_frame = options.mtu + 18;
  auto [a, b] = port::make_memory_pair(ports);
  engine::Options left = options.left, right = options.right;
  left.addresses = {"10.0.0.1/24", "fd00::1/64"};
  right.addresses = {"10.0.0.2/24", "fd00::2/64"};
  left.mtu = right.mtu = options.mtu;
  left.seed = options.seed * 2 + 1;
  right.seed = options.seed * 2 + 2;
  fault::FaultyPort one =
      faulty(std::move(a), options.faults_left, options.seed * 2 + 3, options.fault_records);
  fault::FaultyPort two =
      faulty(std::move(b), options.faults_right, options.seed * 2 + 4, options.fault_records);
  left_wire_ = one.control;
  right_wire_ = two.control;
  if (!options.capture.empty()) {
    // Captures what the left engine sends, before the wire changes it, and what it receives.
    if (auto file = fault::CaptureFile::create(options.capture)) {
      capture_ = *file;
      fault::WireClock clock;
      clock.now_ns = [](void* context) {
        return static_cast<std::uint64_t>(static_cast<Pair*>(context)->now_.ns());
      };
      clock.context = this;
      one.port = fault::wrap_capture(std::move(one.port), capture_, "left", clock);
    }
  }
  RoutedPort from_left = wrap_router(std::move(one.port));
  RoutedPort from_right = wrap_router(std::move(two.port));
  left_router_ = from_left.control;
  right_router_ = from_right.control;
  left_ = std::make_unique<Node>(left, std::move(from_left.port), options.completions);
  right_ = std::make_unique<Node>(right, std::move(from_right.port), options.completions);
}

Pair::~Pair() = default;

void Pair::set_faults_left(const std::string& plan) {
  auto p = fault::FaultPlan::parse(plan);
  if (!p) return;
  if (plan.find("seed=") == std::string::npos) p->seed = seed_ * 2 + 3;
  left_wire_->set_plan(fault::Direction::Tx, *p);
}

void Pair::set_faults_right(const std::string& plan) {
  auto p = fault::FaultPlan::parse(plan);
  if (!p) return;
  if (plan.find("seed=") == std::string::npos) p->seed = seed_ * 2 + 4;
  right_wire_->set_plan(fault::Direction::Tx, *p);
}

void Pair::set_path_mtu(std::uint32_t bytes) {
  left_router_->path_mtu = right_router_->path_mtu = bytes;
}

fault::FaultCounters Pair::injected_left() const {
  return left_wire_->counters(fault::Direction::Tx);
}
fault::FaultCounters Pair::injected_right() const {
  return right_wire_->counters(fault::Direction::Tx);
}

std::vector<fault::FaultRecord> Pair::fault_log() const {
  std::vector<fault::FaultRecord> out = left_wire_->records();
  const auto more = right_wire_->records();
  out.insert(out.end(), more.begin(), more.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  return out;
}

void Pair::close_capture() {
  if (capture_) capture_->flush();
}

void Pair::leap(Node& n, Duration d) {
  Duration& ahead = &n == left_.get() ? ahead_left_ : ahead_right_;
  ahead = ahead + d;
}

bool Pair::step() {
  const bool a = left_->engine().poll(now_ + ahead_left_);
  const bool b = right_->engine().poll(now_ + ahead_right_);
  // Polling the right engine may have released frames from its line that the left one has not seen.
  // Without another poll they would wait until some next deadline.
  return a || b || left_->engine().poll(now_ + ahead_left_);
}

Instant Pair::next_deadline() const {
  const Instant wires = earlier(left_wire_->next_release(), right_wire_->next_release());
  const Instant nodes = earlier(left_->engine().next_deadline() - ahead_left_,
                                right_->engine().next_deadline() - ahead_right_);
  return earlier(wake_, earlier(wires, nodes));
}

bool Pair::run_until(const std::function<bool()>& done, Duration limit) {
  const Instant until = now_ + limit;
  for (;;) {
    if (wake_ <= now_) wake_ = Instant::never();
    if (done()) return true;
    if (step()) {
      // Processing takes time: the answer to a frame follows a microsecond later.
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
  (void)right_->engine().iwarp().listen(to->port, 16);
  engine::ConnectParams params = left_->engine().iwarp().default_params();
  if (adjust_left) adjust_left(params);
  if (!left_->engine().iwarp().connect(left, *to, params, now_of(*left_))) return false;
  using Kind = engine::CmEvent::Kind;
  bool accepted = false;
  const auto handle = [&] {
    auto& events = right_->events;
    for (auto it = events.begin(); it != events.end();) {
      if (it->kind != Kind::ConnectRequest) {
        ++it;
        continue;
      }
      const auto id = it->request.id;
      it = events.erase(it);
      engine::ConnectParams answer = right_->engine().iwarp().default_params();
      if (adjust_right) adjust_right(answer);
      accepted = right_->engine().iwarp().accept(id, right, answer, now_of(*right_)).ok();
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
