// Writes the bytes of the outgoing stream: FPDUs are built from registered memory in one pass.
// Copies are kept if rebuilding could change bytes that the peer may already have (E-20..E-22).
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "ddp_rdma/sender_state.h"

namespace urnic::ddp {

// Views of one FPDU without CRC: head and tail are in this struct, the payload in registered
// memory.
struct FpduView {
  static constexpr std::uint32_t kMaxPieces = kMaxSges;
  std::array<std::uint8_t, 2 + kMaxHeader> head;
  std::array<std::uint8_t, 8> tail;  // pad and a zero CRC field
  std::array<ByteView, kMaxPieces> pieces;
  std::uint32_t head_bytes = 0, tail_bytes = 0, count = 0;
};

// Same as Sender::fill and Sender::view.
std::uint32_t fill_segment(SenderState& s, StreamOffset begin, std::uint32_t len, std::uint8_t* dst,
                           bool* ok);
bool view_fpdu(SenderState& s, StreamOffset begin, std::uint32_t len, std::uint32_t worth,
               FpduView* out, std::uint32_t* skip);
// Same as Sender::note_source_removed.
void note_source_removed(SenderState& s, StreamOffset at);

// Replaces the record's source by a copy; `*sum` is the sum of all its bytes. Returns false if the
// source is gone.
bool capture(SenderState& s, Record& r, std::uint32_t* sum);

}  // namespace urnic::ddp
