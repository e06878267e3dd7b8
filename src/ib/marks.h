// What a queue pair does about CE marks on what it receives (S-10): a CNP to its peer, one for each
// 50 us at most, whatever comes.
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

inline constexpr std::uint32_t kCnpBytes = 16;  // behind the BTH

class Marks {
 public:
  static constexpr Duration kLeastApart = Duration::us(50);

  // A packet that carries a request or payload of an answer has come with a mark. True: it is told.
  bool seen(Instant now) {
    ++seen_;
    if (sent_ != 0 && now < last_ + kLeastApart) return false;
    wanted_ = true;
    last_ = now;
    ++sent_;
    return true;
  }
  bool wanted() const { return wanted_; }
  // It leaves.
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
  // As it should be; the reserved bytes may be anything.
  static bool is_cnp(const ParsedPacket& p) {
    return p.header.bth.becn && p.payload.size() == kCnpBytes;
  }

  std::uint64_t marked() const { return seen_; }  // packets
  std::uint64_t cnps() const { return sent_; }

 private:
  bool wanted_ = false;
  Instant last_;  // that one was wanted
  std::uint64_t seen_ = 0, sent_ = 0;
};

}  // namespace urnic::ib
