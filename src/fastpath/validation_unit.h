// Validation unit 44: checksum and MPA CRC in one pass over the payload (D4, 8.2, R-68..R-70).
// Assumes that every segment begins with an FPDU; InLogic decides whether that was right.
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
  BadMarker,  // CRC correct, but the marker grid shows that this is not a frame (check_markers)
};

struct alignas(16) FrameResult {  // so that counting them is a shift
  std::uint32_t offset = 0;       // offset of the FPDU in the payload
  std::uint32_t length = 0;       // whole FPDU; for TooLong the size by the length field
  FrameStatus status = FrameStatus::Valid;
};

// Results for one segment. Reused for each segment, so that nothing is allocated.
struct Validation {
  std::uint32_t sum = 0;            // unfolded Internet sum of the whole payload
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

// Checksums the whole payload and checks its potential FPDUs. The payload must not be empty. Needs
// no connection context (E4, S202). Thread-safe if each thread has its own `out`.
void validate(ByteView payload, Validation& out);

// CRC32C state after a message and its own CRC, least significant byte first. It is the same for
// every message, so checksum and CRC can run over the whole FPDU at once and be compared with it.
inline constexpr std::uint32_t kCrcResidue = 0xb798b438u;

// E1 and E2: `pos` is the position of the payload in the marker grid. For E1 it is derived from
// StartNum in the connection context; for E2 it is the sequence number itself.
void validate_marked(ByteView payload, std::uint32_t pos, Validation& out);

// E3: finds boundaries from the modified length alone, without a context.
void validate_modified(ByteView payload, Validation& out);

// Checks the frames found Valid against the grid, once the context is known. A frame must begin at
// a multiple of four, and its markers must point at its length field (RFC 5044, 8). The first frame
// that fails becomes BadMarker, and the list ends with it. Reads only length fields and markers.
void check_markers(mpa::Policy policy, ByteView payload, std::uint32_t pos, Validation& v);

}  // namespace urnic::fastpath
