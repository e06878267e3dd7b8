#include "net/ipv6.h"

namespace urnic::net {
namespace {

// Checks the options of a hop-by-hop or destination header (RFC 8200, 4.2). The two highest type
// bits of an unknown option determine whether it is skipped or the packet is dropped. The Parameter
// Problem requested by bits 10 and 11 is not sent, because it would be an amplifier for forged
// source addresses.
bool options_allow(ByteView options) {
  std::size_t at = 0;
  while (at < options.size()) {
    const std::uint8_t type = options[at];
    if (type == 0) {  // Pad1
      ++at;
      continue;
    }
    if (options.size() - at < 2) return false;
    const std::size_t len = options[at + 1];
    if (options.size() - at - 2 < len) return false;
    if ((type & 0xc0) != 0) return false;
    at += 2 + len;
  }
  return true;
}

}  // namespace

Ipv6Chain walk_ipv6(ByteView b, std::uint8_t next_header) {
  Ipv6Chain chain{DropReason::None, next_header, kIpv6Header};
  for (unsigned i = 0; i <= kIpv6ChainMax; ++i) {
    const bool options = chain.protocol == kExtHopByHop || chain.protocol == kExtDestination;
    if (chain.protocol == kExtFragment) {
      chain.problem = DropReason::Fragment;
      return chain;
    }
    if (!options && chain.protocol != kExtRouting) return chain;
    if (chain.protocol == kExtHopByHop && i != 0) break;
    if (i == kIpv6ChainMax || b.size() < chain.offset || b.size() - chain.offset < 8) break;
    const std::uint8_t* header = b.data() + chain.offset;
    const std::size_t len = 8 + std::size_t{header[1]} * 8;
    if (b.size() - chain.offset < len) break;
    // A routing header with segments left requests forwarding, but we are not a router (RFC 8200,
    // 4.4; type 0 is always forbidden, RFC 5095).
    if (chain.protocol == kExtRouting && header[3] != 0) break;
    if (options && !options_allow({header + 2, len - 2})) break;
    chain.protocol = header[0];
    chain.offset += len;
  }
  chain.problem = DropReason::Ipv6Extension;
  return chain;
}

}  // namespace urnic::net
