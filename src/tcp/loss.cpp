#include "tcp/loss.h"

#include <algorithm>

#include "base/mutant.h"
#include "tcp/tcb_state.h"

namespace urnic::tcp {
namespace {

constexpr std::uint32_t kDupThresh = 3;

// Rules of RFC 6675 2 and 6582 3.2 step 2: after a timeout, duplicate ACKs for what went out before
// it are echoes of our own retransmissions.
bool may_enter(const Tcb& t) {
  if (t.loss.state == Recovery::Recovery) return false;
  if (!t.loss.has_recover) return true;
  return t.sack_on ? t.snd.una >= t.loss.recover : t.snd.una > t.loss.recover;
}

void enter_recovery(Tcb& t) {
  LossState& l = t.loss;
  // What limited transmit added to the flight does not count (RFC 5681 3.2 step 2). A window halved
  // for a congestion mark is not halved again within the same round trip (RFC 3168 6.1.2).
  if (l.state != Recovery::Cwr)
    cc_reduce(t.cc, std::min(flight(t), std::max(t.cc.cwnd, t.cc.smss)));
  cc_enter_recovery(t.cc, t.sack_on);
  l.state = Recovery::Recovery;
  l.recover = t.snd.nxt;
  l.has_recover = true;
  l.partial_seen = l.has_rescue = false;
  l.high_rxt = t.snd.una;
  l.force = true;
  if (!t.sent_segments.empty()) t.sent_segments.mark_lost_again(0);
}

void leave_recovery(Tcb& t) {
  LossState& l = t.loss;
  if (l.state == Recovery::Recovery) cc_exit_recovery(t.cc, t.sack_on, flight(t));
  l.dup_acks = 0;
  l.force = false;
  const bool quiet = t.sent_segments.sacked() == 0 && t.sent_segments.todo() == 0;
  l.state = quiet ? Recovery::Open : Recovery::Disorder;
}

// IsLost() for every entry at once: more than two full segments, or three separate blocks, were
// SACKed above it. Returns true when the entry at SND.UNA is among them.
bool judge(Tcb& t) {
  Scoreboard& b = t.sent_segments;
  LossState& l = t.loss;
  if (b.sacked() == 0) return false;
  std::uint32_t octets = 0, blocks = 0;
  bool in_block = false;
  std::size_t i = b.index_after(l.highest_sacked - 1) + 1;
  i = std::min(i, b.size());
  while (i > 0) {
    const SentSegment& s = b[--i];
    if (!s.is(SentSegment::kSacked)) {
      in_block = false;
      continue;
    }
    octets += s.space();
    if (!in_block) ++blocks;
    in_block = true;
    if (blocks >= kDupThresh || octets > (kDupThresh - 1) * t.cc.smss) break;
  }
  if (blocks < kDupThresh && octets <= (kDupThresh - 1) * t.cc.smss) return false;
  // Everything below entry i. What lies below lost_edge has been through this.
  const StreamOffset edge = b[i].begin;
  for (std::size_t k = b.index_after(std::max(l.lost_edge, t.snd.una)); k < i; ++k) b.mark_lost(k);
  l.lost_edge = std::max(l.lost_edge, edge);
  return b.front().is(SentSegment::kLost);
}

void consider_recovery(Tcb& t, bool head_lost) {
  if (head_lost && may_enter(t)) enter_recovery(t);
}

}  // namespace

SackNews loss_take_sack(Tcb& t, const Segment& s) {
  SackNews news;
  LossState& l = t.loss;
  const Seq una = snd_una_seq(t);
  const std::uint32_t span = flight(t);
  for (std::uint8_t i = 0; i < s.opts.sack_count; ++i) {
    SackBlock b = s.opts.sack[i];
    const std::int32_t from = b.begin - una, to = b.end - una;
    if (from >= to) continue;
    if (from < 0 || static_cast<std::uint32_t>(to) > span) {
      // Below SND.UNA: a report of a duplicate (RFC 2883 4); beyond what was sent: nonsense.
      if (i == 0 && to <= 0) news.duplicate = true;
      continue;
    }
    if (i == 0 && s.opts.sack_count > 1) {
      const SackBlock& next = s.opts.sack[1];
      if (next.begin <= b.begin && b.end <= next.end) {
        news.duplicate = true;
        continue;
      }
    }
    // Blocks repeat from ACK to ACK; look only at what this one adds.
    for (std::uint8_t k = 0; k < l.seen_count; ++k) {
      const SackBlock& seen = l.seen[k];
      if (seen.begin <= b.begin && b.begin < seen.end) b.begin = seq_max(b.begin, seen.end);
      if (seen.begin < b.end && b.end <= seen.end && b.begin < seen.begin) b.end = seen.begin;
    }
    if (b.begin >= b.end) continue;
    const StreamOffset begin = t.snd.una + static_cast<std::uint32_t>(b.begin - una);
    StreamOffset end = t.snd.una + static_cast<std::uint32_t>(b.end - una);
    const bool fin = end > t.snd.nxt;
    if (fin) end = t.snd.nxt;
    news.fresh += t.sent_segments.sack(begin, end, fin);
    if (!l.any_sacked || end > l.highest_sacked) l.highest_sacked = end;
    l.any_sacked = true;
  }
  l.seen_count = s.opts.sack_count;
  std::copy_n(s.opts.sack.begin(), s.opts.sack_count, l.seen.begin());
  return news;
}

void loss_on_progress(Tcb& t, std::uint32_t octets, const SackNews& news, Instant) {
  LossState& l = t.loss;
  if (l.state == Recovery::Open) [[likely]] {
    cc_acked(t.cc, t.config, octets);
    if (news.fresh == 0) return;
    l.state = Recovery::Disorder;
    consider_recovery(t, judge(t));
    return;
  }
  l.dup_acks = 0;
  const bool done = !l.has_recover || t.snd.una >= l.recover;
  switch (l.state) {
    case Recovery::Recovery:
      if (done) {
        leave_recovery(t);
      } else if (!t.sack_on && !t.sent_segments.empty()) {
        // RFC 6582 3.2 step 5: the next one is missing as well.
        cc_partial_ack(t.cc, octets);
        l.partial_seen = true;
        t.sent_segments.mark_lost_again(0);
        l.high_rxt = t.snd.una;
        l.force = true;
      }
      break;
    case Recovery::Loss:
      cc_acked(t.cc, t.config, octets);
      if (done) leave_recovery(t);
      break;
    case Recovery::Cwr:
      if (done) leave_recovery(t);
      break;
    case Recovery::Disorder:
    case Recovery::Open:
      cc_acked(t.cc, t.config, octets);
      if (t.sent_segments.sacked() == 0 && t.sent_segments.todo() == 0) l.state = Recovery::Open;
      break;
  }
  if (t.sent_segments.sacked() != 0) consider_recovery(t, judge(t));
}

void loss_on_same_ack(Tcb& t, bool plain, const SackNews& news, Instant) {
  LossState& l = t.loss;
  // RFC 6675 2: with SACK, an ACK without news is none; E-26 lets it count all the same.
  const bool counts = t.sack_on && !mutant(Mutant::PlainDuplicatesCount)
                          ? news.fresh != 0 || (t.config.count_plain_dupacks && plain)
                          : plain;
  if (!counts) return;
  if (l.state == Recovery::Recovery) {
    if (t.sack_on) {
      judge(t);
    } else {
      cc_inflate(t.cc);
    }
    return;
  }
  if (l.dup_acks < 255) ++l.dup_acks;
  const bool head_lost = judge(t) || l.dup_acks >= kDupThresh;
  if (l.state == Recovery::Open) l.state = Recovery::Disorder;
  consider_recovery(t, head_lost);
}

void loss_on_timeout(Tcb& t, bool first) {
  LossState& l = t.loss;
  // RFC 5681 3.1: ssthresh falls once for the same data, however often the timer expires.
  if (first) cc_reduce(t.cc, flight(t));
  cc_timeout(t.cc);
  t.sent_segments.all_lost();
  l.state = Recovery::Loss;
  l.recover = t.snd.nxt;
  l.has_recover = true;
  l.dup_acks = 0;
  l.force = true;
  l.has_rescue = l.any_sacked = false;
  l.seen_count = 0;
  l.high_rxt = t.snd.una;
  l.lost_edge = t.snd.una;
}

void loss_on_reneging(Tcb& t) {
  LossState& l = t.loss;
  t.sent_segments.renege();
  l.any_sacked = false;
  l.seen_count = 0;
  l.high_rxt = t.snd.una;
  l.lost_edge = t.snd.una;
  if (may_enter(t)) enter_recovery(t);
  l.force = true;
}

void loss_on_ecn_echo(Tcb& t) {
  LossState& l = t.loss;
  if (l.state != Recovery::Open && l.state != Recovery::Disorder) return;
  if (flight(t) == 0) return;
  cc_reduce(t.cc, flight(t));
  t.cc.cwnd = t.cc.ssthresh;
  l.state = Recovery::Cwr;
  l.recover = t.snd.nxt;
  l.has_recover = true;
  t.cwr_due = true;
}

void loss_on_smaller_mss(Tcb& t) {
  const std::uint32_t most = emss(t);
  Scoreboard& b = t.sent_segments;
  bool any = false;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (b[i].len <= most || b[i].is(SentSegment::kSacked)) continue;
    b.mark_lost_again(i);
    any = true;
  }
  if (!any) return;
  // Not congestion: the window stays (RFC 1191 6.4 leaves it to the implementation).
  t.loss.high_rxt = t.snd.una;
  t.loss.force = true;
  if (t.loss.state == Recovery::Open) t.loss.state = Recovery::Disorder;
}

