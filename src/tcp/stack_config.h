// The configuration of a byte-stream stack.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/ip_address.h"
#include "base/time.h"
#include "tcp/seq.h"
#include "tcp/stack_options.h"

namespace urnic::tcp {

// Settings that tune a stack, or are injected so that a run can be repeated byte for byte. Empty
// functions are replaced by choices that depend on `seed` alone.
struct StackConfig {
  std::vector<IpAddress> addresses;  // own addresses; add_address() adds more
  EndpointOptions options;           // for endpoints opened later
  std::uint64_t seed = 1;            // for every key and choice below; secret in production
  bool verify_checksums = true;      // in received TCP and ICMP
  std::uint8_t ttl = 64;
  std::uint16_t port_first = 32768, port_last = 60999;  // ephemeral ports
  std::uint8_t challenge_acks = 10;  // per connection in 5 s, less a random share (RFC 5961 7)
  // Bytes to which the buffers of all endpoints with Option::AutoTune may grow together. Beyond it
  // a new connection still gets 4 KiB in each direction.
  std::uint64_t memory_limit = 256u << 20;

  std::function<Seq(const SocketAddress& local, const SocketAddress& remote, Instant)> isn;
  std::function<std::uint32_t(const SocketAddress& local, const SocketAddress& remote)> ts_offset;
  // Returns the `attempt`-th candidate. Called until one is free or the attempts are used up.
  std::function<std::uint16_t(const IpAddress& local, const SocketAddress& remote,
                              unsigned attempt)>
      ephemeral_port;
};

}  // namespace urnic::tcp
