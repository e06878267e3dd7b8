// Ends slow start before the queue of the bottleneck overflows. Called by congestion.cpp only,
// before the first loss. There are two signs:
//   round trips grow: HyStart++ (RFC 9406) grows slower first, and returns to slow start if it was
//                      a false alarm
//   a train of ACKs lasts half a round trip: the data it acknowledges occupies the line for that
//                      time, so the window it releases fills the path (the other half of HyStart,
//                      Ha and Rhee 2011, which RFC 9406 leaves out). Round trips grow only after a
//                      queue has formed; by then the window may be growing to twice what the path
//                      holds.
// A train that was stretched on its way looks longer than it is. Therefore a train, too, slows
// growth first, for the rest of the round and one more. Both signs together end slow start.
#pragma once

#include <cstdint>

#include "base/stream_offset.h"
#include "base/time.h"

namespace urnic::tcp {

struct HyStart {
  static constexpr std::uint32_t kNone = 0xffffffff;

  StreamOffset round_end;                // the round ends when more than this is acknowledged
  std::uint32_t last_min_us = kNone;     // shortest round trip of the previous round
  std::uint32_t current_min_us = kNone;  // ... of this round
  std::uint32_t baseline_us = kNone;     // ... when conservative slow start began
  std::uint32_t least_us = kNone;        // ... of all rounds
  Instant train_begin, last_ack;
  std::uint8_t samples = 0;              // in this round, saturating
  std::uint8_t conservative_rounds = 0;  // 0: not in conservative slow start
  bool by_train = false;                 // ... which a train began, so it cannot be a false alarm
  enum class Train : std::uint8_t { ToCome, Whole, Broken } train = Train::ToCome;  // in this round
};

enum class HyStartSays : std::uint8_t {
  Grow,          // normal slow start
  GrowQuarter,   // conservative slow start (4.2)
  EndSlowStart,  // the sign was real: set ssthresh to the current window
};

// Processes an ACK up to `una`. `rtt` is the round trip of its newest segment, zero if unknown; the
// window has `segments`.
HyStartSays hystart_on_ack(HyStart&, StreamOffset una, StreamOffset nxt, Duration rtt, Instant now,
                           std::uint32_t segments);

// Returns true if round trips of `srtt` are longer than those of the idle path, or the latter are
// unknown.
bool hystart_rtt_is_inflated(const HyStart&, Duration srtt);

}  // namespace urnic::tcp
