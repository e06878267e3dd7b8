// Conversion to and from the kernel's addresses.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "base/ip_address.h"

namespace urnic::kernel_tcp {

union KernelAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

inline socklen_t to_kernel(const SocketAddress& a, KernelAddress* out) {
  *out = {};
  if (a.ip.is_v4()) {
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons(a.port);
    std::memcpy(&out->v4.sin_addr, a.ip.bytes().data(), 4);
    return sizeof out->v4;
  }
  out->v6.sin6_family = AF_INET6;
  out->v6.sin6_port = htons(a.port);
  std::memcpy(&out->v6.sin6_addr, a.ip.bytes().data(), 16);
  out->v6.sin6_scope_id = a.ip.zone();
  return sizeof out->v6;
}

// For both IP versions. IPv4 addresses mapped into IPv6 are returned as IPv4.
inline SocketAddress from_kernel(const sockaddr& a) {
  if (a.sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &a, sizeof v4);
    const auto* p = reinterpret_cast<const std::uint8_t*>(&v4.sin_addr);
    return {IpAddress::from_bytes({p, 4}), ntohs(v4.sin_port)};
  }
  sockaddr_in6 v6;
  std::memcpy(&v6, &a, sizeof v6);
  const auto* p = reinterpret_cast<const std::uint8_t*>(&v6.sin6_addr);
  const IpAddress ip = IpAddress::from_bytes({p, 16}).unmapped();
  return {ip.with_zone(v6.sin6_scope_id), ntohs(v6.sin6_port)};
}

}  // namespace urnic::kernel_tcp
