#include "reassembly/extract.h"

#include <algorithm>

#include "base/crc32c.h"
#include "mpa/fpdu.h"

namespace urnic::reassembly {

namespace {

// `fpdu` is complete, and its length field holds `length`.
Extracted judge(ByteView fpdu, std::uint32_t length, bool crc, ByteView* ulpdu) {
  if (crc && crc32c(fpdu.first(fpdu.size() - mpa::kCrcField)) != mpa::crc_of(fpdu)) {
    return Extracted::BadCrc;
  }
  *ulpdu = fpdu.subspan(mpa::kLengthField, length);
  return Extracted::Fpdu;
}

}  // namespace

Extracted next_fpdu(ByteView bytes, bool crc, ByteView* ulpdu, std::uint32_t* fpdu_len) {
  if (bytes.size() < mpa::kLengthField) return Extracted::NeedMore;
  const std::uint32_t length = load_be16(bytes.data());
  const std::uint32_t size = mpa::fpdu_size(length);
  if (bytes.size() < size) return Extracted::NeedMore;
  *fpdu_len = size;
  return judge(bytes.first(size), length, crc, ulpdu);
}

Extracted Extractor::next(const Buffer& buffer, StreamOffset in_order_end, ByteView* ulpdu,
                          std::uint32_t* fpdu_len) {
  const std::uint64_t have =
      in_order_end > buffer.read_position() ? in_order_end - buffer.read_position() : 0;
  if (have < mpa::kLengthField) {
    if (have == 0) run_dry();
    return Extracted::NeedMore;
  }
  if (framing_.marked()) [[unlikely]]
    return next_framed(buffer, have, in_order_end, ulpdu, fpdu_len);
  // Nearly always the whole FPDU lies in one chunk.
  ByteView fpdu = buffer.view(0, kGuarantee, in_order_end);
  std::uint8_t field[mpa::kLengthField];
  if (fpdu.size() < mpa::kLengthField) buffer.copy(0, mpa::kLengthField, field);
  const std::uint32_t length = load_be16(fpdu.size() < mpa::kLengthField ? field : fpdu.data());
  const std::uint32_t size = mpa::fpdu_size(length);
  // Since `have` is known, this costs no work per segment, however small the pieces are.
  if (have < size) return Extracted::NeedMore;

  if (fpdu.size() >= size) [[likely]] {
    fpdu = fpdu.first(size);
  } else {  // crosses a chunk edge
    if (scratch_.size() < size) scratch_.resize(size);
    buffer.copy(0, size, scratch_.data());
    fpdu = ByteView(scratch_.data(), size);
  }
  *fpdu_len = size;
  return judge(fpdu, length, to_check(buffer.read_position() + size), ulpdu);
}

bool Extractor::to_check(StreamOffset end) const {
  return crc_ && end > checked_to_;
}

// The same for a policy with markers. The ULPDU is always copied to the scratch buffer, since
// markers split it.
Extracted Extractor::next_framed(const Buffer& buffer, std::uint64_t have,
                                 StreamOffset in_order_end, ByteView* ulpdu,
                                 std::uint32_t* fpdu_len) {
  const std::uint32_t pos = framing_.pos(buffer.read_position().value());
  std::uint8_t head[mpa::kMarker + mpa::kLengthField];
  const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(have, sizeof head));
  buffer.copy(0, n, head);
  const auto shape = mpa::frame_shape(framing_.policy, {head, n}, pos);
  if (!shape) return Extracted::NeedMore;
  *fpdu_len = shape->size;
  if (!shape->possible) return Extracted::BadCrc;
  if (have < shape->size) return Extracted::NeedMore;

  if (scratch_.size() < shape->size) scratch_.resize(shape->size);
  ByteView fpdu = buffer.view(0, shape->size, in_order_end);
  if (fpdu.size() < shape->size) {
    buffer.copy(0, shape->size, scratch_.data());
    fpdu = ByteView(scratch_).first(shape->size);
  }
  switch (mpa::check_framed(framing_.policy, fpdu, pos,
                            to_check(buffer.read_position() + shape->size))) {
    case mpa::MarkedFpdu::Good:
      break;
    case mpa::MarkedFpdu::BadMarker:
      return Extracted::BadMarker;
    case mpa::MarkedFpdu::Incomplete:
    case mpa::MarkedFpdu::BadCrc:
      return Extracted::BadCrc;
  }
  const auto stripped = mpa::strip_framed(framing_.policy, fpdu, pos, scratch_.data());
  *ulpdu = ByteView(scratch_).first(stripped.value_or(0));
  return Extracted::Fpdu;
}

}  // namespace urnic::reassembly
