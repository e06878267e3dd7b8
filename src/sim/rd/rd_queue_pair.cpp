#include "sim/rd/rd_queue_pair.h"

namespace urnic::sim {

using verbs::SendWqe;
using verbs::Status;
using verbs::WrOp;

verbs::Post RdSender::post(const verbs::SendWr& wr, const RdTo& to) {
  const std::uint32_t index = wqes_.queue().tail();
  const verbs::Post posted = wqes_.queue().post(wr);
  if (posted == verbs::Post::Ok) wqes_.queue().part<RdTo>(index) = to;
  return posted;
}

// False for operations that RD has no packet for: masked atomics, a swap without compare, SEND with
// Invalidate. Also false for a READ or atomic if none may be outstanding.
bool RdSender::can_express(std::uint32_t index) const {
  const SendWqe& w = wqes_.wqe(index);
  if (w.op == WrOp::SendInv || w.op == WrOp::Swap) return false;
  if (verbs::awaits_response(w.op) && qp_->initiator_depth == 0) return false;
  if (!verbs::is_atomic(w.op)) return true;
  const verbs::AtomicOperands& o = wqes_.queue().operands(index).atomic;
  return w.op == WrOp::FetchAdd ? o.boundaries << 1 == 0
                                : ~o.data_mask == 0 && ~o.compare_mask == 0;
}

bool RdSender::find_message() {
  while (!failed() && !under_way_ && !held_ && !wqes_.queue().all_started()) {
    if (!verbs::is_local(wqes_.wqe(next_.wqe).op)) {
      if (can_express(next_.wqe)) return true;
      fail(Status::LocalOperation);
    } else if (const Status s = wqes_.execute_local(next_.wqe); s != Status::Success) {
      fail(s);
    } else {
      done();
    }
  }
  return false;
}

void RdSender::begin(std::uint32_t pmtu) {
  wqes_ = ib::SendWqes(&wqes_.queue(), &wqes_.memory(), wqes_.who(), pmtu);
  under_way_ = true;
}

void RdSender::done() {
  under_way_ = waits_ = false;
  put_backs_ = 0;
  wqes_.wqe(next_.wqe).done = true;
  wqes_.queue().start();
  ++next_.wqe;
}

void RdSender::put_back(Instant until) {
  under_way_ = false;
  ++put_backs_;
  not_before_ = until;
  waits_ = true;
}

void RdSender::fail(Status status) {
  under_way_ = waits_ = false;
  not_before_ = Instant::from_ns(0);
  put_backs_ = 0;
  ib::HandedOut::fail(status);
}

void RdSender::forget() {
  fail(Status::Flushed);
  wqes_.queue().clear();
  resume();
}

bool takes_rd(const RdQueuePair* to, std::uint32_t rdd, std::uint32_t qkey) {
  return to != nullptr && to->attributes.service == ib::ServiceType::Rd && to->rdd == rdd &&
         verbs::rights(to->state).takes_requests && to->attributes.qkey == qkey;
}

}  // namespace urnic::sim