std::uint32_t loss_pipe(const Tcb& t) {
  const Scoreboard& b = t.sent_segments;
  if (t.loss.state == Recovery::Open) return flight(t);
  std::uint32_t pipe = flight(t) - b.lost() + b.retransmitted();
  // Below the threshold SACKed data makes room for new data only as limited transmit (RFC 6675 5
  // (3)).
  if (t.loss.state != Recovery::Disorder || t.config.limited_transmit) pipe -= b.sacked();
  return pipe;
}

std::uint32_t loss_limited_transmit(const Tcb& t) {
  if (t.sack_on || !t.config.limited_transmit || t.loss.state != Recovery::Disorder) return 0;
  return std::min<std::uint32_t>(t.loss.dup_acks, 2) * t.cc.smss;
}

std::size_t loss_next_lost(Tcb& t) {
  Scoreboard& b = t.sent_segments;
  if (b.todo() == 0) return b.size();
  std::size_t i = b.index_after(t.loss.high_rxt);
  while (i < b.size()) {
    const SentSegment& s = b[i];
    if ((s.flags & (SentSegment::kLost | SentSegment::kRetransmitted | SentSegment::kSacked)) ==
        SentSegment::kLost) {
      t.loss.high_rxt = s.begin;
      return i;
    }
    ++i;
  }
  // What is to do lies below HighRxt: it was marked after its turn had passed.
  for (i = 0; i < b.size(); ++i) {
    const SentSegment& s = b[i];
    if ((s.flags & (SentSegment::kLost | SentSegment::kRetransmitted | SentSegment::kSacked)) ==
        SentSegment::kLost) {
      t.loss.high_rxt = s.begin;
      return i;
    }
  }
  return b.size();
}

