// Whole FPDUs out of the in-order bytes of a reassembly buffer, across segment and chunk edges
// (the SLOW path of OutLogic; RFC 5044 4.3: any segmentation).
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/stream_offset.h"
#include "mpa/framing.h"
#include "reassembly/buffer.h"

namespace urnic::reassembly {

enum class Extracted : std::uint8_t {
  NeedMore,   // no whole FPDU yet
  Fpdu,       // `ulpdu` is one, CRC good (or not checked)
  BadCrc,     // R-29; also a length no frame can have (E3)
  BadMarker,  // CRC good, but a marker does not point at the length field
};

// The FPDU at the start of contiguous bytes. On Fpdu and BadCrc `*fpdu_len` is set, on Fpdu
// `*ulpdu` lies within `bytes`.
Extracted next_fpdu(ByteView bytes, bool crc, ByteView* ulpdu, std::uint32_t* fpdu_len);

class Extractor {
 public:
  explicit Extractor(bool crc = true) : crc_(crc) {}
  void set_crc(bool crc) { crc_ = crc; }
  void set_framing(const mpa::Framing& framing) { framing_ = framing; }

  // The next FPDU at the buffer's read position, using only bytes below `in_order_end`. On Fpdu,
  // `*ulpdu` is valid until the next call and the FPDU's bytes have NOT been consumed: the caller
  // places and delivers, then calls buffer.consume(read_position + *fpdu_len).
  Extracted next(const Buffer& buffer, StreamOffset in_order_end, ByteView* ulpdu,
                 std::uint32_t* fpdu_len);
  // The FPDUs between the read position and `to` have been found good before they were stored, all
  // of them and in order: their CRC is not computed once more; markers are still looked at. Never
  // taken back, since what is stored in order is not stored anew.
  void checked(StreamOffset to) { checked_to_ = to; }
  // The buffer is empty: an idle connection keeps no scratch. (A stream that straddles chunks does
  // so once per chunk and is not dry in between.)
  void run_dry() {
    if (scratch_.capacity() != 0) std::vector<std::uint8_t>().swap(scratch_);
  }

 private:
  // The CRC of an FPDU that ends there is still to be looked at.
  bool to_check(StreamOffset end) const;
  Extracted next_framed(const Buffer& buffer, std::uint64_t have, StreamOffset in_order_end,
                        ByteView* ulpdu, std::uint32_t* fpdu_len);

  bool crc_;
  StreamOffset checked_to_;
  mpa::Framing framing_;
  // For FPDUs that straddle chunks, and ULPDUs without their markers; none while the buffer is dry.
  std::vector<std::uint8_t> scratch_;
};

}  // namespace urnic::reassembly
