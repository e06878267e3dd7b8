// Skips a test that needs IPv6 on a machine without it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace urnic::testing {

inline bool has_ipv6() {
  sockaddr_in6 at{};
  at.sin6_family = AF_INET6;
  at.sin6_addr = in6addr_loopback;
  const int s = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool ok = s >= 0 && bind(s, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  if (s >= 0) close(s);
  return ok;
}

}  // namespace urnic::testing
