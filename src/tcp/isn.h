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

// An offset of the timestamp clock per pair of hosts (RFC 7323 5.4, the offset RFC 6528 asks for in
// the same spirit): reveals neither uptime nor other connections.
std::uint32_t timestamp_offset(const SipKey& key, const IpAddress& local, const IpAddress& remote);

}  // namespace urnic::tcp
