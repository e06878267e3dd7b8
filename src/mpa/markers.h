// MPA markers (RFC 5044, 4.2 and 4.3): their positions, the size of FPDUs with markers, inserting
// and removing them.
//
// Positions (`pos`) count from the first byte of full operation in that direction, including
// markers. A marker starts at every multiple of 512, the first at 0. FPDUs start at multiples of 4,
// so a marker never splits a field. A marker between two FPDUs belongs to the second one, which
// then begins with it. All functions here take the FPDU together with such a leading marker.
//
// For the absolute grid (a marker at each sequence number that is a multiple of 512) pass the
// sequence number as `pos`.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "mpa/fpdu.h"

namespace urnic::mpa {

inline constexpr std::uint32_t kMarker = 4;
inline constexpr std::uint32_t kMarkerSpacing = 512;                    // including the marker
inline constexpr std::uint32_t kMarkerData = kMarkerSpacing - kMarker;  // between two markers
inline constexpr std::uint32_t kMaxFpduPointer = 0xfffc;                // 16 bits, the low two zero

// Bytes from `pos` to the next marker, 0 if one starts there.
constexpr std::uint32_t to_marker(std::uint64_t pos) {
  return static_cast<std::uint32_t>((0 - pos) % kMarkerSpacing);
}
// True if an FPDU at `pos` begins with a marker. Its length field is then 4 bytes later.
constexpr bool leading_marker(std::uint64_t pos) {
  return to_marker(pos) == 0;
}
// Markers in `base` bytes of FPDU that start at `pos`. Includes a leading marker, but not one
// directly after the FPDU.
constexpr std::uint32_t markers_in(std::uint64_t pos, std::uint32_t base) {
  const std::uint32_t d = to_marker(pos);
  return d >= base ? 0 : 1 + (base - d - 1) / kMarkerData;
}
// Stream bytes of an FPDU at `pos`, including a leading marker.
constexpr std::uint32_t marked_size(std::uint64_t pos, std::uint32_t ulpdu) {
  const std::uint32_t base = fpdu_size(ulpdu);
  return base + kMarker * markers_in(pos, base);
}
// Largest ULPDU whose FPDU fits `emss` bytes at any position; never below kMinMulpdu.
constexpr std::uint32_t marked_mulpdu(std::uint32_t emss) {
  const std::uint32_t overhead =
      6 + kMarker * ((emss + kMarkerSpacing - 1) / kMarkerSpacing) + emss % 4;
  const std::uint32_t fit = emss > overhead ? emss - overhead : 0;
  return fit < kMinMulpdu ? kMinMulpdu : (fit > kMaxUlpdu ? kMaxUlpdu : fit);
}

struct Marker {
  std::uint16_t reserved = 0;      // sent 0, ignored when received
  std::uint16_t fpdu_pointer = 0;  // bytes back to the length field; the low two bits are ignored
};
// `p` has kMarker bytes.
inline Marker parse_marker(const std::uint8_t* p) {
  return {load_be16(p), load_be16(p + 2)};
}

// Length, by its length field, of the FPDU at the start of `bytes`, which is stream position `pos`.
// nullopt while the length field is incomplete, or if `pos` is not a multiple of 4.
std::optional<std::uint32_t> marked_fpdu_length(ByteView bytes, std::uint64_t pos);

// Copies `fpdu`, which has no markers (as build_fpdu() writes it), to `dst` as it must look at
// `pos`. The CRC is recomputed, or zero if `crc` is false. `dst` must have marked_size(pos, ulpdu)
// bytes and must not overlap. Returns the bytes written. Returns 0 if `fpdu` is not exactly one
// FPDU, if `pos` is not a multiple of 4, or if the FPDU is so long that a marker could not point
// back to its start.
std::uint32_t insert_markers(ByteView fpdu, std::uint64_t pos, bool crc, std::uint8_t* dst);

enum class MarkedFpdu : std::uint8_t {
  Good,
  Incomplete,  // `fpdu` is shorter or longer than its length field tells, or no FPDU can start at
               // `pos`
  BadCrc,      // 2/0/02
  BadMarker,   // CRC correct, but a marker does not point at the length field: 2/0/03
};
// Checks a complete received FPDU. If `crc` is false the CRC field is not checked.
MarkedFpdu check_marked(ByteView fpdu, std::uint64_t pos, bool crc);

// True if every marker of a complete FPDU at `pos` points at its length field (a leading one must
// hold 0).
bool pointers_right(ByteView fpdu, std::uint64_t pos);

// Copies `n` bytes of an FPDU at `pos`, from byte `at` on, without markers, to `dst` (which may be
// the FPDU itself). The bytes must all be present.
void copy_unmarked(ByteView fpdu, std::uint64_t pos, std::uint32_t at, std::uint32_t n,
                   std::uint8_t* dst);

// Copies the ULPDU of a complete received FPDU, without markers, to `dst` (which needs the bytes of
// the length field and may be `fpdu` itself). Returns the number of bytes; nullopt if
// check_marked() returns Incomplete.
std::optional<std::uint32_t> extract_marked(ByteView fpdu, std::uint64_t pos, std::uint8_t* dst);

}  // namespace urnic::mpa
