#include "mpa/markers.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"

namespace urnic::mpa {
namespace {

// Start of the length field within an FPDU at `pos`.
std::uint32_t length_field_at(std::uint64_t pos) {
  return leading_marker(pos) ? kMarker : 0;
}

// True if `fpdu` is exactly one FPDU that starts at `pos`.
bool is_whole(ByteView fpdu, std::uint64_t pos) {
  const auto length = marked_fpdu_length(fpdu, pos);
  return length.has_value() && *length == fpdu.size();
}

// Bytes from `at` within an FPDU at `pos` up to the next marker or to `end`; 0 if a marker starts
// there.
std::uint32_t run(std::uint64_t pos, std::uint32_t at, std::uint32_t end) {
  return std::min(to_marker(pos + at), end - at);
}

}  // namespace

std::optional<std::uint32_t> marked_fpdu_length(ByteView bytes, std::uint64_t pos) {
  const std::uint32_t field = length_field_at(pos);
  if (pos % 4 != 0 || bytes.size() < field + kLengthField) return std::nullopt;
  return marked_size(pos, load_be16(bytes.data() + field));
}

std::uint32_t insert_markers(ByteView fpdu, std::uint64_t pos, bool crc, std::uint8_t* dst) {
  if (pos % 4 != 0 || fpdu.size() < kLengthField) return 0;
  const std::uint32_t ulpdu = load_be16(fpdu.data());
  if (fpdu_size(ulpdu) != fpdu.size()) return 0;
  const std::uint32_t total = marked_size(pos, ulpdu);
  const std::uint32_t field = length_field_at(pos);
  const std::uint32_t markers = markers_in(pos, fpdu_size(ulpdu));
  if (markers != 0) {
    const std::uint32_t last = to_marker(pos) + (markers - 1) * kMarkerSpacing;
    if (last > field + kMaxFpduPointer) return 0;
  }

  const std::uint32_t body = total - kCrcField;  // the CRC is last, so a marker before it is in the
                                                 // body
  std::uint32_t from = 0;
  for (std::uint32_t at = 0; at < body;) {
    if (to_marker(pos + at) == 0) {
      store_be32(dst + at, at == 0 ? 0 : at - field);
      at += kMarker;
      continue;
    }
    const std::uint32_t n = run(pos, at, body);
    std::memcpy(dst + at, fpdu.data() + from, n);
    from += n;
    at += n;
  }
  store_le32(dst + body, crc ? crc32c(ByteView(dst, body)) : 0);
  return total;
}

bool pointers_right(ByteView fpdu, std::uint64_t pos) {
  const std::uint32_t field = length_field_at(pos);
  // A leading marker is before the length field and holds 0.
  for (std::size_t at = to_marker(pos); at < fpdu.size(); at += kMarkerSpacing) {
    const std::uint32_t want = at == 0 ? 0 : static_cast<std::uint32_t>(at) - field;
    if ((parse_marker(fpdu.data() + at).fpdu_pointer & ~3u) != want) return false;
  }
  return true;
}

MarkedFpdu check_marked(ByteView fpdu, std::uint64_t pos, bool crc) {
  if (!is_whole(fpdu, pos)) return MarkedFpdu::Incomplete;
  if (crc && crc32c(fpdu.first(fpdu.size() - kCrcField)) != crc_of(fpdu)) return MarkedFpdu::BadCrc;
  return pointers_right(fpdu, pos) ? MarkedFpdu::Good : MarkedFpdu::BadMarker;
}

void copy_unmarked(ByteView fpdu, std::uint64_t pos, std::uint32_t at, std::uint32_t n,
                   std::uint8_t* dst) {
  for (std::uint32_t done = 0; done < n;) {
    if (to_marker(pos + at) == 0) at += kMarker;
    const std::uint32_t piece = run(pos, at, at + (n - done));
    std::memmove(dst + done, fpdu.data() + at, piece);
    done += piece;
    at += piece;
  }
}

std::optional<std::uint32_t> extract_marked(ByteView fpdu, std::uint64_t pos, std::uint8_t* dst) {
  if (!is_whole(fpdu, pos)) return std::nullopt;
  const std::uint32_t at = length_field_at(pos);
  const std::uint32_t ulpdu = load_be16(fpdu.data() + at);
  copy_unmarked(fpdu, pos, at + kLengthField, ulpdu, dst);
  return ulpdu;
}

}  // namespace urnic::mpa
