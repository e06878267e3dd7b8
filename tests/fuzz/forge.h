// Changed and forged frames, as an attacker or a faulty machine on the path might produce them.
// Nearly all have right checksums, so that they get as far as possible.
#pragma once

#include "fault/tcp_frame.h"
#include "tests/fuzz/fuzz_port.h"
#include "tests/fuzz/input.h"

namespace urnic::fuzz {

// `frame` with one change; unchanged if it is not a TCP segment.
Bytes mutate(Bytes frame, Input& in);
// A segment cut in two at any place; one piece if it cannot be cut.
std::vector<Bytes> cut(const Bytes& frame, Input& in);
// A segment forged from one that was seen: from its sender (`back` false) or from its receiver.
Bytes forge(const Bytes& seen, bool back, Input& in);
// An ICMP error about a segment that was seen, addressed to its sender.
Bytes forge_icmp(const Bytes& seen, Input& in);
// A SYN from an address without a host: on the link, or behind a gateway that does not exist.
Bytes stranger_syn(const MacAddress& to_mac, const IpAddress& to, std::uint16_t port, Input& in);
// The answer of another host (10.0.0.3 and above) to an ARP request.
Bytes stranger_arp(const Bytes& request);

}  // namespace urnic::fuzz