std::size_t loss_next_unsure(Tcb& t) {
  Scoreboard& b = t.sent_segments;
  LossState& l = t.loss;
  if (l.state != Recovery::Recovery || !t.sack_on) return b.size();
  if (l.any_sacked) {  // rule 3: not known to be lost, but below SACKed data
    std::size_t i = b.index_after(std::max(l.high_rxt, t.snd.una));
    for (; i < b.size() && b[i].begin < l.highest_sacked; ++i) {
      if (!b[i].is(SentSegment::kSacked) && !b[i].is(SentSegment::kRetransmitted)) {
        l.high_rxt = b[i].begin;
        return i;
      }
    }
    if (i < b.size() && b[i].begin > l.high_rxt) l.high_rxt = b[i].begin;
  }
  // Rule 4: one rescue of the last octets, lest the tail wait for the timer.
  if (l.has_rescue && t.snd.una <= l.rescue) return b.size();
  for (std::size_t i = b.size(); i > 0; --i) {
    const SentSegment& s = b[i - 1];
    if (s.is(SentSegment::kSacked)) continue;
    return s.is(SentSegment::kRetransmitted) ? b.size() : i - 1;
  }
  return b.size();
}

void loss_retransmitted(Tcb& t, std::size_t i, std::uint32_t len, Instant now) {
  LossState& l = t.loss;
  Scoreboard& b = t.sent_segments;
  const SentSegment& s = b[i];
  const bool rescue = l.state == Recovery::Recovery && t.sack_on && !s.is(SentSegment::kLost) &&
                      (!l.any_sacked || s.begin >= l.highest_sacked);
  const StreamOffset end = s.begin + std::max(len, std::uint32_t{1});
  b.mark_retransmitted(i, len, now);
  l.force = false;
  if (rescue) {
    l.has_rescue = true;
    l.rescue = l.recover;
  } else {
    l.high_rxt = std::max(l.high_rxt, end);
  }
}

}  // namespace urnic::tcp
