// Initial sequence numbers (RFC 6528): a clock of 4 us per tick plus a keyed hash of the two
// endpoints. An attacker off the path cannot guess them, and successive incarnations of a
// connection still move forward.
#pragma once

#include "base/ip_address.h"
#include "base/siphash.h"
#include "base/time.h"
#include "tcp/seq.h"

namespace urnic::tcp {

// `key`: secret, random, the same for all connections of a host.
Seq initial_sequence(const SipKey& key, const SocketAddress& local, const SocketAddress& remote,
                     Instant now);

// An offset of the timestamp clock per connection (RFC 7323 5.4, E-46). It reveals neither the
// uptime nor other connections. A new incarnation between the same endpoints gets the same offset,
// so that its clock continues forward.
std::uint32_t timestamp_offset(const SipKey& key, const SocketAddress& local,
                               const SocketAddress& remote);

// The key from which a connection's limit on challenge ACKs draws its share (challenge.h). Never 0.
std::uint64_t challenge_key(const SipKey& key, const SocketAddress& local,
                            const SocketAddress& remote);

// Returns the start of the `count`-th search for a port (port_choice.h).
std::uint64_t port_hash(const SipKey& key, const IpAddress& local, const SocketAddress& remote,
                        std::uint64_t count);

}  // namespace urnic::tcp
