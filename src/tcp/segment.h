// A TCP segment as plain values (RFC 9293, 3.1; options of 7323 and 2018), its parser and emitter.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "tcp/seq.h"

namespace urnic::tcp {

inline constexpr std::size_t kHeaderMin = 20;
inline constexpr std::size_t kHeaderMax = 60;
// Bytes of the options of E-42, padding included.
inline constexpr std::uint32_t kCorruptionPermitted = 8;
inline constexpr std::uint32_t kCorrupted = 16;
// The identifier of the experimental option (RFC 6994 3): "urCR".
inline constexpr std::uint32_t kCorruptionId = 0x75724352;
// Two nops, kind 253, length 14: the beginning of the option that names a segment.
inline constexpr std::uint32_t kNopNopCorrupted = 0x0101fd0e;

enum Flag : std::uint16_t {
  kFin = 0x01,
  kSyn = 0x02,
  kRst = 0x04,
  kPsh = 0x08,
  kAck = 0x10,
  kUrg = 0x20,
  kEce = 0x40,
  kCwr = 0x80,
};

struct SackBlock {
  Seq begin, end;
  constexpr bool operator==(const SackBlock&) const = default;
};

// The options that were present. Absent ones keep their `has_` flag false.
struct Options {
  bool has_mss = false, has_wscale = false, sack_permitted = false;
  bool corruption_permitted = false;  // E-42, on SYN: segments with a wrong CRC may be named
  bool has_ts = false;
  bool has_corrupted = false;  // `corrupted` is the payload range of such a segment
  std::uint8_t sack_count = 0;
  std::uint8_t wscale = 0;
  std::uint16_t mss = 0;
  std::uint32_t tsval = 0, tsecr = 0;
  std::array<SackBlock, 4> sack{};
  SackBlock corrupted;
};

struct Segment {
  std::uint16_t src_port = 0, dst_port = 0;
  Seq seq, ack;
  std::uint16_t flags = 0;
  std::uint16_t window = 0;  // as on the wire, not scaled
  std::uint16_t urgent = 0;
  std::uint8_t ecn = 0;  // the two ECN bits of the IP header (RFC 3168)
  Options opts;
  ByteView payload;

  bool has(Flag f) const { return (flags & f) != 0; }
  // Sequence space taken: payload, SYN and FIN.
  std::uint32_t seq_len() const {
    return static_cast<std::uint32_t>(payload.size()) + (has(kSyn) ? 1u : 0u) +
           (has(kFin) ? 1u : 0u);
  }
};

enum class ParseError : std::uint8_t { TooShort, BadDataOffset, BadOption };

// Parses the header and options from `header`, which holds at least the whole TCP header and may
// hold more. `payload` stays empty: the caller sets it, since it may lie elsewhere. On success
// `*header_len` is the data offset in bytes. Malformed options end the parsing of options, as RFC
// 9293 3.1 allows, and the segment is kept. Only a bad data offset or a short header is an error.
Outcome<Segment, ParseError> parse_segment(ByteView header, std::size_t* header_len);

// parse_segment(), inline, for a header without options or with "nop nop timestamps" alone.
// `s->payload` and `s->ecn` stay as they are. For every other header it returns false and leaves
// `s` in any state.
inline bool parse_plain_segment(ByteView header, Segment* s, std::size_t* header_len) {
  if (header.size() < kHeaderMin) return false;
  const std::uint8_t* p = header.data();
  constexpr std::size_t kWithTimestamps = kHeaderMin + 12;
  constexpr std::uint32_t kNopNopTimestamps = 0x0101080a;
  const std::size_t offset = std::size_t{p[12]} >> 4 << 2;
  Options& o = s->opts;
  if (offset == kHeaderMin) {
    o.has_ts = false;
  } else if (offset == kWithTimestamps && header.size() >= offset &&
             load_be32(p + kHeaderMin) == kNopNopTimestamps) {
    o.has_ts = true;
    o.tsval = load_be32(p + kHeaderMin + 4);
    o.tsecr = load_be32(p + kHeaderMin + 8);
  } else {
    return false;
  }
  o.has_mss = o.has_wscale = o.sack_permitted = o.corruption_permitted = false;
  o.has_corrupted = false;
  o.sack_count = 0;
  s->src_port = load_be16(p);
  s->dst_port = load_be16(p + 2);
  s->seq = Seq(load_be32(p + 4));
  s->ack = Seq(load_be32(p + 8));
  s->flags = p[13];
  s->window = load_be16(p + 14);
  s->urgent = load_be16(p + 18);
  *header_len = offset;
  return true;
}

// Writes header and options (padded to 4) to `dst` (>= kHeaderMax) with the checksum field zero;
// returns the header length. Option order: mss, sackOK, TS, nop, wscale, nop nop corruption
// permitted on SYN; nop nop TS, nop nop corrupted, then nop nop SACK otherwise.
std::size_t emit_header(const Segment& seg, std::uint8_t* dst);

}  // namespace urnic::tcp
