// Holes in the responses to READs and atomics (S-2): something arrived that shows that the next
// response is missing. A FAST queue pair puts later responses into memory, and requests only the
// missing ones once they can no longer be just late; that is allowed with any peer (IB-44). Nothing
// completes before the hole is closed.
#pragma once

#include "ib/opcode_table.h"
#include "ib/send_state.h"

namespace urnic::ib {

inline bool keeps_ahead(const SendState& s) {
  return s.qp->loss.type == ConnectionType::Fast && s.qp->loss.out_of_order != OutOfOrder::Drop;
}

// True if a READ response or an atomic result of PSN p, which is valid and lies past the awaited
// one, may be kept.
bool may_keep(SendState&, Psn p);
// Its bytes are in memory.
void kept_ahead(SendState&, Psn p, Instant now);

// Something past the awaited response has arrived; the peer has accepted all requests before `end`.
void note_hole(SendState&, Psn end, Instant now);
// A response has been taken at una: completes the kept responses after it, and the requests that
// the peer had acknowledged. May fail.
void close_hole(SendState&, Instant now);
// HoleWatch::due has passed.
void holes_due(SendState&, Instant now);

// A part of a response that is to be requested again.
struct MissingPart {
  SendPosition at;
  std::uint32_t packets = 0;  // for a READ
};
// Returns a part to request now (HoleWatch::wanted); false if there is none. It counts as
// requested.
bool next_missing(SendState&, Instant now, MissingPart* out);

}  // namespace urnic::ib
