#include "ib/place_early.h"

#include "ib/placement.h"

namespace urnic::ib {
namespace {

// The destination of the payload if access to it is certain to be allowed; otherwise null.
std::uint8_t* early_destination(const ResponderState& s, const ParsedPacket& p) {
  const PacketHeader& h = p.header;
  const OpcodeRow& row = h.row();
  const auto n = static_cast<std::uint32_t>(p.payload.size());
  if (s.qp->loss.out_of_order != OutOfOrder::Place || row.family != Family::Write || n == 0) {
    return nullptr;
  }
  // the protection domain is only known in its turn
  if (s.qp->service == ServiceType::Xrc) return nullptr;
  if ((s.qp->access & verbs::kRemoteWrite) == 0 || !payload_fits(row.payload, n, s.qp->pmtu())) {
    return nullptr;
  }
  std::uint32_t key = h.reth.rkey, length = h.reth.length;
  std::uint64_t address = h.reth.address, before = 0;
  if (!row.begins()) {
    const IncomingMessage& m = s.message;
    if (m.family != Family::Write) return nullptr;
    const std::uint64_t skip = std::uint64_t{h.bth.psn - s.expected} * s.qp->pmtu();
    key = m.rkey;
    length = m.length;
    address = m.address + skip;
    before = m.bytes + skip;
  }
  if (before + n > length || (before + n == length) != row.ends()) return nullptr;
  if (verbs::check_remote_write(*s.memory, key, address, n, s.qp->peer()) !=
      verbs::AccessVerdict::Ok) {
    return nullptr;
  }
  return address_in(*s.memory, key, address);
}

}  // namespace

HeldPackets::Kept keep_early(ResponderState& s, const ParsedPacket& p) {
  std::uint8_t* const at = early_destination(s, p);
  if (at == nullptr) return s.held.keep(p);
  forget_under(s, p.header.bth.psn, at, p.payload.size());
  if (!place(at, p.payload)) return s.held.keep(p);  // lost memory is reported in its turn
  const HeldPackets::Kept kept = s.held.keep_placed(p, at);
  if (kept == HeldPackets::Kept::Yes) ++s.counters.placed;
  return kept;
}

void forget_under_receive(ResponderState& s, const ParsedPacket& p) {
  if (!s.held.any_placed()) [[likely]]
    return;
  for (const verbs::Sge& sge : s.rq->sges(s.rq->head())) {
    const auto bytes = verbs::resolve_sge(*s.memory, sge, s.receive_pd(), true);
    s.held.forget_placed(p.header.bth.psn, bytes.data(), bytes.size());
  }
}

}  // namespace urnic::ib
