// The requester half of UD: each WQE is one packet.
#include "ib/ud.h"

namespace urnic::ib {
namespace {

using verbs::SendWqe;
using verbs::Status;
using verbs::WrOp;

constexpr std::uint32_t kOwnQkey = 1u << 31;

PacketHeader header_of(const QpAttributes& qp, const SendWqes& wqes, const SendPosition& at) {
  const SendWqe& w = wqes.wqe(at.wqe);
  PacketHeader h;
  const bool immediate = w.op == WrOp::SendImm;
  h.bth.opcode = Opcode(ServiceType::Ud, immediate ? Operation::SendOnlyImm : Operation::SendOnly);
  h.bth.pkey = qp.pkey;
  h.bth.dest_qp = static_cast<std::uint32_t>(w.remote_address) & kMask24;
  h.bth.psn = at.psn;
  h.bth.solicited = (w.flags & verbs::kSolicited) != 0;
  h.deth = {(w.key & kOwnQkey) != 0 ? qp.qkey : w.key, qp.number};
  if (immediate) {
    h.immediate = static_cast<std::uint32_t>(wqes.queue().operands(at.wqe).immediate);
  }
  return h;
}

}  // namespace

// Finds a new WQE that may be sent. Skips those that are never sent.
bool UdRequester::find_message() {
  while (!wqes_.queue().all_started()) {
    SendWqe& w = wqes_.wqe(next_.wqe);
    if (w.op != WrOp::Send && w.op != WrOp::SendImm) {
      fail(Status::LocalOperation);
      return false;
    }
    if (!wqes_.may_touch(next_.wqe)) {
      fail(Status::LocalProtection);
      return false;
    }
    if (w.length <= wqes_.pmtu()) return true;
    ++too_long_;
    wqes_.queue().start();
    w.done = true;
    ++next_.wqe;
  }
  return false;
}

bool UdRequester::next_handle(bool may_begin, std::uint32_t* address_handle) {
  if (failed() || !may_begin || !find_message()) return false;
  *address_handle = static_cast<std::uint32_t>(wqes_.wqe(next_.wqe).remote_address >> 32);
  return true;
}

bool UdRequester::next_packet(bool may_begin, RequestPacket* out, std::uint32_t* address_handle) {
  if (!next_handle(may_begin, address_handle)) return false;
  SendWqe& w = wqes_.wqe(next_.wqe);
  out->length = w.length;
  if (!wqes_.gather(next_.wqe, 0, w.length, out->pieces.data(), &out->count)) {
    fail(Status::LocalProtection);
    return false;
  }
  out->header = header_of(*qp_, wqes_, next_);
  begin(w);
  w.done = true;
  ++next_.psn;
  ++next_.wqe;
  return true;
}

}  // namespace urnic::ib
