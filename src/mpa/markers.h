// MPA markers (RFC 5044, 4.2 and 4.3): where they lie, how long an FPDU is with them, putting them
// in and taking them out.
//
// Positions (`pos`) are counted from the first byte of full operation in that direction, markers
// included; a marker starts at every multiple of 512, the first at 0. FPDUs start at multiples of
// 4, so no marker ever splits a field. A marker between two FPDUs belongs to the second, which then
// begins with it; everything here takes the FPDU together with such a leading marker.
//
// For the absolute grid (a marker where the sequence number is a multiple of 512) pass the sequence
// number as `pos`.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "mpa/fpdu.h"

namespace urnic::mpa {

inline constexpr std::uint32_t kMarker = 4;
inline constexpr std::uint32_t kMarkerSpacing = 512;                    // markers counted
inline constexpr std::uint32_t kMarkerData = kMarkerSpacing - kMarker;  // between two markers
inline constexpr std::uint32_t kMaxFpduPointer = 0xfffc;                // 16 bits, the low two zero

// Bytes from `pos` to the next marker, 0 when one starts there.
constexpr std::uint32_t to_marker(std::uint64_t pos) {
  return static_cast<std::uint32_t>((0 - pos) % kMarkerSpacing);
}
// Whether an FPDU at `pos` begins with a marker; its length field then is 4 bytes further on.
constexpr bool leading_marker(std::uint64_t pos) {
  return to_marker(pos) == 0;
}
// Markers in `base` bytes of FPDU starting at `pos`: leading one included, one right behind not.
constexpr std::uint32_t markers_in(std::uint64_t pos, std::uint32_t base) {
  const std::uint32_t d = to_marker(pos);
  return d >= base ? 0 : 1 + (base - d - 1) / kMarkerData;
}
// Bytes of stream an FPDU at `pos` takes, leading marker included.
constexpr std::uint32_t marked_size(std::uint64_t pos, std::uint32_t ulpdu) {
  const std::uint32_t base = fpdu_size(ulpdu);
  return base + kMarker * markers_in(pos, base);
}
// Largest ULPDU whose FPDU fits `emss` bytes wherever it starts; never below kMinMulpdu.
constexpr std::uint32_t marked_mulpdu(std::uint32_t emss) {
  const std::uint32_t overhead =
      6 + kMarker * ((emss + kMarkerSpacing - 1) / kMarkerSpacing) + emss % 4;
  const std::uint32_t fit = emss > overhead ? emss - overhead : 0;
  return fit < kMinMulpdu ? kMinMulpdu : (fit > kMaxUlpdu ? kMaxUlpdu : fit);
}

struct Marker {
  std::uint16_t reserved = 0;      // sent 0, ignored when received
  std::uint16_t fpdu_pointer = 0;  // bytes back to the length field; the low two bits count as 0
};
// `p` has kMarker bytes.
inline Marker parse_marker(const std::uint8_t* p) {
  return {load_be16(p), load_be16(p + 2)};
}

// The FPDU at the start of `bytes`, which is stream position `pos`: its bytes as the length field
// says. nullopt while the length field is not there yet, or `pos` is no multiple of 4.
std::optional<std::uint32_t> marked_fpdu_length(ByteView bytes, std::uint64_t pos);

// `fpdu` without markers (as build_fpdu writes it) to `dst` as it must look at `pos`. The CRC is
// computed anew, or left zero without `crc`. `dst` has marked_size(pos, ulpdu) bytes and does not
// overlap. Returns the bytes written; 0 when `fpdu` is not one whole FPDU, `pos` is no multiple of
// 4, or the FPDU is so long that a marker could not point back to its start.
std::uint32_t insert_markers(ByteView fpdu, std::uint64_t pos, bool crc, std::uint8_t* dst);

enum class MarkedFpdu : std::uint8_t {
  Good,
  Incomplete,  // `fpdu` is shorter or longer than its length field says, or `pos` is no FPDU start
  BadCrc,      // 2/0/02
  BadMarker,   // CRC right, but a marker does not point at the length field: 2/0/03
};
// Checks a whole FPDU as received. Without `crc` the CRC field is not looked at.
MarkedFpdu check_marked(ByteView fpdu, std::uint64_t pos, bool crc);

// Does every marker of a whole FPDU at `pos` point at its length field (a leading one say 0)?
bool pointers_right(ByteView fpdu, std::uint64_t pos);

// `n` bytes of an FPDU at `pos` from byte `at` on, markers passed over, to `dst` (which may be
// the FPDU itself). They are all there.
void copy_unmarked(ByteView fpdu, std::uint64_t pos, std::uint32_t at, std::uint32_t n,
                   std::uint8_t* dst);

// The ULPDU of a whole FPDU as received, markers taken out, to `dst` (as many bytes as the length
// field says; `dst` may be `fpdu` itself). Returns the bytes, nullopt where check_marked says
// Incomplete.
std::optional<std::uint32_t> extract_marked(ByteView fpdu, std::uint64_t pos, std::uint8_t* dst);

}  // namespace urnic::mpa
