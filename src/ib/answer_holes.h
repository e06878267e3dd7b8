// Holes in the answers to READs and atomics (S-2): something came that shows that the answer which
// is next should have come. A FAST queue pair puts into memory what came behind it, and asks for
// what is missing alone, when it could not be late any more; that is lawful with any peer (IB-44).
// Nothing is completed before the hole is closed.
#pragma once

#include "ib/opcode_table.h"
#include "ib/send_state.h"

namespace urnic::ib {

inline bool keeps_ahead(const SendState& s) {
  return s.qp->loss.type == ConnectionType::Fast && s.qp->loss.out_of_order != OutOfOrder::Drop;
}

// Whether a READ response or an atomic result of PSN p, which lies behind the awaited one and is
// right in itself, may be kept.
bool may_keep(SendState&, Psn p);
// Its bytes are in memory.
void kept_ahead(SendState&, Psn p, Instant now);

// Something has come that is behind the awaited answer; the peer has taken all requests before
// `end`.
void note_hole(SendState&, Psn end, Instant now);
// An answer has been taken at una: what is kept behind it has its turn, and with it what the peer
// had acknowledged. May fail.
void close_hole(SendState&, Instant now);
// HoleWatch::due has passed.
void holes_due(SendState&, Instant now);

// What is to be asked for again.
struct MissingPart {
  SendPosition at;
  std::uint32_t packets = 0;  // of a READ
};
// One that is to be asked for now, HoleWatch::wanted; false: none is. It counts as asked for.
bool next_missing(SendState&, Instant now, MissingPart* out);

}  // namespace urnic::ib
