// One UDP socket at RoCEv2's port, and what is said with each message: addresses, traffic class and
// the size of the segments that the kernel cuts it into or has joined it from.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/ip_address.h"
#include "base/result.h"
#include "port/fd.h"
#include "port/udp_headers.h"

namespace urnic::port {

union KernelAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};
// Writes it and returns its length.
socklen_t write_kernel_address(const IpAddress& ip, std::uint16_t port, KernelAddress* a);

// Room for the control messages of one datagram.
struct UdpControl {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int))];
};

// Bound to port 4791 of `at`. Closed, without an error, where this machine has no such version of
// IP.
Outcome<Fd, std::string> open_udp_socket(const IpAddress& at);
// Asks the kernel to join the datagrams of one flow (UDP_GRO), and says whether it can also cut
// what is sent into segments (UDP_SEGMENT). False: it can do neither; Linux before 5.0.
bool enable_udp_offload(const Fd& socket);

// Own address, interface (0: by the routes), traffic class and, if not 0, the bytes of one segment.
// Returns the length.
std::size_t write_udp_control(const UdpDatagram& d, std::uint32_t zone, std::uint16_t segment,
                              UdpControl* c);
// Sets destination, traffic_class, source and source_port of a received message. Returns the bytes
// of each of its segments but the last, or 0 for a single datagram.
std::uint32_t read_udp_message(msghdr& m, bool v6, UdpDatagram* d);

}  // namespace urnic::port
