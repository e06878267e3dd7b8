// What is chosen with an own address and port: whose it is, and who may connect to it. Values, to
// be used from any thread; urnic/verbs.h includes this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "urnic/qp_attributes.h"

namespace urnic {

// Who may connect to a listener, and how many (items AC-1 to AC-5). Whoever may not finds nobody
// listening: iWARP: RST to the SYN (over the kernel's TCP: RST behind the handshake), RoCE: REJ 8.
// Counted in EngineStats::peers_denied and peers_over_limit. For datagrams (Service::ud) `allow`
// and `deny` alone count: nobody serves them to who may not ask (SIDR status 1).
struct AccessOptions {
  // Prefixes: "10.77.0.0/24", "fd77::/64", or one address; at most 1024 in all. The longest that
  // an address is in decides, of two alike the one of `deny`. An address in none of them may
  // connect if `allow` is empty, and not else, whatever its version of IP.
  std::vector<std::string> allow, deny;
  // Connections at a time that came to this listener, from TCP's handshake (RoCE: from the REQ) to
  // their end, TIME-WAIT not counted: of all peers, and of each address. 0: no limit.
  std::uint32_t max_connections = 0, max_peer_connections = 0;
  // New ones in a second, and at once after a second without any. 0: no limit; at most 1000000.
  std::uint32_t accept_rate = 0;
};

struct BindOptions {
  bool ipv6_only = false;  // "[::]:port" stands for version 6 alone
  // Others that are shared too may be bound to the same, until one of them listens.
  bool shared = false;
  // Whose port it is: each transport has ports of its own. One that the device speaks; left alone:
  // iWARP if it does.
  std::optional<Transport> transport;
  // RoCE: for whom it is: `rc`, connections; `xrc_receive`, those of XRC, at the same ports; `ud`,
  // who sends datagrams (urnic/datagram_service.h), at ports of their own. Who connects otherwise
  // is refused (REJ 9), others than these are refused here as unsupported.
  Service service = Service::rc;
  // For who listens there. Left alone: as the settings `allow`, `deny`, `listener_connections`,
  // `peer_connections` and `accept_rate` say.
  std::optional<AccessOptions> access;
};

}  // namespace urnic
