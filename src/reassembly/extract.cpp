#include "reassembly/extract.h"

#include "base/crc32c.h"
#include "mpa/fpdu.h"

namespace urnic::reassembly {

Extracted Extractor::next(const Buffer& buffer, StreamOffset in_order_end, ByteView* ulpdu,
                          std::uint32_t* fpdu_len) {
  const std::uint64_t have =
      in_order_end > buffer.read_position() ? in_order_end - buffer.read_position() : 0;
  if (have < mpa::kLengthField) {
    // Run dry: an idle connection keeps no scratch. A stream that straddles chunks does so once per
    // chunk and is not dry in between.
    if (have == 0 && scratch_.capacity() != 0) std::vector<std::uint8_t>().swap(scratch_);
    return Extracted::NeedMore;
  }
  std::uint8_t field[mpa::kLengthField];
  buffer.copy(0, mpa::kLengthField, field);
  const std::uint32_t length = load_be16(field);
  const std::uint32_t size = mpa::fpdu_size(length);
  // With `have` known this costs nothing per segment, however finely the stream is cut.
  if (have < size) return Extracted::NeedMore;

  ByteView fpdu = buffer.view(0, size, in_order_end);
  if (fpdu.size() < size) {  // straddles chunks
    if (scratch_.size() < size) scratch_.resize(size);
    buffer.copy(0, size, scratch_.data());
    fpdu = ByteView(scratch_.data(), size);
  }
  *fpdu_len = size;
  if (crc_ && crc32c(fpdu.first(size - mpa::kCrcField)) != mpa::crc_of(fpdu)) {
    return Extracted::BadCrc;
  }
  *ulpdu = fpdu.subspan(mpa::kLengthField, length);
  return Extracted::Fpdu;
}

}  // namespace urnic::reassembly
