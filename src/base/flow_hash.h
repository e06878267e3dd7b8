// Hashes of a flow: two ends, each an address and a port.
//
// flow_hash is the same for both directions, needs no key, and is a convention between two urnic
// processes: on a wire without receive-side scaling the sender uses it to select the receiver's
// queue, and connect() uses it to select a port (E-29). A peer can create collisions, so it must
// not index a table. Use keyed_flow_hash for that: it depends on a secret and on the direction.
#pragma once

#include <bit>
#include <cstdint>

#include "base/ip_address.h"
#include "base/siphash.h"

namespace urnic {

namespace flow_hash_detail {

// Every bit of the result depends on every bit of `v`.
constexpr std::uint64_t mix(std::uint64_t v) {
  v = (v ^ (v >> 32)) * 0xd6e8feb86659fd93ULL;
  v = (v ^ (v >> 32)) * 0xd6e8feb86659fd93ULL;
  return v ^ (v >> 32);
}

inline std::uint64_t end(const IpAddress& address, std::uint16_t port) {
  if (address.is_v4()) return mix(std::uint64_t{address.v4_value()} << 16 | port);
  const std::uint8_t* p = address.bytes().data();
  return mix(mix(load_be64(p)) + load_be64(p + 8) + std::rotl(std::uint64_t{port}, 48));
}

}  // namespace flow_hash_detail

inline std::uint64_t flow_hash(const IpAddress& a, std::uint16_t a_port, const IpAddress& b,
                               std::uint16_t b_port) {
  // A sum is independent of the order; another mix spreads it over all bits.
  return flow_hash_detail::mix(flow_hash_detail::end(a, a_port) + flow_hash_detail::end(b, b_port));
}

// The queue (or engine) of the flow, out of `queues` > 0.
inline std::uint32_t flow_queue(std::uint64_t hash, std::uint32_t queues) {
  return static_cast<std::uint32_t>(((hash >> 32) * queues) >> 32);
}

// For a demultiplexing table; `key` must be secret and random for each table.
inline std::uint64_t keyed_flow_hash(const SipKey& key, const IpAddress& local,
                                     std::uint16_t local_port, const IpAddress& remote,
                                     std::uint16_t remote_port) {
  const std::uint64_t ports = std::uint64_t{local_port} << 16 | remote_port;
  if (local.is_v4() || remote.is_v4()) {  // both ends of a flow have the same IP version
    return siphash13(key, {std::uint64_t{local.v4_value()} << 32 | remote.v4_value(), ports});
  }
  const std::uint8_t* l = local.bytes().data();
  const std::uint8_t* r = remote.bytes().data();
  return siphash13(key, {load_be64(l), load_be64(l + 8), load_be64(r), load_be64(r + 8), ports});
}

}  // namespace urnic
