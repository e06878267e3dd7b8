// Validation unit 44: checksum and MPA CRC in one pass over the payload (D4, 8.2, R-68..R-70).
// Assumes of every segment that it begins with an FPDU; whether that was so is InLogic's question.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "mpa/framing.h"

namespace urnic::fastpath {

enum class FrameStatus : std::uint8_t {
  Valid,
  Invalid,    // fits, CRC differs
  TooLong,    // ends beyond the payload
  BadMarker,  // CRC right, but the marker grid says that this is no frame (check_markers)
};

struct alignas(16) FrameResult {  // so that counting them is a shift
  std::uint32_t offset = 0;       // of the FPDU in the payload
  std::uint32_t length = 0;       // whole FPDU; for TooLong what the length field asks for
  FrameStatus status = FrameStatus::Valid;
};

// Results of one segment. Reused from segment to segment so that nothing is allocated.
struct Validation {
  std::uint32_t sum = 0;            // unfolded Internet sum of the payload, all of it
  std::vector<FrameResult> frames;  // in order; the walk ends at the first Invalid or TooLong
  bool all_valid = false;           // every frame Valid and the last ends at the payload's end

  // CRCValidationPassed of Fig 10.
  bool passed() const { return all_valid; }
  // Bytes up to the first frame that is not Valid.
  std::uint32_t valid_bytes() const {
    if (frames.empty()) return 0;
    const FrameResult& last = frames.back();
    return last.offset + (last.status == FrameStatus::Valid ? last.length : 0);
  }
};

// Checksum the whole payload and walk its potential FPDUs. The payload must not be empty. Needs no
// connection context (E4, S202). Any number of threads, each with its own `out`.
void validate(ByteView payload, Validation& out);

// Running CRC32C state after a message and its own CRC, least significant byte first: the same
// number for every message. Comparing with it lets checksum and CRC run over the whole FPDU at
// once.
inline constexpr std::uint32_t kCrcResidue = 0xb798b438u;

// E1 and E2: `pos` is where the payload begins in the marker grid. For E1 that takes StartNum from
// the connection context; for E2 it is the sequence number itself.
void validate_marked(ByteView payload, std::uint32_t pos, Validation& out);

// E3: boundaries from the modified length alone, no context.
void validate_modified(ByteView payload, Validation& out);

// Holds the frames found Valid to the grid, once the context is at hand: a frame is one only if it
// begins at a multiple of four and its markers point at its length field (RFC 5044, 8). The first
// that does not becomes BadMarker and the last of the list. Reads no byte but lengths and markers.
void check_markers(mpa::Policy policy, ByteView payload, std::uint32_t pos, Validation& v);

}  // namespace urnic::fastpath
