#include "tcp/run.h"

#include <algorithm>

namespace urnic::tcp {
namespace {

// The segments differ only in their position in the stream. A full one has no room for SACK blocks,
// and carries the same ACK as the previous one.
bool segments_are_alike(const Tcb& t, Instant now) {
  if (t.state != State::Established && t.state != State::CloseWait) return false;
  if (t.loss.state != Recovery::Open || t.rst_due || t.loss.rack.probe_due) return false;
  if (t.snd.fin_wanted || t.probe_due || t.cwr_due || t.rcv.ece_next != t.rcv.ece) return false;
  // A pause may have to shrink the window (RFC 5681 4.1). The first segment after it does that.
  return !t.sent_segments.empty() || now - t.timers.last_sent <= t.rtt.rto;
}

}  // namespace

std::uint32_t run_length(const Tcb& t, std::uint32_t bytes, Instant now) {
  if (!segments_are_alike(t, now)) return 0;
  const std::uint32_t full = emss(t);
  const std::uint64_t in_flight = flight(t);
  const std::uint64_t window = t.snd.edge > t.snd.nxt ? t.snd.edge - t.snd.nxt : 0;
  const std::uint64_t room = std::min(t.cc.cwnd > in_flight ? t.cc.cwnd - in_flight : 0, window);
  // The last segment, too, needs room for a whole EMSS.
  return room < full ? 0 : static_cast<std::uint32_t>((room - full) / bytes + 1);
}

RunHeader::RunHeader(const Tcb& t, std::uint16_t src_port, std::uint16_t dst_port,
                     std::uint32_t pseudo_sum, std::uint32_t bytes, Instant now)
    : first_(snd_seq(t, StreamOffset(0)).value()) {
  std::uint8_t* p = bytes_.data();
  const auto word = [&](std::uint32_t v) {
    store_be32(p, v);
    p += 4;
    sum_ += v;
  };
  if (t.ts_on) size_ = 32;
  if (t.ecn_on) ect_ = 2;  // RFC 3168 6.1.4: new data
  std::uint32_t flags = kAck;
  if (t.ecn_on && t.rcv.ece) flags |= kEce;
  word(std::uint32_t{src_port} << 16 | dst_port);
  word(0);
  word(rcv_nxt_seq(t).value());
  word(size_ / 4 << 28 | flags << 16 | window_now(t).field);
  word(0);
  if (t.ts_on) {
    word(0x0101080a);
    word(ts_clock(t, now));
    word(t.rcv.ts_recent);
  }
  sum_ += pseudo_sum + size_ + bytes;
}

void run_sent(Tcb& t, Instant now) {
  t.snd.probe_out = false;
  new_data_left(t, now);
  cc_sent(t.cc, t.snd.una, t.snd.nxt);
  ack_left(t, window_now(t));
}

}  // namespace urnic::tcp
