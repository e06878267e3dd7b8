#include "kernel_tcp/address_news.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>

namespace urnic::kernel_tcp {
namespace {

bool is_about_addresses(const nlmsghdr& h) {
  return h.nlmsg_type == RTM_NEWADDR || h.nlmsg_type == RTM_DELADDR ||
         h.nlmsg_type == RTM_NEWLINK || h.nlmsg_type == RTM_DELLINK;
}

}  // namespace

AddressNews::AddressNews() {
  Socket s(::socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
  sockaddr_nl at{};
  at.nl_family = AF_NETLINK;
  // An interface that is down keeps its IPv4 addresses, but they cannot be used.
  at.nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_LINK;
  if (!s.is_open() || ::bind(s.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    error_ = errno;
    return;
  }
  socket_ = std::move(s);
}

bool AddressNews::take() {
  bool any = false;
  alignas(nlmsghdr) std::array<char, 8192> buffer;
  while (socket_.is_open()) {
    const ssize_t n = ::recv(socket_.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == ENOBUFS) {  // some messages were lost
      any = true;
      continue;
    }
    if (n <= 0) break;
    auto left = static_cast<std::size_t>(n);
    for (auto* h = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(h, left);
         h = NLMSG_NEXT(h, left)) {
      any = any || is_about_addresses(*h);
    }
  }
  return any;
}

}  // namespace urnic::kernel_tcp
