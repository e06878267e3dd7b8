#include "sim/sqe_drill.h"

#include "ib/ud.h"

namespace urnic::sim {
namespace {

constexpr std::uint32_t kBytes = 64, kReceive = ib::kGrhBytes + kBytes;
constexpr Duration kGap = Duration::us(100);

}  // namespace

SqeDrill::SqeDrill(Pair& pair, verbs::QueuePair& left, verbs::QueuePair& right,
                   const WorkPlan& plan, RoceObserver& observer)
    : pair_(pair),
      left_(left),
      right_(right),
      observer_(observer),
      time_(plan.sqe_time),
      begin_(Instant::never()),
      next_send_(Instant::never()) {
  if (plan.sqe_begin == Duration()) return;
  begin_ = pair.now() + plan.sqe_begin;
  next_send_ = pair.now();
  bytes_.resize(kReceive);
  constexpr std::uint8_t kRights = verbs::kLocalWrite | verbs::kZeroBased;
  left_key_ = pair.left().register_memory(bytes_.data(), bytes_.size(), kRights);
  right_key_ = pair.right().register_memory(bytes_.data(), bytes_.size(), verbs::kZeroBased);
  handle_ = address_of_left(pair);
}

void SqeDrill::step() {
  if (left_key_ == 0) return;
  take();
  send_back();
  const Instant now = pair_.now();
  if (begin_ <= now) begin();
  if (back_ <= now) {
    back_ = Instant::never();
    roce::QpChange c;
    c.to = verbs::QpState::Rts;
    pair_.left().engine().roce_control().move(left_, c, now);
    observer_.recorder.note("state", "RTS");
  }
  for (const Instant at : {begin_, back_, next_send_}) {
    if (!at.is_never()) pair_.wake_at(at);
  }
}

// No memory region has this key.
void SqeDrill::begin() {
  begin_ = Instant::never();
  const verbs::Sge sge{0, kBytes, 0};
  verbs::SendWr wr;
  wr.wr_id = kBadRequest;
  wr.op = verbs::WrOp::Send;
  wr.flags = verbs::kSignaled;
  wr.sges = {&sge, 1};
  ib::set_destination(&wr, {address_of_right(pair_), right_.number(), kSimQkey});
  pair_.left().post_send(left_, wr, pair_.now());
}

void SqeDrill::send_back() {
  const Instant now = pair_.now();
  if (now < next_send_) return;
  next_send_ = now + kGap;
  const verbs::Sge to{0, kReceive, left_key_}, from{0, kBytes, right_key_};
  pair_.left().post_receive(left_, {0, {&to, 1}}, now);
  verbs::SendWr wr;
  wr.op = verbs::WrOp::Send;
  wr.flags = verbs::kSignaled;
  wr.sges = {&from, 1};
  ib::set_destination(&wr, {handle_, left_.number(), kSimQkey});
  pair_.right().post_send(right_, wr, now);
}

void SqeDrill::take() {
  const bool in_sqe = left_.state == verbs::QpState::Sqe;
  if (in_sqe && observer_.found.sqe == 0) {
    observer_.found.sqe = 1;
    observer_.recorder.note("state", "SQE");
    back_ = pair_.now() + time_;
  }
  verbs::Cqe batch[16];
  while (pair_.right().poll_send(batch) > 0) {
  }
  for (int n; (n = pair_.left().poll_receive(batch)) > 0;) {
    for (int i = 0; i < n; ++i) {
      if (batch[i].completion.status != verbs::Status::Success) continue;
      ++(in_sqe ? observer_.found.came_in_sqe : observer_.found.came_back);
    }
  }
}

}  // namespace urnic::sim
