// Corruption is not congestion (E-42): a receiver names the segment whose checksum was right and
// whose CRC was wrong, in an option (RFC 6994) of the duplicate ACK that the drop draws, and the
// sender sends it again at once and leaves cwnd alone. Only where both ends have it and the sender
// tells losses by time (rack.h): what was named and has gone again is nothing that RACK would hold
// lost for what is SACKed above it. As far as that is rare; if not, it is a loss like any other.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tcp/config.h"
#include "tcp/congestion.h"

namespace urnic::tcp {

struct Tcb;
struct Segment;
struct Check;

// One segment in so many.
inline constexpr std::uint32_t kRareness = 32;
// And so many before all has arrived once: the receiver counts those it refuses until then, and its
// connection is FAST no longer at max_recovery_attempts. A smaller window ends it.
inline constexpr std::uint8_t kNamedTogether = 8;

struct Corruption {
  std::uint32_t spare = 0;    // bytes acknowledged that nothing named was set against yet
  std::uint8_t together = 0;  // named segments that went again since nothing was missing
};

// What our SYN offers.
inline bool offers_naming(const Config& c) {
  return c.name_corrupted && c.sack && c.rack;
}

// The connection is open: one is forgiven from the beginning.
inline void corruption_open(Corruption& c, const Congestion& cc) {
  c.spare = kRareness * cc.smss;
}
// So much was acknowledged. A window's worth is remembered, and one segment's at least.
inline void corruption_earned(Corruption& c, const Congestion& cc, std::uint32_t bytes) {
  const std::uint32_t most = std::max(cc.cwnd, kRareness * cc.smss);
  c.spare =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{c.spare} + bytes, most));
}
// The segment names one of ours. To be called when its SACK blocks have been taken.
void take_corrupted(Tcb&, const Segment&);

}  // namespace urnic::tcp
