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

// Check the arguments of a kind without opening anything. Return one line of error; empty if they
// are valid.
std::string check_memory_args(Args& args);
std::string check_memif_args(Args& args);
std::string check_tap_args(Args& args);
std::string check_dgram_args(Args& args);
std::string check_udp_args(Args& args);

// Arguments of `tcp`, which does not carry frames (src/device opens it).
struct TcpArgs {
  bool align = true;
  std::optional<IpAddress> bind;
};
Outcome<TcpArgs, std::string> read_tcp_args(Args& args);

// Arguments of `udp`.
struct UdpArgs {
  std::optional<IpAddress> bind;  // empty: all addresses of the machine
  std::uint32_t mtu = 0;          // IP bytes; 0: what the interface has, at most 9000
  bool offload = true;            // where the kernel has UDP_SEGMENT and UDP_GRO
};
Outcome<UdpArgs, std::string> read_udp_args(Args& args);

}  // namespace urnic::port
