// Bytes of the outgoing stream: FPDUs built from registered memory in one pass, copies kept where
// rebuilding could change bytes the peer may already hold (E-20..E-22).
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "ddp_rdma/sender_state.h"

namespace urnic::ddp {

// One FPDU without CRC as it lies: head and tail in here, the payload in registered memory.
struct FpduView {
  static constexpr std::uint32_t kMaxPieces = kMaxSges;
  std::array<std::uint8_t, 2 + kMaxHeader> head;
  std::array<std::uint8_t, 8> tail;  // pad and the zero of the CRC field
  std::array<ByteView, kMaxPieces> pieces;
  std::uint32_t head_bytes = 0, tail_bytes = 0, count = 0;
};

// As Sender::fill and Sender::view.
std::uint32_t fill_segment(SenderState& s, StreamOffset begin, std::uint32_t len, std::uint8_t* dst,
                           bool* ok);
bool view_fpdu(SenderState& s, StreamOffset begin, std::uint32_t len, std::uint32_t worth,
               FpduView* out, std::uint32_t* skip);
// As Sender::note_source_gone.
void note_source_gone(SenderState& s, StreamOffset at);

// The record's bytes become a copy; `*sum` is that of all of them. False when its source has gone.
bool capture(SenderState& s, Record& r, std::uint32_t* sum);

}  // namespace urnic::ddp
