// Writes the TCP header of a planned segment, with checksum, directly into the frame. The sum is
// computed from the values as they are written, without reading the bytes again.
#include <algorithm>

#include "base/inet_checksum.h"
#include "tcp/tcb_state.h"

namespace urnic::tcp {
namespace {

class Writer {
 public:
  explicit Writer(std::uint8_t* p) : p_(p) {}
  void word(std::uint32_t v) {
    store_be32(p_, v);
    p_ += 4;
    sum_ += v;
  }
  std::uint64_t sum() const { return sum_; }

 private:
  std::uint8_t* p_;
  std::uint64_t sum_ = 0;
};

std::uint16_t flags_of(const Tcb& t, const SendPlan& p, std::uint32_t len, bool psh) {
  std::uint16_t flags = kAck;
  if (psh && len != 0) flags |= kPsh;
  if (p.fin && len == p.limit) flags |= kFin;
  if (t.ecn_on) {
    if (t.rcv.ece) flags |= kEce;
    if (t.cwr_due && p.kind == Send::Data) flags |= kCwr;
  }
  return flags;
}

std::uint8_t collect_blocks(const Tcb& t, std::size_t room, SackBlock* out) {
  const ReceiveState& r = t.rcv;
  const HoleList& holes = r.holes;
  std::uint8_t n = 0;
  const bool dsack = reports_dsack(t, room);
  if (dsack) out[n++] = {rcv_seq(t, r.dsack), rcv_seq(t, r.dsack_end)};
  const std::uint8_t first = n;
  const auto add = [&](const Hole& h) {
    SackBlock b{rcv_seq(t, h.block), rcv_seq(t, h.block_end)};
    if (r.fin_known && h.block_end == r.fin_at) b.end = b.end + 1;  // a FIN that arrived early
    for (std::uint8_t i = first; i < n; ++i) {
      if (out[i] == b) return;
    }
    out[n++] = b;
  };
  // Then the block that holds the duplicate (RFC 2883 4 (4)), and the others, the newest first.
  if (dsack) {
    if (const std::size_t k = holes.block_at(r.dsack); k != holes.size()) add(holes[k]);
  }
  for (std::uint8_t i = 0; i < r.recent_count && n < room; ++i) {
    const std::size_t k = holes.block_at(r.recent[i]);
    if (k != holes.size()) add(holes[k]);
  }
  for (std::size_t k = 0; k < holes.size() && n < room; ++k) add(holes[k]);
  return n;
}

// The rare segments, SYN and RST, use the plain emitter.
void write_special(const Tcb& t, const SendPlan& p, Segment* s, std::uint64_t sum, Instant now,
                   std::uint8_t* dst) {
  if (p.kind == Send::Rst) {
    s->seq = snd_nxt_seq(t);
    s->ack = rcv_nxt_seq(t);
    s->flags = kRst | kAck;
    s->opts.has_ts = t.ts_on;  // RFC 7323 3.2
    s->opts.tsval = ts_clock(t, now);
    s->opts.tsecr = t.rcv.ts_recent;
  } else {
    const bool answer = p.kind == Send::SynAck;
    s->seq = t.snd.iss;
    s->flags = kSyn;
    s->window = syn_window(t).field;
    s->opts.has_mss = true;
    s->opts.mss = t.config.mss;
    s->opts.has_ts = answer ? t.ts_on : t.config.timestamps;
    s->opts.sack_permitted = answer ? t.sack_on : t.config.sack;
    s->opts.has_wscale =
        t.config.window_scaling && (!answer || t.rcv.wscale != 0 || t.snd.wscale != 0);
    s->opts.wscale = t.config.window_shift;
    s->opts.corruption_permitted = answer ? t.naming_on : offers_naming(t.config);
    s->opts.tsval = ts_clock(t, now);
    if (answer) {
      s->ack = rcv_nxt_seq(t);
      s->flags |= kAck;
      s->opts.tsecr = t.rcv.ts_recent;
      if (t.ecn_on) s->flags |= kEce;
    } else if (t.ecn_on) {
      s->flags |= kEce | kCwr;
    }
  }
  const std::size_t n = emit_header(*s, dst);
  store_be16(dst + 16, inet_checksum(sum + n + inet_sum({dst, n})));
}

}  // namespace

bool reports_dsack(const Tcb& t, std::size_t blocks) {
  if (!t.rcv.has_dsack) return false;
  return blocks > (t.rcv.dsack < t.rcv.holes.rcv_nxt() ? 0u : 1u);
}

void write_header(const Tcb& t, const SendPlan& p, std::uint32_t len, bool psh,
                  std::uint16_t src_port, std::uint16_t dst_port, std::uint32_t pseudo_sum,
                  std::uint32_t payload_sum, Instant now, std::uint8_t* dst, std::uint8_t* ect) {
  *ect = 0;
  if (p.kind == Send::Syn || p.kind == Send::SynAck || p.kind == Send::Rst) [[unlikely]] {
    Segment s;
    s.src_port = src_port;
    s.dst_port = dst_port;
    write_special(t, p, &s, pseudo_sum, now, dst);
    return;
  }
  // RFC 3168 6.1.4-6.1.6: only new data is ECN-capable.
  if (t.ecn_on && p.kind == Send::Data && len != 0) *ect = 2;
  Seq seq = snd_seq(t, p.begin);
  // A segment without payload is numbered after the FIN. A keepalive probe is numbered one byte
  // before what the peer expects, so that it causes an ACK (RFC 9293 3.8.4).
  if (p.kind == Send::Ack && t.snd.fin_sent) seq = seq + 1;
  if (p.kind == Send::Probe && p.limit == 0) seq = seq + (t.snd.fin_sent ? 1 : 0) - 1;
  Writer w(dst);
  w.word(std::uint32_t{src_port} << 16 | dst_port);
  w.word(seq.value());
  w.word(rcv_nxt_seq(t).value());
  w.word((p.header / 4) << 28 | std::uint32_t{flags_of(t, p, len, psh)} << 16 |
         window_now(t).field);
  w.word(0);  // checksum, urgent pointer
  std::uint32_t used = kHeaderMin;
  if (t.ts_on) {
    w.word(0x0101080a);
    w.word(ts_clock(t, now));
    w.word(t.rcv.ts_recent);
    used += 12;
  }
  if (p.corrupted) [[unlikely]] {
    w.word(kNopNopCorrupted);
    w.word(kCorruptionId);
    w.word(rcv_seq(t, t.rcv.corrupted).value());
    w.word(rcv_seq(t, t.rcv.corrupted_end).value());
    used += kCorrupted;
  }
  if (p.header > used) [[unlikely]] {
    SackBlock blocks[4];
    const std::uint8_t n = collect_blocks(t, planned_blocks(t, p), blocks);
    w.word(0x01010500u | (2u + 8u * n));
    for (std::uint8_t i = 0; i < n; ++i) {
      w.word(blocks[i].begin.value());
      w.word(blocks[i].end.value());
    }
    // One block less than planned (two duplicates of one block): fill up with end-of-options.
    for (used += 4 + 8u * n; used < p.header; used += 4) w.word(0);
  }
  const std::uint64_t sum = w.sum() + pseudo_sum + payload_sum + p.header + len;
  store_be16(dst + 16, inet_checksum(sum));
}

}  // namespace urnic::tcp
