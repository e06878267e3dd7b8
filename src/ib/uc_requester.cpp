// The requester half of UC: WQEs become packets, and are done with their last.
#include "ib/uc.h"

namespace urnic::ib {
namespace {

using verbs::SendWqe;
using verbs::Status;
using verbs::WrOp;

bool is_write(WrOp op) {
  return op == WrOp::Write || op == WrOp::WriteImm;
}

// What has words with this service.
bool expressible(WrOp op) {
  return is_write(op) || op == WrOp::Send || op == WrOp::SendImm;
}

Operation operation_of(WrOp op, bool first, bool last) {
  const bool immediate = op == WrOp::SendImm || op == WrOp::WriteImm;
  if (is_write(op)) {
    if (!last) return first ? Operation::WriteFirst : Operation::WriteMiddle;
    if (first) return immediate ? Operation::WriteOnlyImm : Operation::WriteOnly;
    return immediate ? Operation::WriteLastImm : Operation::WriteLast;
  }
  if (!last) return first ? Operation::SendFirst : Operation::SendMiddle;
  if (first) return immediate ? Operation::SendOnlyImm : Operation::SendOnly;
  return immediate ? Operation::SendLastImm : Operation::SendLast;
}

PacketHeader header_of(const QpAttributes& qp, const SendWqes& wqes, const SendPosition& at) {
  const SendWqe& w = wqes.wqe(at.wqe);
  PacketHeader h;
  const bool last = at.packet + 1 == wqes.packets(w);
  h.bth.opcode = Opcode(ServiceType::Uc, operation_of(w.op, at.packet == 0, last));
  h.bth.pkey = qp.pkey;
  h.bth.dest_qp = qp.dest_qp;
  h.bth.psn = at.psn;
  const OpcodeRow& row = h.row();
  h.bth.solicited = (w.flags & verbs::kSolicited) != 0 && row.completes_receive();
  if (row.has(kReth)) h.reth = {w.remote_address, w.key, w.length};
  if (row.has(kImmDt)) {
    h.immediate = static_cast<std::uint32_t>(wqes.queue().operands(at.wqe).immediate);
  }
  return h;
}

Status execute_local(const SendWqes& wqes, std::uint32_t index) {
  const verbs::SendQueue& sq = wqes.queue();
  if (sq.wqe(index).op == WrOp::Bind) {
    const bool bound = wqes.memory().bind(sq.window_bind(index), wqes.who());
    return bound ? Status::Success : Status::WindowBind;
  }
  using Invalidate = verbs::MemoryTable::Invalidate;
  return wqes.memory().invalidate(sq.wqe(index).key, wqes.who()) == Invalidate::Ok
             ? Status::Success
             : Status::LocalProtection;
}

}  // namespace

bool UcRequester::pass_local() {
  const Status status = execute_local(wqes_, next_.wqe);
  if (status != Status::Success) {
    fail(status);
    return false;
  }
  wqes_.queue().start();
  wqes_.wqe(next_.wqe).done = true;
  ++next_.wqe;
  return true;
}

// A new WQE whose first packet may leave. Passes local operations on the way.
bool UcRequester::find_message() {
  while (!wqes_.queue().all_started()) {
    const WrOp op = wqes_.wqe(next_.wqe).op;
    if (verbs::is_local(op)) {
      if (!pass_local()) return false;
      continue;
    }
    if (expressible(op) && wqes_.may_touch(next_.wqe)) return true;
    fail(expressible(op) ? Status::LocalProtection : Status::LocalOperation);
    return false;
  }
  return false;
}

bool UcRequester::next_packet(bool may_begin, RequestPacket* out) {
  if (failed()) return false;
  if (next_.packet == 0 && (!may_begin || !find_message())) return false;
  SendWqe& w = wqes_.wqe(next_.wqe);
  out->length = wqes_.octets(w, next_.packet);
  if (!wqes_.gather(next_.wqe, next_.packet * wqes_.pmtu(), out->length, out->pieces.data(),
                    &out->count)) {
    fail(Status::LocalProtection);
    return false;
  }
  out->header = header_of(*qp_, wqes_, next_);
  if (next_.packet == 0) wqes_.queue().start();
  ++next_.psn;
  if (++next_.packet == wqes_.packets(w)) {
    w.done = true;  // nobody will say more about it (IB-98)
    next_.packet = 0;
    ++next_.wqe;
  }
  return true;
}

}  // namespace urnic::ib
