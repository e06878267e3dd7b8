// The reaction of a queue pair to CE marks on received packets (S-10): a CNP to its peer, at most
// one per 50 us.
//
//   BTH, opcode 0x81, PSN 0, BECN; 16 bytes of zero
//
// Owned by one queue pair.
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"
#include "ib/context.h"
#include "ib/packet.h"

namespace urnic::ib {

inline constexpr std::uint32_t kCnpBytes = 16;  // after the BTH

class Marks {
 public:
  static constexpr Duration kLeastApart = Duration::us(50);

  // A packet with a request or response payload arrived with a mark. True: a CNP will be sent.
  bool seen(Instant now) {
    ++seen_;
    if (sent_ != 0 && now < last_ + kLeastApart) return false;
    wanted_ = true;
    last_ = now;
    ++sent_;
    return true;
  }
  bool wanted() const { return wanted_; }
  // The CNP to send.
  PacketHeader next(const QpAttributes& qp) {
    wanted_ = false;
    PacketHeader h;
    h.bth.opcode = kCnpOpcode;
    h.bth.pkey = qp.pkey;
    h.bth.dest_qp = qp.dest_qp;
    h.bth.becn = true;
    return h;
  }
  static std::array<std::uint8_t, kCnpBytes> payload() { return {}; }
  // True if it is a well-formed CNP; the reserved bytes may have any value.
  static bool is_cnp(const ParsedPacket& p) {
    return p.header.bth.becn && p.payload.size() == kCnpBytes;
  }

  std::uint64_t marked() const { return seen_; }  // packets
  std::uint64_t cnps() const { return sent_; }

 private:
  bool wanted_ = false;
  Instant last_;  // when the last one became due
  std::uint64_t seen_ = 0, sent_ = 0;
};

}  // namespace urnic::ib
