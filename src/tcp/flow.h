// The key of a connection, its two endpoints (RFC 9293 3.4.1), and the table that finds a
// connection by it. The hash is keyed, since a peer chooses addresses and ports.
#pragma once

#include <cstdint>

#include "base/flow_hash.h"
#include "base/hash_map.h"
#include "base/ip_address.h"

namespace urnic::tcp {

struct FlowKey {
  IpAddress local, remote;
  std::uint16_t local_port = 0, remote_port = 0;
  bool operator==(const FlowKey&) const = default;

  SocketAddress local_end() const { return {local, local_port}; }
  SocketAddress remote_end() const { return {remote, remote_port}; }
};

struct FlowKeyHash {
  SipKey key;
  std::uint64_t operator()(const FlowKey& k) const {
    return keyed_flow_hash(key, k.local, k.local_port, k.remote, k.remote_port);
  }
};

// Maps to the slot of a connection.
using FlowTable = HashMap<FlowKey, std::uint32_t, FlowKeyHash>;

}  // namespace urnic::tcp
