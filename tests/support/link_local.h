// A network namespace of this process, whose only interface, lo, has link-local addresses.
#pragma once

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "support/soon.h"

namespace urnic::test {

// True if a socket can be bound to it. A new address is tentative for a moment.
inline bool is_usable(const in6_addr& ip, int index) {
  sockaddr_in6 a{};
  a.sin6_family = AF_INET6;
  a.sin6_addr = ip;
  a.sin6_scope_id = static_cast<std::uint32_t>(index);
  const int s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool ok = s >= 0 && bind(s, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0;
  if (s >= 0) close(s);
  return ok;
}

// Adds an IPv6 address with a 64-bit prefix.
inline bool add_address(const char* interface, const char* address) {
  struct {  // in6_ifreq of linux/ipv6.h, which conflicts with netinet/in.h
    in6_addr ip;
    std::uint32_t length;
    int index;
  } r{{}, 64, static_cast<int>(if_nametoindex(interface))};
  const int s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (s < 0) return false;
  const bool ok = inet_pton(AF_INET6, address, &r.ip) == 1 && ioctl(s, SIOCSIFADDR, &r) == 0;
  close(s);
  return ok && soon([&] { return is_usable(r.ip, r.index); });
}

inline bool set_up(const char* interface) {
  ifreq r{};
  std::strncpy(r.ifr_name, interface, IFNAMSIZ - 1);
  r.ifr_flags = IFF_UP;
  const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool ok = s >= 0 && ioctl(s, SIOCSIFFLAGS, &r) == 0;
  if (s >= 0) close(s);
  return ok;
}

// Adds fe80::1 and fe80::2. Only for a process without other threads.
inline bool enter_link_local_network() {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 && unshare(CLONE_NEWNET) != 0) return false;
  return set_up("lo") && add_address("lo", "fe80::1") && add_address("lo", "fe80::2");
}

}  // namespace urnic::test
