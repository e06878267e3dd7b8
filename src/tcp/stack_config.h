// What a byte-stream stack is made with.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/ip_address.h"
#include "base/time.h"
#include "tcp/seq.h"
#include "tcp/stack_options.h"

namespace urnic::tcp {

// What is injected so that a run can be repeated byte for byte, or tuned. Those left empty follow
// from `seed` alone.
struct StackConfig {
  std::vector<IpAddress> addresses;  // own ones; add_address() adds more
  EndpointOptions options;           // of endpoints to come
  std::uint64_t seed = 1;            // of every key and choice below; secret in production
  bool verify_checksums = true;      // of received TCP and ICMP
  std::uint8_t ttl = 64;
  std::uint16_t port_first = 32768, port_last = 60999;  // ephemeral ports
  std::uint8_t challenge_acks = 10;  // of each connection in 5 s, less a random share (RFC 5961 7)
  // Bytes the buffers of all endpoints with Option::AutoTune may grow to together. When it is
  // reached a new connection gets 4 KiB each way all the same.
  std::uint64_t memory_limit = 256u << 20;

  std::function<Seq(const SocketAddress& local, const SocketAddress& remote, Instant)> isn;
  std::function<std::uint32_t(const SocketAddress& local, const SocketAddress& remote)> ts_offset;
  // The `attempt`-th candidate; called until one is free or attempts run out.
  std::function<std::uint16_t(const IpAddress& local, const SocketAddress& remote,
                              unsigned attempt)>
      ephemeral_port;
};

}  // namespace urnic::tcp
