#include "port/udp_socket.h"

#include <errno.h>
#include <linux/udp.h>

#include <cstring>

namespace urnic::port {
namespace {

constexpr int kBufferHint = 4 << 20;  // net.core.rmem_max and wmem_max may allow less

IpAddress address_of(const in_addr& a) {
  return IpAddress::from_bytes({reinterpret_cast<const std::uint8_t*>(&a), 4});
}
IpAddress address_of(const in6_addr& a) {
  return IpAddress::from_bytes({reinterpret_cast<const std::uint8_t*>(&a), 16});
}

bool set(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

// Not connected and "do not fragment": then the kernel sends single datagrams with identification
// 0, which the ICRC covers.
bool prepare(int fd, bool v6) {
  set(fd, SOL_SOCKET, SO_SNDBUF, kBufferHint);
  set(fd, SOL_SOCKET, SO_RCVBUF, kBufferHint);
  if (!v6) {
    return set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO) &&
           set(fd, IPPROTO_IP, IP_PKTINFO, 1) && set(fd, IPPROTO_IP, IP_RECVTOS, 1);
  }
  set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);  // the ICRC covers more, so senders leave it out
  return set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
         set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) &&
         set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) && set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
}

}  // namespace

socklen_t write_kernel_address(const IpAddress& ip, std::uint16_t port, KernelAddress* a) {
  *a = {};
  if (ip.is_v4()) {
    a->v4.sin_family = AF_INET;
    a->v4.sin_port = htons(port);
    std::memcpy(&a->v4.sin_addr, ip.bytes().data(), 4);
    return sizeof a->v4;
  }
  a->v6.sin6_family = AF_INET6;
  a->v6.sin6_port = htons(port);
  std::memcpy(&a->v6.sin6_addr, ip.bytes().data(), 16);
  a->v6.sin6_scope_id = ip.zone();
  return sizeof a->v6;
}

Outcome<Fd, std::string> open_udp_socket(const IpAddress& at) {
  const bool v6 = at.is_v6();
  Fd fd(::socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd && errno == EAFNOSUPPORT) return fd;
  if (!fd) return fail(std::string("cannot create a UDP socket: ") + std::strerror(errno));
  if (!prepare(fd.get(), v6)) {
    return fail(std::string("cannot set a socket option: ") + std::strerror(errno));
  }
  KernelAddress a;
  const socklen_t size = write_kernel_address(at, kRocePort, &a);
  if (::bind(fd.get(), &a.any, size) == 0) return fd;
  if (errno == EADDRINUSE) {
    return fail("UDP port 4791 of " + at.to_string() +
                " is in use by another RoCE program: set bind= to another address");
  }
  if (errno == EADDRNOTAVAIL && at.is_any()) return Fd();
  if (errno == EADDRNOTAVAIL)
    return fail("bind=" + at.to_string() + ": not an address of this machine");
  return fail("UDP port 4791 of " + at.to_string() + ": " + std::strerror(errno));
}

bool enable_udp_offload(const Fd& socket) {
  int size = 0;
  socklen_t length = sizeof size;
  return getsockopt(socket.get(), IPPROTO_UDP, UDP_SEGMENT, &size, &length) == 0 &&
         set(socket.get(), IPPROTO_UDP, UDP_GRO, 1);
}

std::size_t write_udp_control(const UdpDatagram& d, std::uint32_t zone, std::uint16_t segment,
                              UdpControl* c) {
  msghdr m{};
  std::memset(c->bytes, 0, sizeof c->bytes);
  m.msg_control = c->bytes;
  m.msg_controllen = sizeof c->bytes;
  cmsghdr* h = CMSG_FIRSTHDR(&m);
  const bool v6 = d.source.is_v6();
  std::size_t used = 0;
  const auto put = [&](int level, int type, const void* what, std::size_t bytes) {
    h->cmsg_level = level;
    h->cmsg_type = type;
    h->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(h), what, bytes);
    used += CMSG_SPACE(bytes);
    h = CMSG_NXTHDR(&m, h);
  };
  if (v6) {
    in6_pktinfo info{};
    std::memcpy(&info.ipi6_addr, d.source.bytes().data(), 16);
    info.ipi6_ifindex = zone;
    put(IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
  } else {
    in_pktinfo info{};
    std::memcpy(&info.ipi_spec_dst, d.source.bytes().data(), 4);
    put(IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
  }
  if (d.traffic_class != 0) {
    const int traffic_class = d.traffic_class;
    put(v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, &traffic_class,
        sizeof traffic_class);
  }
  if (segment != 0) put(IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
  return used;
}

std::uint32_t read_udp_message(msghdr& m, bool v6, UdpDatagram* d) {
  const auto* const from = static_cast<const KernelAddress*>(m.msg_name);
  d->source = v6 ? address_of(from->v6.sin6_addr) : address_of(from->v4.sin_addr);
  d->source_port = ntohs(v6 ? from->v6.sin6_port : from->v4.sin_port);
  int segment = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(c), sizeof info);
      d->destination = address_of(info.ipi_addr);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(c), sizeof info);
      d->destination = address_of(info.ipi6_addr);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
      d->traffic_class = *CMSG_DATA(c);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
      int value = 0;
      std::memcpy(&value, CMSG_DATA(c), sizeof value);
      d->traffic_class = static_cast<std::uint8_t>(value);
    } else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
      std::memcpy(&segment, CMSG_DATA(c), sizeof segment);
    }
  }
  return segment > 0 ? static_cast<std::uint32_t>(segment) : 0;
}

}  // namespace urnic::port
