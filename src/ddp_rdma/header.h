// DDP and RDMAP headers of one segment (RFC 5041, 4; RFC 5040, 4; RFC 7306) as plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "ddp_rdma/violation.h"

namespace urnic::ddp {

enum class Opcode : std::uint8_t {
  Write = 0,
  ReadRequest = 1,
  ReadResponse = 2,
  Send = 3,
  SendInv = 4,
  SendSe = 5,
  SendSeInv = 6,
  Terminate = 7,
  Immediate = 8,  // RFC 7306, 6
  ImmediateSe = 9,
  AtomicRequest = 10,  // RFC 7306, 5
  AtomicResponse = 11
};
inline constexpr std::size_t kOpcodes = 12;

inline constexpr std::uint32_t kTaggedHeader = 14;
inline constexpr std::uint32_t kUntaggedHeader = 18;
inline constexpr std::uint32_t kReadRequestHeader = 46;     // untagged header + 28
inline constexpr std::uint32_t kImmediateData = 8;          // after the untagged header
inline constexpr std::uint32_t kAtomicResponseHeader = 30;  // untagged header + 12
inline constexpr std::uint32_t kMaxHeader = 46;
inline constexpr std::uint32_t kQnSend = 0, kQnReadRequest = 1, kQnTerminate = 2,
                               kQnAtomicResponse = 3;

constexpr bool carries_immediate(Opcode op) {
  return op == Opcode::Immediate || op == Opcode::ImmediateSe;
}
// True if the message uses a receive (queue 0).
constexpr bool uses_receive(Opcode op) {
  constexpr unsigned kThose = 0b11'0111'1000;
  return ((kThose >> static_cast<unsigned>(op)) & 1) != 0;
}

struct ReadRequest {
  std::uint32_t sink_stag = 0;
  std::uint64_t sink_to = 0;
  std::uint32_t size = 0;
  std::uint32_t source_stag = 0;
  std::uint64_t source_to = 0;
};

struct AtomicResponse {
  std::uint32_t id = 0;
  std::uint64_t original = 0;  // the old value of the target
};

struct SegmentHeader {
  Opcode op = Opcode::Write;
  bool last = false;
  // tagged
  std::uint32_t stag = 0;
  std::uint64_t to = 0;
  // untagged
  std::uint32_t inv_stag = 0;
  std::uint32_t qn = 0, msn = 0, mo = 0;
  ReadRequest read;             // ReadRequest only
  AtomicResponse atomic_reply;  // AtomicResponse only
  // Immediate, ImmediateSe: the first segment of the message begins with the Immediate Data. `mo`
  // is that of the payload after it, 8 less than on the wire.
  bool with_immediate = false;
  std::uint64_t immediate = 0;

  bool tagged() const { return op == Opcode::Write || op == Opcode::ReadResponse; }
};

struct ParsedSegment {
  SegmentHeader header;
  ByteView payload;  // after all headers; for Terminate: the Terminate header and the rest
};

// Checks everything that the header alone shows: lengths, DV, RV, opcode against T and QN, exact
// size of a Read Request and of atomics (the payload of an Atomic Request must be kAtomicRequest
// bytes with a known operation). Violations are rows of the one table (E-36).
Outcome<ParsedSegment, Violation> parse_segment(ByteView ulpdu);

// Writes the header to `dst` (kMaxHeader bytes); returns its length (14, 18, 26, 30 or 46).
std::uint32_t emit_header(const SegmentHeader&, std::uint8_t* dst);

// Writes MPA's length field for a ULPDU of `ulpdu` bytes, and then the header; `dst` has two bytes
// more than kMaxHeader. Returns the bytes written. Whole words are stored where they will be read
// as words, because a load that spans several recent stores waits for them.
std::uint32_t emit_fpdu_head(const SegmentHeader&, std::uint32_t ulpdu, std::uint8_t* dst);

}  // namespace urnic::ddp
