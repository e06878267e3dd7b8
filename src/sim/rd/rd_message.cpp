#include "sim/rd/rd_message.h"

#include "ib/request_operation.h"

namespace urnic::sim {
namespace {

using verbs::SendWqe;
using verbs::WrOp;

constexpr std::uint32_t kOwnQkey = 1u << 31;

void set_extension(const RdMessage& m, const ib::SendWqes& wqes, ib::PacketHeader* h) {
  const std::uint32_t index = m.sender->index();
  const SendWqe& w = wqes.wqe(index);
  const ib::OpcodeRow& row = h->row();
  if (row.has(ib::kReth)) {
    const std::uint32_t skip = w.op == WrOp::Read ? m.next * wqes.pmtu() : 0;
    h->reth = {w.remote_address + skip, w.key, w.length - skip};
  }
  if (row.has(ib::kAtomicEth)) {
    const verbs::AtomicOperands& o = wqes.queue().operands(index).atomic;
    h->atomic = {w.remote_address, w.key, o.data, o.compare};
  }
  if (row.has(ib::kImmDt)) {
    h->immediate = static_cast<std::uint32_t>(wqes.queue().operands(index).immediate);
  }
}

}  // namespace

RdMessage begin_rd_message(RdSender* sender, const EeAttributes& ee, ib::Psn first) {
  sender->begin(ee.pmtu());
  const SendWqe& w = sender->wqes().wqe(sender->index());
  const RdTo& to = sender->to();
  const ib::QpAttributes& from = sender->attributes();
  RdMessage m;
  m.sender = sender;
  m.dest_qp = to.qp & ib::kMask24;
  m.deth = {(to.qkey & kOwnQkey) != 0 ? from.qkey : to.qkey, from.number};
  m.op = w.op;
  m.first = first;
  m.packets = sender->wqes().packets(w);
  return m;
}

bool build_rd_packet(const RdMessage& m, const EeAttributes& ee, ib::RequestPacket* out) {
  const ib::SendWqes& wqes = m.sender->wqes();
  const SendWqe& w = wqes.wqe(m.sender->index());
  ib::PacketHeader& h = out->header;
  h = ib::PacketHeader{};
  h.bth.opcode = ib::Opcode(ib::ServiceType::Rd, ib::operation_of(w.op, m.next, m.packets));
  h.bth.pkey = ee.pkey;
  h.bth.dest_qp = m.dest_qp;
  h.bth.psn = m.first + m.next;
  h.bth.solicited = (w.flags & verbs::kSolicited) != 0 && h.row().completes_receive();
  h.ee_context = ee.dest_ee;
  h.deth = m.deth;
  set_extension(m, wqes, &h);
  out->count = 0;
  out->length = m.awaits_data() ? 0 : wqes.bytes(w, m.next);
  return wqes.gather(m.sender->index(), m.next * wqes.pmtu(), out->length, out->pieces.data(),
                     &out->count);
}

}  // namespace urnic::sim
