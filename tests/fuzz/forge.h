// What a stranger or a broken machine on the way makes of frames: changed ones and invented ones,
// nearly all with right checksums, so that they get as far as possible.
#pragma once

#include "fault/tcp_frame.h"
#include "tests/fuzz/fuzz_port.h"
#include "tests/fuzz/input.h"

namespace urnic::fuzz {

// `frame` with one thing changed; as it was when it is no TCP segment.
Bytes mutate(Bytes frame, Input& in);
// A segment in two, cut anywhere; one when there is nothing to cut.
std::vector<Bytes> cut(const Bytes& frame, Input& in);
// A segment invented from one that was seen: by its sender (`back` false) or by its receiver.
Bytes forge(const Bytes& seen, bool back, Input& in);
// An ICMP error about a segment that was seen, for its sender.
Bytes forge_icmp(const Bytes& seen, Input& in);
// A SYN from an address where nobody is: on the net, or behind a gateway that is not there.
Bytes stranger_syn(const MacAddress& to_mac, const IpAddress& to, std::uint16_t port, Input& in);
// The answer of a stranger (10.0.0.3 and above) to an ARP request.
Bytes stranger_arp(const Bytes& request);

}  // namespace urnic::fuzz
