// Framing policies (specification 8.3-8.6): the format of FPDUs in one direction of a connection,
// and what follows for sizes, boundaries and extracting the ULPDU. Each direction has its own
// policy: the receiver decides whether it wants markers (RFC 5044, 7.1).
//
// A policy with markers needs the position of its marker grid. `pos` has the meaning of markers.h:
// a marker starts at every multiple of 512, and only the value modulo 512 matters.
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
// Names in the configuration: "no-markers", "markers", "absolute-markers", "modified-length".
std::string_view policy_name(Policy);
std::optional<Policy> policy_by_name(std::string_view name);

// E2 and E3 are not in any RFC: both ends must be urnic and must agree on them (PolicyToken in
// startup.h).
constexpr bool is_extension(Policy p) {
  return p == Policy::AbsoluteMarkers || p == Policy::ModifiedLength;
}
constexpr bool has_markers(Policy p) {
  return p != Policy::NoMarkers;
}

// The framing of one direction. Offsets count bytes after the SYN; their low 32 bits are enough.
struct Framing {
  Policy policy = Policy::NoMarkers;
  std::uint32_t phase = 0;  // pos = offset + phase

  std::uint32_t pos(std::uint64_t offset) const {
    return static_cast<std::uint32_t>(offset) + phase;
  }
  bool marked() const { return has_markers(policy); }
};

// Returns the framing of a direction whose first byte after the SYN has sequence number `first_sn`
// and whose first FPDU begins at offset `start` (StartNum 248, as an offset).
constexpr Framing make_framing(Policy policy, std::uint32_t first_sn, std::uint64_t start) {
  return {policy,
          policy == Policy::AbsoluteMarkers ? first_sn : 0u - static_cast<std::uint32_t>(start)};
}

// Filler bytes after a start-up frame, so that full operation begins at a multiple of four in
// sequence space: the correcting factor 150 of E2. `sn`: sequence number of the byte after
// the frame.
constexpr std::uint32_t correcting_factor(std::uint32_t sn) {
  return (0u - sn) & 3u;
}

// Stream bytes of an FPDU that begins at `pos`, including a leading marker.
constexpr std::uint32_t framed_size(Policy policy, std::uint32_t pos, std::uint32_t ulpdu) {
  return has_markers(policy) ? marked_size(pos, ulpdu) : fpdu_size(ulpdu);
}
// Largest ULPDU whose FPDU fits `emss` bytes at any position.
constexpr std::uint32_t framed_mulpdu(Policy policy, std::uint32_t emss) {
  return has_markers(policy) ? marked_mulpdu(emss) : mulpdu(emss);
}

// ---- the modified length field (E3)

// Longest frame the field can hold, counted from the length field: 2^14 - 1 words.
inline constexpr std::uint32_t kMaxModifiedFrame = 0xfffc;

// 14 bits of words, two bits of pad bytes. `frame`: bytes from the length field to the end
// of the CRC, including markers between them but not a leading one.
constexpr std::uint16_t modified_length(std::uint32_t frame, std::uint32_t pad) {
  return static_cast<std::uint16_t>(frame | pad);
}
constexpr std::uint32_t modified_frame(std::uint16_t field) {
  return field & 0xfffcu;
}
constexpr std::uint32_t modified_pad(std::uint16_t field) {
  return field & 3u;
}
// Markers inside `frame` bytes that begin at `pos`, where no marker starts. A marker directly after
// them does not count.
constexpr std::uint32_t markers_inside(std::uint32_t pos, std::uint32_t frame) {
  const std::uint32_t d = to_marker(pos);
  return d >= frame ? 0 : 1 + (frame - d - 1) / kMarkerSpacing;
}

// ---- reading

struct FrameShape {
  std::uint32_t size = 0;   // size of the FPDU by its length field, including a leading marker
  std::uint32_t field = 0;  // position of the length field: 4 after a leading marker, else 0
  std::uint32_t ulpdu = 0;  // bytes of the ULPDU
  bool possible = true;     // false: no frame has such a length (E3 only); ulpdu is undefined
};

// Reads the shape of the FPDU at the start of `bytes`, which is position `pos`. nullopt while its
// length field is incomplete. With NoMarkers `pos` is not used.
std::optional<FrameShape> frame_shape(Policy policy, ByteView bytes, std::uint32_t pos);

// Checks a complete received FPDU: its length, its CRC (if `crc`), and that every marker in it
// points at its length field.
MarkedFpdu check_framed(Policy policy, ByteView fpdu, std::uint32_t pos, bool crc);

// Copies the ULPDU of a complete received FPDU, without markers, to `dst`, which must have
// `fpdu.size()` bytes. nullopt if `fpdu` is not exactly one FPDU.
std::optional<std::uint32_t> strip_framed(Policy policy, ByteView fpdu, std::uint32_t pos,
                                          std::uint8_t* dst);

}  // namespace urnic::mpa
