// Two urnic packets in the manufacturers' opcode range, which other implementations have to drop
// (S-6, S-7).
//
//   SACK   BTH, PSN: the last request accepted; AETH in ACK form; then
//            0 serial (4)   4 bitmap (4 to 252)
//          bit 7 of byte 4 is the request after that PSN, bit 6 the next one: 1, it is kept
//   hello  BTH, PSN: a first one of the connection (greeting.h); then
//            0 version, 1   1 flags: selective, answer, parts   2 reserved (2)
//
// The serial counts the SACKs of a queue pair: an older SACK does not revoke a newer one. A bit is
// not final: a kept packet may be dropped later, and only the PSN acknowledges.
//
// Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "ib/packet.h"

namespace urnic::ib {

inline constexpr std::uint32_t kSerialBytes = 4;
inline constexpr std::uint32_t kMostSackBits =
    2016;  // with the serial 256 bytes, the least path MTU
inline constexpr std::uint32_t kMostSackBytes = kSerialBytes + kMostSackBits / 8;
inline constexpr std::uint32_t kHelloBytes = 4;
using SackBytes = std::array<std::uint8_t, kMostSackBytes>;

struct Sack {
  Psn expected;  // the first request not accepted
  std::uint32_t serial = 0;
  ByteView bits;  // borrowed from the packet

  std::uint32_t size() const { return static_cast<std::uint32_t>(bits.size()) * 8; }
  // True if the peer has the request at expected + i, i < size().
  bool has(std::uint32_t i) const { return (bits[i / 8] >> (7 - i % 8) & 1) != 0; }
};

// nullopt: invalid length.
std::optional<Sack> parse_sack(const ParsedPacket&);

// Builds the payload of a SACK bit by bit.
class SackWriter {
 public:
  // `to` is cleared.
  SackWriter(SackBytes* to, std::uint32_t serial);
  // Sets the bit of the request `i` PSNs after the first one missing, 0 being that one; false if it
  // is too far away.
  bool set(std::uint32_t i);
  // The bytes set so far, with at least one word of bits.
  ByteView payload() const { return {to_->data(), bytes_}; }

 private:
  SackBytes* to_;
  std::uint32_t bytes_;
};

struct Hello {
  bool selective = false;  // sends and accepts SACKs
  bool answer = false;     // asks the other end for a hello as well
  bool parts = false;      // keeps parts of READs that are requested together (resources.h)
};
// nullopt: another version or length.
std::optional<Hello> parse_hello(const ParsedPacket&);
std::array<std::uint8_t, kHelloBytes> write_hello(const Hello&);

}  // namespace urnic::ib
