// A UDP socket at RoCEv2's port, and the control data of its messages: addresses, traffic class,
// and the size of segments that the kernel cuts a message into or has joined it from.
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
// Returns the length of the written address.
socklen_t write_kernel_address(const IpAddress& ip, std::uint16_t port, KernelAddress* a);

// Room for the control messages of one datagram.
struct UdpControl {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int))];
};

// Opens a socket bound to port 4791 of `at`. Returns a closed descriptor if this machine does not
// support that IP version.
Outcome<Fd, std::string> open_udp_socket(const IpAddress& at);
// Lets the kernel join received datagrams of one flow (UDP_GRO). Returns false if the kernel cannot
// join, or cannot cut a sent message into segments (UDP_SEGMENT): Linux before 5.0.
bool enable_udp_offload(const Fd& socket);

// Writes the own address, the interface `zone` (0: the kernel's routes decide), the traffic class
// and, if `segment` is not 0, the bytes of each segment. Returns the length.
std::size_t write_udp_control(const UdpDatagram& d, std::uint32_t zone, std::uint16_t segment,
                              UdpControl* c);
// Sets destination, traffic_class, source and source_port of a received message. Returns the bytes
// of each of its segments but the last, or 0 for a single datagram.
std::uint32_t read_udp_message(msghdr& m, bool v6, UdpDatagram* d);

}  // namespace urnic::port
