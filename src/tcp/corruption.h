// Corruption is not congestion (E-42). If a segment's checksum is right but its CRC is wrong, the
// receiver names the segment in an option (RFC 6994) of the duplicate ACK that the drop causes. The
// sender resends it at once and leaves cwnd alone. This needs support at both ends, and a sender
// that detects losses by time (rack.h): RACK does not hold a named and resent segment lost because
// of segments SACKed above it. It works as long as corruption is rare; frequent corruption is
// treated as loss.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tcp/config.h"
#include "tcp/congestion.h"

namespace urnic::tcp {

struct Tcb;
struct Segment;
struct Check;

// One corrupted segment is tolerated per this many.
inline constexpr std::uint32_t kRareness = 32;
// At most this many until everything has arrived once. The receiver counts the segments it refuses
// until then, and its connection leaves FAST at max_recovery_attempts. Beyond it a named
// segment is treated as a loss, and the smaller window ends the series.
inline constexpr std::uint8_t kNamedTogether = 8;

struct Corruption {
  std::uint32_t spare = 0;    // acknowledged bytes that have not yet paid for a named segment
  std::uint8_t together = 0;  // named segments that were resent since nothing was missing
};

// True if our SYN offers the option.
inline bool offers_naming(const Config& c) {
  return c.name_corrupted && c.sack && c.rack;
}

// Called when the connection opens: one corrupted segment is allowed from the beginning.
inline void corruption_open(Corruption& c, const Congestion& cc) {
  c.spare = kRareness * cc.smss;
}
// Adds the acknowledged `bytes`. Keeps at most one window, and at least the price of one segment.
inline void corruption_earned(Corruption& c, const Congestion& cc, std::uint32_t bytes) {
  const std::uint32_t most = std::max(cc.cwnd, kRareness * cc.smss);
  c.spare =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{c.spare} + bytes, most));
}
// Processes the name of one of our segments. Call it after the segment's SACK blocks were
// processed.
void take_corrupted(Tcb&, const Segment&);

}  // namespace urnic::tcp
