// A driver of one control block for tests: a byte source, a byte sink that stores out-of-order
// bytes, and the call sequence of tcp/tcb.h as in the engine. Segments are passed in and out as
// bytes without an IP header.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "base/inet_checksum.h"
#include "tcp/listen.h"
#include "tcp/predict.h"
#include "tcp/run.h"
#include "tcp/tcb_state.h"

namespace urnic::tcp::test {

using Bytes = std::vector<std::uint8_t>;

struct Emitted {
  Instant at;
  Bytes bytes;
  std::uint8_t ect = 0;
};

// Byte `i` of the stream `which`.
inline std::uint8_t pattern(std::uint64_t i, unsigned which = 0) {
  const std::uint64_t x = (i + which * 7919) * 0x9e3779b97f4a7c15ULL;
  return static_cast<std::uint8_t>(x >> 40);
}

class Host {
 public:
  static constexpr std::uint32_t kPseudo = 0x1234;

  Config config;
  Tcb tcb;
  std::deque<Emitted> out;
  std::uint16_t local_port = 1000, remote_port = 2000;
  Seq iss = Seq(0);
  bool listening = false;

  // Send side: bytes of `pattern` up to `source_end`.
  unsigned stream = 0;
  std::uint64_t source_end = 0;
  bool more = false;
  bool push_last = true;
  // The largest cut of this driver, 0 for none. Simulates FPDUs that do not fill a segment.
  std::uint32_t unit = 0;

  // Receive side.
  unsigned peer_stream = 1;
  std::uint64_t delivered = 0;  // in order, verified
  std::uint64_t read = 0;       // of those, read by the program
  bool auto_read = true;
  bool content_ok = true;
  bool end_of_stream = false;
  // The layer above refuses segments for which this returns true (a CRC error, for example).
  std::function<bool(const Segment&)> ulp_drops;
  bool immediate_dup_ack = true;
  bool names_drops = false;  // ... and reports them as a wrong CRC (E-42)
  // ... and segments for which all out-of-order data is forgotten before they are processed.
  std::function<bool(const Segment&)> forgets;
  unsigned resets = 0, establishments = 0;
  // Uses the functions of predict.h if they apply, as the engine does.
  bool predict = false;
  // ... and runs of segments (run.h).
  bool in_runs = false;
  std::uint64_t sent_in_runs = 0;

  void connect(Instant now) {
    open_active(tcb, config, iss, now);
    poll(now);
  }
  void write(std::uint64_t n, Instant now) {
    source_end += n;
    poll(now);
  }
  void shutdown(Instant now) {
    shutdown_send(tcb, now);
    poll(now);
  }
  void abort_now(Instant now) {
    tcp::abort(tcb, now);
    poll(now);
  }
  void read_now(std::uint64_t n, Instant now) {
    read = std::min(read + n, delivered);
    if (set_receive_room(tcb, room(), now)) emit(plan_ack(tcb), now);
    poll(now);
  }

  void input(const Bytes& bytes, Instant now, std::uint8_t ecn = 0, bool end_burst = true) {
    const std::uint64_t sum = std::uint64_t{kPseudo} + bytes.size() + inet_sum(bytes);
    if (inet_checksum(sum) != 0) return;
    std::size_t header = 0;
    auto parsed = parse_segment(bytes, &header);
    if (!parsed) return;
    Segment s = *parsed;
    s.payload = ByteView(bytes).subspan(header);
    s.ecn = ecn;
    if (tcb.state == State::Closed && !tcb.rst_due) {
      unmatched(s, now);
    } else if (may_reopen(tcb, s) && listening) {
      tcb = Tcb{};
      unmatched(s, now);
    } else {
      matched(s, now);
    }
    if (end_burst) finish_burst(now);
  }
  void finish_burst(Instant now) {
    end_of_burst(tcb);
    poll(now);
  }

  Instant deadline() const { return next_deadline(tcb); }
  void run_timers(Instant now) {
    on_deadline(tcb, now);
    poll(now);
  }

  void poll(Instant now) {
    for (int i = 0; i < 100000; ++i) {
      if (in_runs && emit_run(now)) continue;
      const SendPlan p = plan_send(tcb, {StreamOffset(source_end), more}, now);
      if (p.kind == Send::None) return;
      emit(p, now);
    }
    FAIL() << "plan_send never ends";
  }

