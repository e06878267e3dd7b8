// SYN cookies (RFC 4987 3.6). When a listener has its maximum of half-open connections, the
// sequence number of the SYN-ACK carries what is needed to open the connection later, and the
// listener keeps no state. The options of the peer's SYN other than the MSS are encoded in the low
// bits of our timestamp; without timestamps they are dropped.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ip_address.h"
#include "base/siphash.h"
#include "base/time.h"
#include "tcp/config.h"
#include "tcp/segment.h"

namespace urnic::tcp {

// How long a reply may take: the cookie identifies one of the last two periods of this length.
inline constexpr Duration kCookieLife = Duration::s(64);

// Returns the SYN-ACK to `syn`, a segment for the listener at `local`. `ts_offset`: as in Config.
Segment cookie_syn_ack(const SipKey& key, const SocketAddress& local, const SocketAddress& remote,
                       const Segment& syn, const Config& config, std::uint16_t window, Instant now);

// Reconstructs the SYN that led to `ack`, as far as it is known, with our own sequence number in
// its `ack` (one less than in the segment). Returns nothing if `ack` does not answer one of our
// cookies.
std::optional<Segment> syn_of_cookie(const SipKey& key, const SocketAddress& local,
                                     const SocketAddress& remote, const Segment& ack,
                                     const Config& config, Instant now);

}  // namespace urnic::tcp
