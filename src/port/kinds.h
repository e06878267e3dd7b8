// The port kinds compiled into the library.
#pragma once

#include <optional>
#include <string>

#include "base/ip_address.h"
#include "port/port.h"
#include "port/port_abi.h"

namespace urnic::port {

extern const urnic_port_ops kMemoryPortOps;
extern const urnic_port_ops kMemifPortOps;
extern const urnic_port_ops kTapPortOps;
extern const urnic_port_ops kDgramPortOps;
extern const urnic_port_ops kUdpPortOps;

// What is wrong with the arguments of a kind, without opening anything; empty when nothing is.
std::string check_memory_args(Args& args);
std::string check_memif_args(Args& args);
std::string check_tap_args(Args& args);
std::string check_dgram_args(Args& args);
std::string check_udp_args(Args& args);

// Arguments of `tcp`, which is no port of frames (src/device opens it).
struct TcpArgs {
  bool align = true;
  std::optional<IpAddress> bind;
};
Outcome<TcpArgs, std::string> read_tcp_args(Args& args);

// Arguments of `udp`.
struct UdpArgs {
  std::optional<IpAddress> bind;  // none: all addresses of the machine
  std::uint32_t mtu = 0;          // of IP; 0: what the interface has, at most 9000
  bool offload = true;            // where the kernel has UDP_SEGMENT and UDP_GRO
};
Outcome<UdpArgs, std::string> read_udp_args(Args& args);

}  // namespace urnic::port
