// SYN cookies (RFC 4987 3.6): when a listener has as many half-open connections as it may, the
// SYN-ACK's sequence number carries what is needed to go on, and nothing is kept. What the peer's
// SYN offered beyond the MSS comes back in the low bits of its timestamp; without timestamps it is
// given up.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ip_address.h"
#include "base/siphash.h"
#include "base/time.h"
#include "tcp/config.h"
#include "tcp/segment.h"

namespace urnic::tcp {

// How long an answer may take: the cookie names one of the last two of these.
inline constexpr Duration kCookieLife = Duration::s(64);

// The SYN-ACK to `syn`, a segment of the listener at `local`. `ts_offset`: as in Config.
Segment cookie_syn_ack(const SipKey& key, const SocketAddress& local, const SocketAddress& remote,
                       const Segment& syn, const Config& config, std::uint16_t window, Instant now);

// The SYN that `ack` is the late consequence of, as far as it is known, with our own sequence
// number in `ack` (one less than the segment's). Nothing when `ack` answers no cookie of ours.
std::optional<Segment> syn_of_cookie(const SipKey& key, const SocketAddress& local,
                                     const SocketAddress& remote, const Segment& ack,
                                     const Config& config, Instant now);

}  // namespace urnic::tcp
