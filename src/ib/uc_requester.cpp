// The requester half of UC: a WQE is done when its last packet has been handed out.
#include "ib/request_operation.h"
#include "ib/uc.h"

namespace urnic::ib {
namespace {

using verbs::SendWqe;
using verbs::Status;
using verbs::WrOp;

// True if this service has a packet for the operation.
bool can_express(WrOp op) {
  return op == WrOp::Send || op == WrOp::SendImm || op == WrOp::Write || op == WrOp::WriteImm;
}

PacketHeader header_of(const QpAttributes& qp, const SendWqes& wqes, const SendPosition& at) {
  const SendWqe& w = wqes.wqe(at.wqe);
  PacketHeader h;
  h.bth.opcode = Opcode(ServiceType::Uc, operation_of(w.op, at.packet, wqes.packets(w)));
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

}  // namespace

bool UcRequester::execute_local_in_turn() {
  const Status status = wqes_.execute_local(next_.wqe);
  if (status != Status::Success) {
    fail(status);
    return false;
  }
  wqes_.queue().start();
  wqes_.wqe(next_.wqe).done = true;
  ++next_.wqe;
  return true;
}

// Finds a new WQE whose first packet may be sent. Executes local operations before it.
bool UcRequester::find_message() {
  while (!wqes_.queue().all_started()) {
    const WrOp op = wqes_.wqe(next_.wqe).op;
    if (verbs::is_local(op)) {
      if (!execute_local_in_turn()) return false;
      continue;
    }
    if (can_express(op) && wqes_.may_touch(next_.wqe)) return true;
    fail(can_express(op) ? Status::LocalProtection : Status::LocalOperation);
    return false;
  }
  return false;
}

bool UcRequester::next_packet(bool may_begin, RequestPacket* out) {
  if (failed()) return false;
  if (next_.packet == 0 && (!may_begin || !find_message())) return false;
  SendWqe& w = wqes_.wqe(next_.wqe);
  out->length = wqes_.bytes(w, next_.packet);
  if (!wqes_.gather(next_.wqe, next_.packet * wqes_.pmtu(), out->length, out->pieces.data(),
                    &out->count)) {
    fail(Status::LocalProtection);
    return false;
  }
  out->header = header_of(*qp_, wqes_, next_);
  if (next_.packet == 0) begin(w);
  ++next_.psn;
  if (++next_.packet == wqes_.packets(w)) {
    w.done = true;  // UC has no response (IB-98)
    next_.packet = 0;
    ++next_.wqe;
  }
  return true;
}

}  // namespace urnic::ib
