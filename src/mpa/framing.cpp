#include "mpa/framing.h"

#include <array>
#include <cstring>

#include "base/crc32c.h"

namespace urnic::mpa {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"no-markers", "markers", "absolute-markers",
                                                    "modified-length"};

FrameShape modified_shape(std::uint16_t field, std::uint32_t at, std::uint32_t pos) {
  FrameShape s;
  const std::uint32_t frame = modified_frame(field);
  const std::uint32_t around =
      kLengthField + modified_pad(field) + kCrcField + kMarker * markers_inside(pos + at, frame);
  s.field = at;
  s.size = at + frame;
  s.possible = frame >= around;
  if (s.possible) {  // and a sender of that ULPDU would have made exactly this frame here
    s.ulpdu = frame - around;
    s.possible = pad_of(s.ulpdu) == modified_pad(field) && marked_size(pos, s.ulpdu) == s.size;
  }
  return s;
}

}  // namespace

std::string_view policy_name(Policy p) {
  return kNames[static_cast<std::size_t>(p)];
}

std::optional<Policy> policy_by_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Policy>(i);
  }
  return std::nullopt;
}

std::optional<FrameShape> frame_shape(Policy policy, ByteView bytes, std::uint32_t pos) {
  const std::uint32_t at = has_markers(policy) && leading_marker(pos) ? kMarker : 0;
  if (bytes.size() < at + kLengthField) return std::nullopt;
  const std::uint16_t field = load_be16(bytes.data() + at);
  if (policy == Policy::ModifiedLength) return modified_shape(field, at, pos);
  return FrameShape{framed_size(policy, pos, field), at, field, true};
}

MarkedFpdu check_framed(Policy policy, ByteView fpdu, std::uint32_t pos, bool crc) {
  const auto shape = frame_shape(policy, fpdu, pos);
  if (!shape || !shape->possible || shape->size != fpdu.size()) return MarkedFpdu::Incomplete;
  if (crc && crc32c(fpdu.first(fpdu.size() - kCrcField)) != crc_of(fpdu)) return MarkedFpdu::BadCrc;
  if (!has_markers(policy)) return MarkedFpdu::Good;
  return pointers_right(fpdu, pos) ? MarkedFpdu::Good : MarkedFpdu::BadMarker;
}

std::optional<std::uint32_t> strip_framed(Policy policy, ByteView fpdu, std::uint32_t pos,
                                          std::uint8_t* dst) {
  const auto shape = frame_shape(policy, fpdu, pos);
  if (!shape || !shape->possible || shape->size != fpdu.size()) return std::nullopt;
  if (has_markers(policy)) {
    copy_unmarked(fpdu, pos, shape->field + kLengthField, shape->ulpdu, dst);
  } else {
    std::memmove(dst, fpdu.data() + kLengthField, shape->ulpdu);
  }
  return shape->ulpdu;
}

}  // namespace urnic::mpa
