// Initial sequence numbers (RFC 6528): a clock of 4 us per tick plus a keyed hash of the two ends,
// so that nobody off the path can guess them and successive incarnations of a connection still move
// forward.
#pragma once

#include "base/ip_address.h"
#include "base/siphash.h"
#include "base/time.h"
#include "tcp/seq.h"

namespace urnic::tcp {

// `key`: secret, random, the same for all connections of a host.
Seq initial_sequence(const SipKey& key, const SocketAddress& local, const SocketAddress& remote,
                     Instant now);

// An offset of the timestamp clock per connection (RFC 7323 5.4, E-46): reveals neither uptime nor
// other connections. An incarnation between the same ends has the same, so that it goes forward.
std::uint32_t timestamp_offset(const SipKey& key, const SocketAddress& local,
                               const SocketAddress& remote);

// What a connection's throttle on challenge ACKs draws its share from (challenge.h). Never 0.
std::uint64_t challenge_key(const SipKey& key, const SocketAddress& local,
                            const SocketAddress& remote);

// Where the `count`-th search for a port begins (port_choice.h).
std::uint64_t port_hash(const SipKey& key, const IpAddress& local, const SocketAddress& remote,
                        std::uint64_t count);

}  // namespace urnic::tcp
