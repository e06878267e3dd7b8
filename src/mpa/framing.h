// Framing policies (specification 8.3-8.6): how FPDUs look in one direction of one connection, and
// what that makes of sizes, boundaries and the way back to the ULPDU. Each direction has its own:
// the receiver decides whether it wants markers (RFC 5044, 7.1).
//
// A policy with markers needs to know where its grid lies. `pos` is what markers.h calls it: a
// marker starts wherever it is a multiple of 512, and only its value modulo 512 matters.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "mpa/fpdu.h"
#include "mpa/markers.h"

namespace urnic::mpa {

enum class Policy : std::uint8_t {
  NoMarkers,        // E4, RFC 5044 with M=0
  Markers,          // E1, RFC 5044 with M=1: the grid begins at StartNum
  AbsoluteMarkers,  // E2: a marker where the sequence number is a multiple of 512
  ModifiedLength,   // E3: grid as E1; the length field counts the whole frame
};
// As the configuration says it: "no-markers", "markers", "absolute-markers", "modified-length".
std::string_view policy_name(Policy);
std::optional<Policy> policy_by_name(std::string_view name);

// E2 and E3 are not in any RFC: both ends must be urnic and say so (PolicyToken in startup.h).
constexpr bool is_extension(Policy p) {
  return p == Policy::AbsoluteMarkers || p == Policy::ModifiedLength;
}
constexpr bool has_markers(Policy p) {
  return p != Policy::NoMarkers;
}

// The framing of one direction. Offsets count bytes behind the SYN; their low 32 bits will do.
struct Framing {
  Policy policy = Policy::NoMarkers;
  std::uint32_t phase = 0;  // pos = offset + phase

  std::uint32_t pos(std::uint64_t offset) const {
    return static_cast<std::uint32_t>(offset) + phase;
  }
  bool marked() const { return has_markers(policy); }
};

// Framing of a direction whose first byte behind the SYN has sequence number `first_sn` and whose
// first FPDU begins at offset `start` (StartNum 248, as an offset).
constexpr Framing make_framing(Policy policy, std::uint32_t first_sn, std::uint64_t start) {
  return {policy,
          policy == Policy::AbsoluteMarkers ? first_sn : 0u - static_cast<std::uint32_t>(start)};
}

// Filler bytes behind a start-up frame so that full operation begins at a multiple of four in
// sequence space: the correcting factor 150 of E2. `sn` is that of the byte behind it.
constexpr std::uint32_t correcting_factor(std::uint32_t sn) {
  return (0u - sn) & 3u;
}

// Bytes of stream an FPDU that begins at `pos` takes, a leading marker included.
constexpr std::uint32_t framed_size(Policy policy, std::uint32_t pos, std::uint32_t ulpdu) {
  return has_markers(policy) ? marked_size(pos, ulpdu) : fpdu_size(ulpdu);
}
// Largest ULPDU whose FPDU fits `emss` bytes wherever it begins.
constexpr std::uint32_t framed_mulpdu(Policy policy, std::uint32_t emss) {
  return has_markers(policy) ? marked_mulpdu(emss) : mulpdu(emss);
}

// ---- the modified length field (E3)

// Longest frame it can say, from the length field on: 2^14 - 1 words.
inline constexpr std::uint32_t kMaxModifiedFrame = 0xfffc;

// 14 bits of words, two bits of pad bytes. `frame`: bytes from the length field to the end
// of the CRC, markers between them counted, a leading one not.
constexpr std::uint16_t modified_length(std::uint32_t frame, std::uint32_t pad) {
  return static_cast<std::uint16_t>(frame | pad);
}
constexpr std::uint32_t modified_frame(std::uint16_t field) {
  return field & 0xfffcu;
}
constexpr std::uint32_t modified_pad(std::uint16_t field) {
  return field & 3u;
}
// Markers strictly inside `frame` bytes that begin at `pos` with something else; one right behind
// them not.
constexpr std::uint32_t markers_inside(std::uint32_t pos, std::uint32_t frame) {
  const std::uint32_t d = to_marker(pos);
  return d >= frame ? 0 : 1 + (frame - d - 1) / kMarkerSpacing;
}

// ---- reading

struct FrameShape {
  std::uint32_t size = 0;   // of the FPDU as the length field says, leading marker included
  std::uint32_t field = 0;  // where the length field is: 4 behind a leading marker, else 0
  std::uint32_t ulpdu = 0;  // bytes of the ULPDU
  bool possible = true;     // false: no frame has such a length (E3 only); ulpdu means nothing
};

// What the FPDU at the start of `bytes`, position `pos`, says of itself; nullopt while its length
// field is not there. With NoMarkers `pos` is not looked at.
std::optional<FrameShape> frame_shape(Policy policy, ByteView bytes, std::uint32_t pos);

// Checks a whole FPDU as received: its length, its CRC (with `crc`), and that every marker in it
// points at its length field.
MarkedFpdu check_framed(Policy policy, ByteView fpdu, std::uint32_t pos, bool crc);

// The ULPDU of a whole FPDU as received, markers taken out, to `dst`, which has room for
// `fpdu.size()` bytes. nullopt when `fpdu` is not one whole FPDU.
std::optional<std::uint32_t> strip_framed(Policy policy, ByteView fpdu, std::uint32_t pos,
                                          std::uint8_t* dst);

}  // namespace urnic::mpa
