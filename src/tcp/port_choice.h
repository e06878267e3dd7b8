// Ephemeral ports (RFC 6056). The search begins at a position that only a secret determines, new
// for each connection, and covers the whole range, so it succeeds whenever a port is free.
#pragma once

#include <cstdint>

#include "base/ip_address.h"
#include "base/siphash.h"
#include "tcp/isn.h"

namespace urnic::tcp {

class PortChoice {
 public:
  // Chooses from the ports `first` to `last`. The range is empty if `last` < `first`.
  PortChoice(const SipKey& key, std::uint16_t first, std::uint16_t last)
      : key_(key), first_(first), span_(first <= last ? last - first + 1u : 0) {}

  // Returns a port for which `taken(port)` is false; 0 if there is none.
  template <class Taken>
  std::uint16_t choose(const IpAddress& local, const SocketAddress& remote, Taken&& taken) {
    if (span_ == 0) return 0;
    const std::uint64_t begin = port_hash(key_, local, remote, ++chosen_) % span_;
    for (std::uint32_t i = 0; i < span_; ++i) {
      const auto port = static_cast<std::uint16_t>(first_ + (begin + i) % span_);
      // A connection from an address and port to itself must not be made.
      if (port == 0 || (port == remote.port && local == remote.ip) || taken(port)) continue;
      return port;
    }
    return 0;
  }

 private:
  SipKey key_;
  std::uint16_t first_;
  std::uint32_t span_;
  std::uint64_t chosen_ = 0;
};

}  // namespace urnic::tcp
