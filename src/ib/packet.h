// One packet of the transport inside a UDP datagram: BTH, further headers by opcode, payload, pad,
// ICRC. Read and written by offsets; all fields are big endian except the ICRC (icrc.h), which is
// not checked here.
//
// Values and views; any thread. A parsed packet borrows the bytes it was parsed from.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "ib/opcode_table.h"
#include "ib/psn.h"

namespace urnic::ib {

inline constexpr std::uint16_t kUdpPort = 4791;
inline constexpr std::uint16_t kDefaultPkey = 0xffff;
inline constexpr std::uint32_t kBthBytes = 12;
inline constexpr std::uint32_t kIcrcBytes = 4;
inline constexpr std::uint32_t kXrcEthBytes = 4;
inline constexpr std::uint32_t kMaxHeaderBytes = 52;  // RD: BTH, RDETH, DETH, AtomicETH
inline constexpr std::uint32_t kMaxPmtu = 4096;
// The largest datagram payload: headers, a full packet, ICRC.
inline constexpr std::uint32_t kMaxPacketBytes = kMaxHeaderBytes + kMaxPmtu + kIcrcBytes;
// The maximum of bytes in a message (RETH's DMALen, IB-14, IB-28).
inline constexpr std::uint32_t kMaxMessageBytes = 1u << 31;

struct Bth {
  Opcode opcode;
  bool solicited = false;  // SE
  bool migrated = true;    // M; always set without path migration, never checked
  std::uint8_t pad = 0;    // bytes after the payload, 0..3; only set by parse(), computed by emit()
  std::uint8_t version = 0;  // TVer, 4 bits; must be 0
  std::uint16_t pkey = kDefaultPkey;
  bool fecn = false, becn = false;
  std::uint32_t dest_qp = 0;  // 24 bits
  bool ack_request = false;   // A
  Psn psn;
};

struct Reth {
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;  // DMALen: bytes of the whole message
};

struct AtomicEth {
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;
};

struct Deth {
  std::uint32_t qkey = 0;
  std::uint32_t source_qp = 0;  // 24 bits
};

// Bits 6:5 of the syndrome.
enum class AckKind : std::uint8_t { Ack = 0, RnrNak = 1, Reserved = 2, Nak = 3 };
// Bits 4:0 of a NAK; other values are reserved: a requester discards the packet (IB-4).
enum class NakCode : std::uint8_t {
  SequenceError = 0,
  InvalidRequest = 1,
  RemoteAccess = 2,
  RemoteOperational = 3,
  InvalidRdRequest = 4,  // or XRC: a queue of another domain
  OperationInProgress = 5,
};
inline constexpr std::uint8_t kNoCredits = 31;  // in an ACK: no information about credits

// The first byte of the AETH (IB-3). Bit 7 is reserved and sent as 0.
struct Syndrome {
  std::uint8_t byte = kNoCredits;

  static constexpr Syndrome ack(std::uint8_t credits) { return {masked(0x00, credits)}; }
  static constexpr Syndrome rnr_nak(std::uint8_t timer) { return {masked(0x20, timer)}; }
  static constexpr Syndrome nak(NakCode code) {
    return {masked(0x60, static_cast<std::uint8_t>(code))};
  }
  constexpr AckKind kind() const { return static_cast<AckKind>(byte >> 5 & 3); }
  // Credit code, RNR timer code or NakCode, by kind().
  constexpr std::uint8_t value() const { return byte & 0x1f; }
  constexpr NakCode code() const { return static_cast<NakCode>(value()); }
  // Bit 7 is set, the kind is reserved, or it is a NAK of a reserved code.
  constexpr bool reserved() const {
    return (byte & 0x80) != 0 || kind() == AckKind::Reserved ||
           (kind() == AckKind::Nak && value() > 5);
  }
  constexpr bool operator==(const Syndrome&) const = default;

 private:
  static constexpr std::uint8_t masked(unsigned kind, std::uint8_t value) {
    return static_cast<std::uint8_t>(kind | (value & 0x1f));
  }
};

struct Aeth {
  Syndrome syndrome;
  Msn msn;
};

// All headers of a packet; only those in row(bth.opcode).headers are valid.
struct PacketHeader {
  Bth bth;
  Reth reth;
  AtomicEth atomic;
  Aeth aeth;
  std::uint64_t original = 0;   // AtomicAckETH: the value before
  std::uint32_t immediate = 0;  // ImmDt, as a number; the bytes are big endian
  std::uint32_t inv_rkey = 0;   // IETH
  Deth deth;
  std::uint32_t srq = 0;         // XRCETH: number of a shared receive queue, 24 bits
  std::uint32_t ee_context = 0;  // RDETH, 24 bits: of the receiving end

  const OpcodeRow& row() const { return ib::row(bth.opcode); }
};

struct ParsedPacket {
  PacketHeader header;
  ByteView payload;  // without pad and ICRC
};

// Why bytes are not a packet.
enum class Malformed : std::uint8_t {
  Short,    // shorter than BTH and ICRC
  Uneven,   // not a multiple of four bytes
  Headers,  // too short for the headers of its opcode
  Pad,      // PadCnt exceeds the bytes after the headers
};

// `datagram`: the payload of UDP, BTH to ICRC. Checks only lengths; for a reserved opcode
// everything after the BTH is payload. Versions, P_Keys and the path MTU are checked elsewhere
// (check.h, responder.h).
Outcome<ParsedPacket, Malformed> parse_packet(ByteView datagram);

// PadCnt for that many bytes of payload.
constexpr std::uint8_t pad_of(std::size_t payload) {
  return static_cast<std::uint8_t>((0 - payload) & 3);
}
// Bytes of BTH and headers.
constexpr std::uint32_t header_bytes(Opcode o) {
  return kBthBytes + row(o).header_bytes;
}
// Bytes of the whole packet, ICRC included.
constexpr std::size_t packet_bytes(Opcode o, std::size_t payload) {
  return header_bytes(o) + payload + pad_of(payload) + kIcrcBytes;
}

// Writes BTH and headers for a payload of `payload` bytes to `dst`, which must have room for
// header_bytes(); returns that. bth.opcode must be known.
std::uint32_t emit_headers(const PacketHeader&, std::size_t payload, std::uint8_t* dst);
// The first eight bytes of its BTH, without AckReq and PSN, as a big-endian number.
std::uint64_t bth_front(const PacketHeader&, std::size_t payload);
// Writes headers, payload and pad to `dst` and leaves the last four bytes, the ICRC, unchanged.
// `dst` must have room for packet_bytes(), which is returned. `payload` may already lie at its
// place, dst + header_bytes().
std::size_t emit_packet(const PacketHeader&, ByteView payload, std::uint8_t* dst);

}  // namespace urnic::ib
