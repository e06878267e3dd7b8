// Places the payload of WRITEs past a gap immediately if their destination is certain (S-2,
// OutOfOrder::Place): the packet has its own RETH, or belongs to the open WRITE. Its header is kept
// like that of any other packet, and judged when its turn comes. If another packet is then written
// to the same memory, in order or early but before it, the placed packet is dropped and repeated:
// the later WRITE must be the last one written.
#pragma once

#include "ib/held_packets.h"
#include "ib/packet.h"
#include "ib/responder_state.h"

namespace urnic::ib {

// Keeps a request past a gap: placed, or with its payload.
HeldPackets::Kept keep_early(ResponderState&, const ParsedPacket&);

// Request `psn` is about to write [at, at + n), or its part of the receive in use.
inline void forget_under(ResponderState& s, Psn psn, const std::uint8_t* at, std::size_t n) {
  if (s.held.any_placed()) [[unlikely]]
    s.held.forget_placed(psn, at, n);
}
void forget_under_receive(ResponderState&, const ParsedPacket&);

}  // namespace urnic::ib
