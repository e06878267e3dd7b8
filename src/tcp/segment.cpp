#include "tcp/segment.h"

#include <algorithm>
#include <cstring>

namespace urnic::tcp {
namespace {

enum OptionKind : std::uint8_t {
  kOptEnd = 0,
  kOptNop = 1,
  kOptMss = 2,            // RFC 9293 3.7.1
  kOptWindowScale = 3,    // RFC 7323 2.2
  kOptSackPermitted = 4,  // RFC 2018 2
  kOptSack = 5,           // RFC 2018 3
  kOptTimestamps = 8,     // RFC 7323 3.2
  kOptExperiment = 253,   // RFC 6994: identified by the four bytes after the length
};

// The first option word of every segment of a connection with timestamps.
constexpr std::uint32_t kNopNopTimestamps = 0x0101080a;

// RFC 7323 2.3: a larger shift MUST be treated as 14.
constexpr std::uint8_t kMaxWindowShift = 14;

void take_option(std::uint8_t kind, const std::uint8_t* body, std::size_t len, Options* out) {
  switch (kind) {
    case kOptMss:
      if (len != 2) return;
      out->has_mss = true;
      out->mss = load_be16(body);
      return;
    case kOptWindowScale:
      if (len != 1) return;
      out->has_wscale = true;
      out->wscale = std::min(body[0], kMaxWindowShift);
      return;
    case kOptSackPermitted:
      if (len == 0) out->sack_permitted = true;
      return;
    case kOptSack:
      if (len == 0 || len % 8 != 0) return;
      out->sack_count = 0;
      for (std::size_t i = 0; i + 8 <= len && out->sack_count < out->sack.size(); i += 8) {
        out->sack[out->sack_count++] = {Seq(load_be32(body + i)), Seq(load_be32(body + i + 4))};
      }
      return;
    case kOptTimestamps:
      if (len != 8) return;
      out->has_ts = true;
      out->tsval = load_be32(body);
      out->tsecr = load_be32(body + 4);
      return;
    case kOptExperiment:
      if (len < 4 || load_be32(body) != kCorruptionId) return;
      if (len == 4) out->corruption_permitted = true;
      if (len != 12) return;
      out->has_corrupted = true;
      out->corrupted = {Seq(load_be32(body + 4)), Seq(load_be32(body + 8))};
      return;
    default:
      return;  // RFC 9293 3.1: unknown options are skipped by their length
  }
}

void parse_options(const std::uint8_t* p, std::size_t len, Options* out) {
  if (len == 12 && load_be32(p) == kNopNopTimestamps) {
    out->has_ts = true;
    out->tsval = load_be32(p + 4);
    out->tsecr = load_be32(p + 8);
    return;
  }
  std::size_t at = 0;
  while (at < len) {
    if (p[at] == kOptEnd) return;
    if (p[at] == kOptNop) {
      ++at;
      continue;
    }
    if (at + 1 >= len) return;
    const std::size_t size = p[at + 1];
    if (size < 2 || at + size > len) return;
    take_option(p[at], p + at + 2, size - 2, out);
    at += size;
  }
}

class OptionWriter {
 public:
  explicit OptionWriter(std::uint8_t* p) : p_(p) {}

  void put8(std::uint8_t v) { *p_++ = v; }
  void put16(std::uint16_t v) {
    store_be16(p_, v);
    p_ += 2;
  }
  void put32(std::uint32_t v) {
    store_be32(p_, v);
    p_ += 4;
  }
  std::uint8_t* at() const { return p_; }

