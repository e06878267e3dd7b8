// Options of a bound address and port: which transport and service use it, and which peers may
// connect to it. Plain values that any thread may use; urnic/verbs.h includes this header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "urnic/qp_attributes.h"

namespace urnic {

// Which peers may connect to a listener, and how many (items AC-1 to AC-5). A peer that is denied
// is refused as if nothing listened: iWARP: RST to the SYN (over the kernel's TCP: RST after the
// handshake), RoCE: REJ 8. Refusals are counted in EngineStats::peers_denied and peers_over_limit.
// For datagrams (Service::ud) only `allow` and `deny` apply: a peer that is denied gets SIDR status
// 1.
struct AccessOptions {
  // Prefixes: "10.77.0.0/24", "fd77::/64", or one address; at most 1024 in all. The longest prefix
  // that contains the address decides; if it is in both lists, `deny` wins. An address that no
  // prefix contains may connect if `allow` is empty, otherwise it may not; this holds for both
  // versions of IP.
  std::vector<std::string> allow, deny;
  // Limits of simultaneous connections to this listener: of all peers together, and of each
  // address. A connection counts from TCP's handshake (RoCE: from the REQ) to its end; TIME-WAIT
  // does not count. 0: no limit.
  std::uint32_t max_connections = 0, max_peer_connections = 0;
  // New connections per second; after a second without any, as many at once. 0: no limit; at most
  // 1000000.
  std::uint32_t accept_rate = 0;
};

struct BindOptions {
  bool ipv6_only = false;  // "[::]:port" stands for version 6 alone
  // Several bindings that are all shared may have the same address and port, until one listens.
  bool shared = false;
  // The transport that the port belongs to: each transport has ports of its own. The device must
  // speak it. If not set: iWARP if the device speaks it, else RoCE.
  std::optional<Transport> transport;
  // RoCE: the service of the port. `rc`: connections; `xrc_receive`: XRC connections, in the same
  // port space as `rc`; `ud`: datagrams (urnic/datagram_service.h), in a port space of its own. A
  // peer that connects with another service is refused (REJ 9). bind() refuses other values with
  // unsupported.
  Service service = Service::rc;
  // The access rules of the listener. If not set: the settings `allow`, `deny`,
  // `listener_connections`, `peer_connections` and `accept_rate`.
  std::optional<AccessOptions> access;
};

}  // namespace urnic
