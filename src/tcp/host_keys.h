// The secrets of one host of TCP connections (E-49). All are derived by a keyed hash from one seed,
// which is random in production and chosen in simulation. An observer that sees values made with
// one of them (ports and initial sequence numbers are public) learns nothing about the others.
#pragma once

#include <cstdint>

#include "base/siphash.h"

namespace urnic::tcp {

struct HostKeys {
  SipKey isn;         // initial sequence numbers (RFC 6528)
  SipKey timestamps;  // offset of each connection's timestamp clock (RFC 7323 5.4)
  SipKey cookies;     // SYN cookies (RFC 4987)
  SipKey ports;       // ephemeral ports (RFC 6056)
  SipKey challenges;  // the share of challenge ACKs that is left out (RFC 5961 7)
  SipKey flows;       // positions in the flow table

  explicit HostKeys(std::uint64_t seed)
      : isn(derive(seed, 1)),
        timestamps(derive(seed, 2)),
        cookies(derive(seed, 3)),
        ports(derive(seed, 4)),
        challenges(derive(seed, 5)),
        flows(derive(seed, 6)) {}

 private:
  static SipKey derive(std::uint64_t seed, std::uint8_t what) {
    constexpr std::uint64_t kOurs = 0x75726e69632d7463;
    const std::uint8_t first[] = {what, 0}, second[] = {what, 1};
    const SipKey key{seed, kOurs};
    return {siphash24(key, ByteView{first, 2}), siphash24(key, ByteView{second, 2})};
  }
};

}  // namespace urnic::tcp
