#include "tcp/time_wait.h"

#include <algorithm>

#include "tcp/listen.h"
#include "tcp/tcb_state.h"

namespace urnic::tcp {
namespace {

// The position of RCV.NXT in the stream of a control block made for one segment. It is far enough
// from zero that old data is in the stream as well.
constexpr StreamOffset kReceived{std::uint64_t{1} << 32};
// With fewer entries than this, the heap is not searched.
constexpr std::size_t kSpare = 1024;

TimeWait of(const Tcb& t) {
  TimeWait w;
  w.until = t.timers.time_wait;
  w.wait = t.config.time_wait;
  w.snd_nxt = snd_nxt_seq(t);
  w.rcv_nxt = rcv_nxt_seq(t);
  const StreamOffset nxt = t.rcv.holes.rcv_nxt();
  w.window = t.rcv.adv > nxt ? static_cast<std::uint32_t>(t.rcv.adv - nxt) : 0;
  w.max_wnd = t.snd.max_wnd;
  w.ts_recent = t.rcv.ts_recent;
  w.ts_recent_at = t.rcv.ts_recent_at;
  w.ts_offset = t.config.ts_offset;
  w.challenge_key = t.config.challenge_key;
  w.challenge = t.challenge;
  w.challenge_acks = t.config.challenge_acks;
  w.shift = t.rcv.wscale;
  w.ts_on = t.ts_on;
  return w;
}

// Rebuilds the parts of the control block that check() and refuse() read, so that one set of rules
// serves both.
void restore(const TimeWait& w, Tcb& t) {
  t.state = State::TimeWait;
  t.config.time_wait = w.wait;
  t.config.ts_offset = w.ts_offset;
  t.config.challenge_key = w.challenge_key;
  t.config.challenge_acks = w.challenge_acks;
  t.challenge = w.challenge;
  t.timers.time_wait = w.until;
  t.ts_on = w.ts_on;
  t.syn_sent = t.syn_acked = 1;
  t.snd.iss = w.snd_nxt - 2;  // SYN and FIN, nothing between
  t.snd.fin_wanted = t.snd.fin_sent = t.snd.fin_acked = true;
  t.snd.max_wnd = w.max_wnd;
  t.rcv.irs = w.rcv_nxt - 2 - static_cast<std::uint32_t>(kReceived.value());
  t.rcv.holes.reset(kReceived);
  t.rcv.adv = kReceived + w.window;
  t.rcv.fin_known = t.rcv.fin_taken = true;
  t.rcv.fin_at = kReceived;
  t.rcv.last_ack_sent = w.rcv_nxt;
  t.rcv.ts_recent = w.ts_recent;
  t.rcv.ts_recent_at = w.ts_recent_at;
}

Segment ack_of(const Tcb& t, const TimeWait& w, const Segment& s, Instant now) {
  Segment r;
  r.src_port = s.dst_port;
  r.dst_port = s.src_port;
  r.seq = w.snd_nxt;
  r.ack = w.rcv_nxt;
  r.flags = kAck;
  r.window = static_cast<std::uint16_t>(std::min(w.window >> w.shift, 0xffffu));
  r.opts.has_ts = t.ts_on;
  r.opts.tsval = ts_clock(t, now);
  r.opts.tsecr = t.rcv.ts_recent;
  return r;
}

}  // namespace

void TimeWaitTable::add(const FlowKey& key, const Tcb& t) {
  TimeWait w = of(t);
  w.listed = w.until;
  make_room();
  push(w.until, key);  // first: if this fails, no connection without an end is left in the table
  flows_.insert(key, w);
}

// Makes room in the heap as well. A connection that ended early (RFC 6191, a RST) has left its
// entry there, and repeated connections between the same endpoints would leave any number.
void TimeWaitTable::make_room() {
  while (flows_.size() >= most_) pop(ends_.front().at);
  if (ends_.size() <= kSpare + 2 * flows_.size()) return;
  std::erase_if(ends_, [&](const End& e) { return !is_of_one(e); });
  std::make_heap(ends_.begin(), ends_.end(), later);
}

bool TimeWaitTable::is_of_one(const End& e) const {
  const TimeWait* w = flows_.find(e.key);
  return w != nullptr && w->listed == e.at;
}

void TimeWaitTable::push(Instant at, const FlowKey& key) {
  ends_.push_back({at, key});
  std::push_heap(ends_.begin(), ends_.end(), later);
}

std::optional<TimeWaitTable::Disposition> TimeWaitTable::take(const FlowKey& key, const Segment& s,
                                                              bool listening, Segment* reply,
                                                              HostCounters& counters, Instant now) {
  TimeWait* w = flows_.find(key);
  if (w == nullptr) return std::nullopt;
  Tcb t;
  restore(*w, t);
  if (listening && may_reopen(t, s)) {
    flows_.erase(key);
    return Disposition::Reopen;
  }
  const Check c = check(t, s, now);
  const Answer a = answer(t, c, s, counters, now);
  bool ack = a.kind == Answer::Kind::Send;
  switch (a.kind) {
    case Answer::Kind::Process:
      take_timestamp(t, s, now);
      ack = refuse(t, c, false, false, now) == AckNeed::Now;
      break;
    case Answer::Kind::Ended:
      flows_.erase(key);
      return Disposition::Nothing;
    case Answer::Kind::Nothing:
    case Answer::Kind::Send:
    case Answer::Kind::Rst:
      break;
  }
  w->until = t.timers.time_wait;
  w->ts_recent = t.rcv.ts_recent;
  w->ts_recent_at = t.rcv.ts_recent_at;
  w->challenge = t.challenge;
  if (!ack) return Disposition::Nothing;
  *reply = ack_of(t, *w, s, now);
  return Disposition::Reply;
}

// Takes the earliest entry. Its connection ends, unless it was prolonged beyond `now`.
void TimeWaitTable::pop(Instant now) {
  const End e = ends_.front();
  std::pop_heap(ends_.begin(), ends_.end(), later);
  ends_.pop_back();
  if (!is_of_one(e)) return;
  TimeWait* w = flows_.find(e.key);
  if (w->until > now) {
    w->listed = w->until;
    push(w->until, e.key);
  } else {
    flows_.erase(e.key);
  }
}

void TimeWaitTable::run(Instant now) {
  while (!ends_.empty() && ends_.front().at <= now) pop(now);
}

}  // namespace urnic::tcp
