// Extracts whole FPDUs from the in-order bytes of a reassembly buffer, across segment and chunk
// edges (the SLOW path of OutLogic; RFC 5044 4.3: any segmentation).
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
  Fpdu,       // `ulpdu` is a ULPDU, CRC correct (or not checked)
  BadCrc,     // R-29; also a length that no frame can have (E3)
  BadMarker,  // CRC correct, but a marker does not point at the length field
};

// Reads the FPDU at the start of contiguous bytes. Sets `*fpdu_len` on Fpdu and BadCrc, and on Fpdu
// `*ulpdu`, which lies within `bytes`.
Extracted next_fpdu(ByteView bytes, bool crc, ByteView* ulpdu, std::uint32_t* fpdu_len);

class Extractor {
 public:
  explicit Extractor(bool crc = true) : crc_(crc) {}
  void set_crc(bool crc) { crc_ = crc; }
  void set_framing(const mpa::Framing& framing) { framing_ = framing; }

  // The next FPDU at the buffer's read position, using only bytes below `in_order_end`. On Fpdu,
  // `*ulpdu` is valid until the next call, and the FPDU's bytes have NOT been consumed: the caller
  // places and delivers, then calls buffer.consume(read_position + *fpdu_len).
  Extracted next(const Buffer& buffer, StreamOffset in_order_end, ByteView* ulpdu,
                 std::uint32_t* fpdu_len);
  // The FPDUs between the read position and `to` were validated before they were stored, all of
  // them and in order. Their CRC is not computed again; markers are still checked. This stays true,
  // since bytes stored in order are not stored again.
  void checked(StreamOffset to) { checked_to_ = to; }
  // Call this when the buffer is empty: an idle connection keeps no scratch buffer. (A stream that
  // crosses chunk edges does so once per chunk, and its buffer is not empty in between.)
  void run_dry() {
    if (scratch_.capacity() != 0) std::vector<std::uint8_t>().swap(scratch_);
  }

 private:
  // True if the CRC of an FPDU that ends there must still be checked.
  bool to_check(StreamOffset end) const;
  Extracted next_framed(const Buffer& buffer, std::uint64_t have, StreamOffset in_order_end,
                        ByteView* ulpdu, std::uint32_t* fpdu_len);

  bool crc_;
  StreamOffset checked_to_;
  mpa::Framing framing_;
  // Holds FPDUs that cross chunk edges, and ULPDUs without their markers. Freed when the buffer is
  // empty.
  std::vector<std::uint8_t> scratch_;
};

}  // namespace urnic::reassembly
