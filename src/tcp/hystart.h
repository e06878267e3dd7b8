// HyStart++ (RFC 9406): slow start notices that round trips grow, and slows down before the queue
// of the bottleneck overflows. Called by congestion.cpp only, before the first loss.
#pragma once

#include <cstdint>

#include "base/stream_offset.h"
#include "base/time.h"

namespace urnic::tcp {

struct HyStart {
  static constexpr std::uint32_t kNone = 0xffffffff;

  StreamOffset round_end;                // the round ends when this is acknowledged
  std::uint32_t last_min_us = kNone;     // least round trip of the round before
  std::uint32_t current_min_us = kNone;  // ... and of this one
  std::uint32_t baseline_us = kNone;     // when conservative slow start began
  std::uint8_t samples = 0;              // of this round, saturating
  std::uint8_t conservative_rounds = 0;  // 0: not in conservative slow start
};

enum class HyStartSays : std::uint8_t {
  Grow,          // as slow start does
  GrowQuarter,   // conservative slow start (4.2)
  EndSlowStart,  // it was no blip: ssthresh is where we are
};

// An ACK up to `una`; `rtt` is what its newest segment took, zero if unknown.
HyStartSays hystart_on_ack(HyStart&, StreamOffset una, StreamOffset nxt, Duration rtt);

}  // namespace urnic::tcp