 private:
  std::uint8_t* p_;
};

void put_timestamps(OptionWriter& w, const Options& o) {
  w.put8(kOptTimestamps);
  w.put8(10);
  w.put32(o.tsval);
  w.put32(o.tsecr);
}

// SYN: mss, sackOK, TS, nop, wscale. The nops keep the 32-bit fields aligned, whichever options are
// absent.
void put_syn_options(OptionWriter& w, const Options& o) {
  if (o.has_mss) {
    w.put8(kOptMss);
    w.put8(4);
    w.put16(o.mss);
  }
  if (o.sack_permitted) {
    if (!o.has_ts) {
      w.put8(kOptNop);
      w.put8(kOptNop);
    }
    w.put8(kOptSackPermitted);
    w.put8(2);
  } else if (o.has_ts) {
    w.put8(kOptNop);
    w.put8(kOptNop);
  }
  if (o.has_ts) put_timestamps(w, o);
  if (o.has_wscale) {
    w.put8(kOptNop);
    w.put8(kOptWindowScale);
    w.put8(3);
    w.put8(o.wscale);
  }
  if (o.corruption_permitted) {
    w.put8(kOptNop);
    w.put8(kOptNop);
    w.put8(kOptExperiment);
    w.put8(6);
    w.put32(kCorruptionId);
  }
}

void put_plain_options(OptionWriter& w, const Options& o) {
  if (o.has_ts) {
    w.put8(kOptNop);
    w.put8(kOptNop);
    put_timestamps(w, o);
  }
  if (o.has_corrupted) {
    w.put32(kNopNopCorrupted);
    w.put32(kCorruptionId);
    w.put32(o.corrupted.begin.value());
    w.put32(o.corrupted.end.value());
  }
  // 40 bytes of options hold four blocks, three with timestamps (RFC 2018 3), and two fewer if a
  // corrupted segment is named (E-42).
  const std::size_t room = (o.has_ts ? 3u : 4u) - (o.has_corrupted ? 2u : 0u);
  const std::size_t blocks = std::min<std::size_t>(o.sack_count, room);
  if (blocks == 0) return;
  w.put8(kOptNop);
  w.put8(kOptNop);
  w.put8(kOptSack);
  w.put8(static_cast<std::uint8_t>(2 + 8 * blocks));
  for (std::size_t i = 0; i < blocks; ++i) {
    w.put32(o.sack[i].begin.value());
    w.put32(o.sack[i].end.value());
  }
}

}  // namespace

Outcome<Segment, ParseError> parse_segment(ByteView header, std::size_t* header_len) {
  if (header.size() < kHeaderMin) return fail(ParseError::TooShort);
  const std::uint8_t* p = header.data();
  const std::size_t offset = std::size_t{p[12]} >> 4 << 2;
  if (offset < kHeaderMin) return fail(ParseError::BadDataOffset);
  if (offset > header.size()) return fail(ParseError::TooShort);
  Segment s;
  s.src_port = load_be16(p);
  s.dst_port = load_be16(p + 2);
  s.seq = Seq(load_be32(p + 4));
  s.ack = Seq(load_be32(p + 8));
  s.flags = p[13];
  s.window = load_be16(p + 14);
  s.urgent = load_be16(p + 18);
  if (offset > kHeaderMin) parse_options(p + kHeaderMin, offset - kHeaderMin, &s.opts);
  *header_len = offset;
  return s;
}

std::size_t emit_header(const Segment& seg, std::uint8_t* dst) {
  store_be16(dst, seg.src_port);
  store_be16(dst + 2, seg.dst_port);
  store_be32(dst + 4, seg.seq.value());
  store_be32(dst + 8, seg.ack.value());
  store_be16(dst + 14, seg.window);
  store_be16(dst + 16, 0);
  store_be16(dst + 18, seg.urgent);
  OptionWriter w(dst + kHeaderMin);
  if (seg.has(kSyn)) {
    put_syn_options(w, seg.opts);
  } else {
    put_plain_options(w, seg.opts);
  }
  while ((w.at() - dst) % 4 != 0) w.put8(kOptEnd);
  const auto len = static_cast<std::size_t>(w.at() - dst);
  dst[12] = static_cast<std::uint8_t>(len / 4 << 4);
  dst[13] = static_cast<std::uint8_t>(seg.flags);
  return len;
}

}  // namespace urnic::tcp
