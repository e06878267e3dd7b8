// A management datagram as carried by UD to queue pair 1: always 256 bytes, of which the first 24
// are the common header. Only the class of connection management (0x07, version 2) is supported.
//
//   0 base version   1 class   2 class version   3 method   4 status (2)   6 class specific (2)
//   8 transaction id (8)   16 attribute (2)   18 reserved (2)   20 attribute modifier (4)
//
// Values; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"

namespace urnic::ib_cm {

inline constexpr std::size_t kMadBytes = 256;
inline constexpr std::size_t kMadHeaderBytes = 24;
inline constexpr std::size_t kBodyBytes = kMadBytes - kMadHeaderBytes;
using Mad = std::array<std::uint8_t, kMadBytes>;

// The messages of connection management.
enum class Attribute : std::uint16_t {
  Req = 0x10,
  Mra = 0x11,
  Rej = 0x12,
  Rep = 0x13,
  Rtu = 0x14,
  Dreq = 0x15,
  Drep = 0x16,
  SidrReq = 0x17,
  SidrRep = 0x18,
  Lap = 0x19,  // path migration: refused (IB-75)
  Apr = 0x1a,
};

// Why bytes are not a message of connection management, in the order of the checks (IB-142).
enum class MadFault : std::uint8_t {
  Length,
  BaseVersion,
  Class,
  ClassVersion,
  Method,
  Attribute,
};

struct MadHeader {
  std::uint64_t transaction = 0;
  Attribute attribute = Attribute::Req;
  std::uint32_t modifier = 0;  // 0 except for an offer or consent (consent.h)
};

Outcome<MadHeader, MadFault> read_header(ByteView mad);
// The header, followed by zeroes.
Mad make_mad(const MadHeader&);

}  // namespace urnic::ib_cm
