// Slow start ends before the queue of the bottleneck overflows. Called by congestion.cpp only,
// before the first loss. Two signs:
//   round trips grow   HyStart++ (RFC 9406): slower first, and back if it was a blip
//   a train of ACKs is half a round trip long: what it acknowledges takes the line so long, and the
//                      window it lets out fills the path (the other half of HyStart, Ha and Rhee
//                      2011, which RFC 9406 leaves out). Round trips tell only once a queue stands,
//                      and by then the window may be on its way to twice what the path holds.
// A train that is drawn out on its way looks longer than it is: so it, too, slows down first, for
// the rest of the round and one more. Both signs together end slow start.
#pragma once

#include <cstdint>

#include "base/stream_offset.h"
#include "base/time.h"

namespace urnic::tcp {

struct HyStart {
  static constexpr std::uint32_t kNone = 0xffffffff;

  StreamOffset round_end;                // the round ends when more than this is acknowledged
  std::uint32_t last_min_us = kNone;     // least round trip of the round before
  std::uint32_t current_min_us = kNone;  // ... and of this one
  std::uint32_t baseline_us = kNone;     // when conservative slow start began
  std::uint32_t least_us = kNone;        // ... and of all rounds
  Instant train_begin, last_ack;
  std::uint8_t samples = 0;              // of this round, saturating
  std::uint8_t conservative_rounds = 0;  // 0: not in conservative slow start
  bool by_train = false;                 // ... which a train began: no blip to be forgiven
  enum class Train : std::uint8_t { ToCome, Whole, Broken } train = Train::ToCome;  // of this round
};

enum class HyStartSays : std::uint8_t {
  Grow,          // as slow start does
  GrowQuarter,   // conservative slow start (4.2)
  EndSlowStart,  // it was no blip: ssthresh is where we are
};

// An ACK up to `una`; `rtt` is what its newest segment took, zero if unknown; the window has
// `segments`.
HyStartSays hystart_on_ack(HyStart&, StreamOffset una, StreamOffset nxt, Duration rtt, Instant now,
                           std::uint32_t segments);

// True if round trips of `srtt` are longer than those of the idle path, or the latter are unknown.
bool hystart_rtt_is_inflated(const HyStart&, Duration srtt);

}  // namespace urnic::tcp