  // Sends as many full segments at once as allowed, except the last.
  bool emit_run(Instant now) {
    std::uint32_t bytes = emss(tcb);
    if (unit != 0 && bytes > unit) bytes -= bytes % unit;
    const std::uint64_t nxt = tcb.snd.nxt.value();
    const std::uint64_t behind = source_end > nxt ? source_end - nxt : 0;
    if (behind <= emss(tcb)) return false;
    const std::uint32_t most = static_cast<std::uint32_t>((behind - emss(tcb) - 1) / bytes + 1);
    const std::uint32_t n = std::min(most, run_length(tcb, bytes, now));
    if (n == 0) return false;
    const RunHeader header(tcb, local_port, remote_port, kPseudo, bytes, now);
    for (std::uint32_t i = 0; i < n; ++i) {
      Emitted e;
      e.at = now;
      e.ect = header.ect();
      e.bytes.resize(header.size() + bytes);
      std::uint8_t* const payload = e.bytes.data() + header.size();
      for (std::uint32_t k = 0; k < bytes; ++k) {
        payload[k] = pattern(tcb.snd.nxt.value() + k, stream);
      }
      header.write(tcb.snd.nxt, inet_sum({payload, bytes}), e.bytes.data());
      out.push_back(std::move(e));
      run_segment_sent(tcb, bytes, now);
    }
    run_sent(tcb, now);
    sent_in_runs += n;
    return true;
  }

  void emit(const SendPlan& p, Instant now) {
    if (p.kind == Send::None) return;
    std::uint32_t len = p.limit;
    if (unit != 0 && !p.must_cut && p.kind == Send::Data && len > unit) len -= len % unit;
    Emitted e;
    e.at = now;
    e.bytes.resize(p.header + len);
    for (std::uint32_t i = 0; i < len; ++i) {
      e.bytes[p.header + i] = pattern(p.begin.value() + i, stream);
    }
    ASSERT_LE(p.begin.value() + len, std::max(source_end, p.begin.value()));
    const bool psh = push_last && len != 0 && p.begin.value() + len == source_end;
    write_header(tcb, p, len, psh, local_port, remote_port, kPseudo,
                 inet_sum(ByteView(e.bytes).subspan(p.header)), now, e.bytes.data(), &e.ect);
    ASSERT_EQ(e.bytes[12] >> 4, p.header / 4) << "planned header length";
    sent(tcb, p, len, psh, now);
    out.push_back(std::move(e));
  }

 private:
  std::uint64_t room() const {
    return config.receive_buffer - std::min<std::uint64_t>(delivered - read, config.receive_buffer);
  }

  void reply(const Segment& s, Instant now) {
    if (!s.has(kRst)) answer(closed_reply(s), now);
  }
  void answer(const Segment& r, Instant now) {
    Emitted e;
    e.at = now;
    e.bytes.resize(kHeaderMax);
    e.bytes.resize(emit_header(r, e.bytes.data()));
    store_be16(e.bytes.data() + 16,
               inet_checksum(std::uint64_t{kPseudo} + e.bytes.size() + inet_sum(e.bytes)));
    out.push_back(std::move(e));
  }

  void unmatched(const Segment& s, Instant now) {
    if (!listening) return reply(s, now);
    switch (check_listen(s)) {
      case ListenAction::Accept:
        open_passive(tcb, config, iss, s, now);
        forget_streams();
        return;
      case ListenAction::Rst:
        reply(s, now);
        return;
      case ListenAction::Discard:
        return;
    }
  }

  void forget_streams() {
    delivered = read = source_end = 0;
    stored_.clear();
    end_of_stream = false;
  }

