// Payload of WRITEs behind a gap that goes to its place at once, where that is certain (S-2,
// OutOfOrder::Place): the packet has its own RETH, or belongs to the WRITE that is open. Its header
// is kept like any other's, and judged in its turn. Whatever is placed in its turn, or early but
// before it, makes what lies under it come again: the later WRITE must have the last word.
#pragma once

#include "ib/held_packets.h"
#include "ib/packet.h"
#include "ib/responder_state.h"

namespace urnic::ib {

// Keeps a request behind a gap, placed or with its payload.
HeldPackets::Kept keep_early(ResponderState&, const ParsedPacket&);

// Request `psn` is about to write [at, at + n), or its part of the receive in use.
inline void forget_under(ResponderState& s, Psn psn, const std::uint8_t* at, std::size_t n) {
  if (s.held.any_placed()) [[unlikely]]
    s.held.forget_placed(psn, at, n);
}
void forget_under_receive(ResponderState&, const ParsedPacket&);

}  // namespace urnic::ib