  void matched(const Segment& s, Instant now) {
    if (forgets && forgets(s)) {
      forget_out_of_order(tcb);
      stored_.clear();
    }
    const Check c = check(tcb, s, now);
    switch (c.action) {
      case Action::Discard:
        return;
      case Action::Ack:
        emit(plan_ack(tcb), now);
        return;
      case Action::ChallengeAck:
        if (may_challenge(tcb, now)) emit(plan_ack(tcb), now);
        return;
      case Action::SynAck:
        if (may_challenge(tcb, now)) emit(plan_syn_ack(tcb), now);
        return;
      case Action::Rst:
        answer(reset_reply(tcb, s, now), now);
        after_reset_sent(tcb);
        return;
      case Action::Reset:
        ++resets;
        take_reset(tcb, now);
        return;
      case Action::Process:
        break;
    }
    Check foreseen;
    predicted_ = predict && check_predicted(tcb, s, &foreseen);
    AckResult a;
    if (!predicted_ || !take_ack_predicted(tcb, s, now)) a = take_ack(tcb, s, c, now);
    if (a.ack_first) emit(plan_ack(tcb), now);
    if (a.established) ++establishments;
    if (c.arrival != Arrival::None && tcb.state != State::Closed) payload(s, c, now);
  }

  void payload(const Segment& s, const Check& c, Instant now) {
    const bool own_ack = c.arrival != Arrival::InOrder || tcb.rcv.holes.size() != 0;
    const bool taken = c.arrival == Arrival::InOrder || c.arrival == Arrival::OutOfOrder ||
                       c.arrival == Arrival::Overlap;
    if (ulp_drops && ulp_drops(s)) {
      if (ack_pending(tcb)) emit(plan_ack(tcb), now);
      if (names_drops) note_corrupted(tcb, c);
      if (refuse(tcb, c, true, immediate_dup_ack, now) == AckNeed::Now) emit(plan_ack(tcb), now);
      return;
    }
    if (own_ack && ack_pending(tcb)) emit(plan_ack(tcb), now);
    if (!taken) {
      const StreamOffset nxt = tcb.rcv.holes.rcv_nxt();
      if (c.arrival == Arrival::Duplicate && c.fin && c.end == nxt) {
        take(c.end, c.end, true, s, c, now);
      } else if (refuse(tcb, c, false, false, now) == AckNeed::Now) {
        emit(plan_ack(tcb), now);
      }
      return;
    }
    if (c.new_begin == c.new_end) {
      take(c.end, c.end, c.fin, s, c, now);
      return;
    }
    if (c.arrival == Arrival::Overlap) note_duplicate_part(tcb, c);
    // Finds every missing run of the new part.
    std::vector<std::pair<StreamOffset, StreamOffset>> runs;
    StreamOffset at = c.new_begin;
    for (std::size_t i = 0; i < tcb.rcv.holes.size() && at < c.new_end; ++i) {
      const Hole& h = tcb.rcv.holes[i];
      if (at < h.block) runs.emplace_back(at, std::min(h.block, c.new_end));
      at = std::max(at, h.block_end);
    }
    if (at < c.new_end) runs.emplace_back(at, c.new_end);
    bool now_needed = false;
    for (const auto& [b, e] : runs) now_needed |= store(b, e, c.fin && e == c.end, s, c, now);
    if (now_needed) emit(plan_ack(tcb), now);
  }

  void take(StreamOffset b, StreamOffset e, bool fin, const Segment& s, const Check& c,
            Instant now) {
    if (store(b, e, fin, s, c, now)) emit(plan_ack(tcb), now);
  }

  // Returns true if an ACK is needed at once.
  bool store(StreamOffset b, StreamOffset e, bool fin, const Segment& s, const Check& c,
             Instant now) {
    for (StreamOffset o = b; o < e; o += 1) stored_[o.value()] = s.payload[o - c.begin];
    Receipt r;
    if (predicted_ && !fin && commit_predicted(tcb, b, e)) {
      r.rcv_nxt = tcb.rcv.holes.rcv_nxt();
    } else {
      r = commit(tcb, b, e, fin, s.has(kPsh), now);
    }
    EXPECT_EQ(r.rcv_nxt, tcb.rcv.holes.rcv_nxt());
    while (delivered < r.rcv_nxt.value()) {
      const auto it = stored_.find(delivered);
      if (it == stored_.end() || it->second != pattern(delivered, peer_stream)) content_ok = false;
      if (it != stored_.end()) stored_.erase(it);
      ++delivered;
    }
    if (r.fin) end_of_stream = true;
    if (auto_read) read = delivered;
    const bool update = set_receive_room(tcb, room(), now);
    return r.ack == AckNeed::Now || update;
  }

  std::map<std::uint64_t, std::uint8_t> stored_;
  bool predicted_ = false;
};

}  // namespace urnic::tcp::test
