#include "tcp/loss.h"

#include <algorithm>

#include "tcp/tcb_state.h"

namespace urnic::tcp {
namespace {

bool rack_on(const Tcb& t) {
  return t.sack_on && t.config.rack;
}
bool prr_on(const Tcb& t) {
  return t.sack_on && t.config.prr;
}

// RFC 6675 2 and 6582 3.2 step 2: after a timeout, duplicate ACKs for data sent before it are
// caused by our own retransmissions.
bool may_enter(const Tcb& t) {
  if (t.loss.state == Recovery::Recovery) return false;
  if (!t.loss.has_recover) return true;
  return t.sack_on ? t.snd.una >= t.loss.recover : t.snd.una > t.loss.recover;
}

void enter_recovery(Tcb& t) {
  LossState& l = t.loss;
  // Segments that limited transmit added to the flight do not count (RFC 5681 3.2 step 2). A window
  // halved for a congestion mark is not halved again within the same round trip (RFC 3168 6.1.2).
  if (l.state != Recovery::Cwr) {
    cc_reduce(t.cc, std::min(flight(t), std::max(t.cc.cwnd, t.cc.smss)), Cut::Loss);
    undo_arm(t);
  }
  cc_enter_recovery(t.cc, t.sack_on);
  l.prr = {.flight = std::max(flight(t), 1u)};
  l.state = Recovery::Recovery;
  l.recover = t.snd.nxt;
  l.has_recover = true;
  l.has_rescue = false;
  l.partial = l.impatient = false;
  l.high_rxt = t.snd.una;
  l.force = true;
  l.undo.frto = Undo::Frto::Off;
  // Duplicate ACKs indicate that the oldest segment is lost. RACK has already marked the lost ones.
  if (!rack_on(t) && !t.sent_segments.empty()) t.sent_segments.mark_lost_again(0);
}

// Without SACK: resends the oldest segment.
void resend_head(Tcb& t) {
  LossState& l = t.loss;
  t.sent_segments.mark_lost_again(0);
  l.high_rxt = t.snd.una;
  l.force = true;
  // Each later segment that has not caused a duplicate ACK yet can cause one more.
  const auto behind = static_cast<std::uint32_t>(t.sent_segments.size() - 1);
  l.echoes = l.arrived + (behind > l.arrived ? behind - l.arrived : 0);
}

// True if there were more duplicate ACKs than the segments in flight at the retransmission can have
// caused. The rest are for newer data that has overtaken the retransmission, so the retransmission
// was lost as well.
bool resend_is_lost(const Tcb& t) {
  return t.loss.arrived >= t.loss.echoes + t.loss.reordering && !t.sent_segments.empty() &&
         !t.loss.force;
}

void leave_recovery(Tcb& t) {
  LossState& l = t.loss;
  if (l.state == Recovery::Recovery) cc_exit_recovery(t.cc, t.sack_on, flight(t));
  if (l.state != Recovery::Cwr) rack_on_recovered(t);
  l.undo.frto = Undo::Frto::Off;
  l.dup_acks = 0;
  l.impatient = l.force = false;
  const bool quiet = t.sent_segments.sacked() == 0 && t.sent_segments.to_resend() == 0;
  l.state = quiet ? Recovery::Open : Recovery::Disorder;
  if (quiet) l.corruption.together = 0;
}

// Marks every entry for which IsLost() of RFC 6675 holds: more than two full segments, or three
// separate blocks, were SACKed above it (more if reordering is known). Returns true if the entry at
// SND.UNA is lost.
bool mark_lost_by_sack(Tcb& t) {
  Scoreboard& b = t.sent_segments;
  LossState& l = t.loss;
  if (b.sacked() == 0) return false;
  const std::uint32_t thresh = l.reordering;
  std::uint32_t bytes = 0, blocks = 0;
  bool in_block = false;
  std::size_t i = b.index_after(l.highest_sacked - 1) + 1;
  i = std::min(i, b.size());
  while (i > 0) {
    const SentSegment& s = b[--i];
    if (!s.is(SentSegment::kSacked)) {
      in_block = false;
      continue;
    }
    bytes += s.space();
    if (!in_block) ++blocks;
    in_block = true;
    if (blocks >= thresh || bytes > (thresh - 1) * t.cc.smss) break;
  }
  if (blocks < thresh && bytes <= (thresh - 1) * t.cc.smss) return false;
  // Marks everything below entry i. Entries below lost_edge were judged before.
  const StreamOffset edge = b[i].begin;
  for (std::size_t k = b.index_after(std::max(l.lost_edge, t.snd.una)); k < i; ++k) b.mark_lost(k);
  l.lost_edge = std::max(l.lost_edge, edge);
  return b.front().is(SentSegment::kLost);
}

void consider_recovery(Tcb& t, bool head_lost) {
  if (head_lost && may_enter(t)) enter_recovery(t);
}

// Looks for segments that are lost by now, and enters recovery if needed. Returns true if it found
// new ones.
bool look_for_losses(Tcb& t, Instant now) {
  if (!rack_on(t)) {
    const std::uint32_t before = t.sent_segments.lost();
    consider_recovery(t, mark_lost_by_sack(t));
    return t.sent_segments.lost() > before;
  }
  const bool found = rack_detect(t, now);
  if (found && t.loss.state != Recovery::Loss) consider_recovery(t, true);
  return found;
}

// The cut was unnecessary, and no segment was really lost.
void undo(Tcb& t) {
  LossState& l = t.loss;
  cc_undo(t.cc);
  t.sent_segments.none_lost();
  l.lost_edge = t.snd.una;
  l.undo = Undo{};
  l.force = false;
  l.dup_acks = 0;
  l.has_recover = false;
  l.state = t.sent_segments.sacked() == 0 ? Recovery::Open : Recovery::Disorder;
  if (l.state == Recovery::Open) l.corruption.together = 0;
}

// F-RTO, with or without SACK (RFC 5682 2.1, 3.1). Returns true if the timeout was spurious.
bool frto_says_spurious(Tcb& t, const AckNews& news) {
  LossState& l = t.loss;
  Undo::Frto& f = l.undo.frto;
  if (l.state != Recovery::Loss || f == Undo::Frto::Off) return false;
  const bool duplicate = news.bytes == 0 && (t.sack_on ? news.sack.fresh != 0 : news.plain);
  if (f == Undo::Frto::First) {
    if (duplicate || (news.bytes != 0 && t.snd.una >= l.recover)) {
      f = Undo::Frto::Off;
    } else if (news.bytes != 0) {
      f = Undo::Frto::Second;
    }
    return false;
  }
  // A segment that was not resent has arrived, so it was not lost.
  if (news.delivered.original && news.delivered.lowest_end <= l.recover) return true;
  if (duplicate || news.bytes != 0) f = Undo::Frto::Off;
  return false;
}

// D-SACKs, timestamps, F-RTO. Returns true if a cut was undone.
bool try_undo(Tcb& t, const Segment& s, const AckNews& news) {
  if (news.sack.duplicate) undo_on_dsack(t);
  if (!undo_due(t, news.bytes != 0, s.opts.has_ts, s.opts.tsecr) &&
      !(frto_says_spurious(t, news) && t.config.undo)) {
    return false;
  }
  undo(t);
  return true;
}

// A tail loss probe repaired a loss that nothing else reported. That still means congestion: the
// window is cut as for a mark (RFC 8985 7.4.2).
void probe_repaired(Tcb& t) {
  LossState& l = t.loss;
  if (l.state != Recovery::Open && l.state != Recovery::Disorder) return;
  cc_reduce(t.cc, l.rack.probe_flight, Cut::Loss);
  t.cc.cwnd = std::min(t.cc.cwnd, t.cc.ssthresh);
  l.undo.armed = false;
}

// Sets the window in recovery. When the reordering timer found the losses, no byte was delivered.
// Then only the one segment that enter_recovery() forces may leave, and the other lost segments
// leave as ACKs arrive, however small the pipe has become.
void follow_prr(Tcb& t, std::uint32_t delivered, bool safe) {
  if (t.loss.state != Recovery::Recovery || !prr_on(t)) return;
  t.cc.cwnd = prr_cwnd(t.loss.prr, delivered, loss_pipe(t), t.cc.ssthresh, t.cc.smss, safe);
}

// The last step of every ACK: looks for losses, and sets the window in recovery.
void after_ack(Tcb& t, const AckNews& news, Instant now) {
  bool lost = false;
  if (rack_on(t) || t.sent_segments.sacked() != 0) lost = look_for_losses(t, now);
  follow_prr(t, news.delivered.bytes, news.bytes != 0 && !lost);
}

}  // namespace

SackNews loss_take_sack(Tcb& t, const Segment& s, Delivery* delivered) {
  SackNews news;
  LossState& l = t.loss;
  const Seq una = snd_una_seq(t);
  const std::uint32_t span = flight(t);
  for (std::uint8_t i = 0; i < s.opts.sack_count; ++i) {
    SackBlock b = s.opts.sack[i];
    const std::int32_t from = b.begin - una, to = b.end - una;
    if (from >= to) continue;
    if (from < 0 || static_cast<std::uint32_t>(to) > span) {
      // Below SND.UNA: the report of a duplicate (RFC 2883 4). Beyond the data sent: invalid.
      if (i == 0 && to <= 0) news.duplicate = true;
      continue;
    }
    // Inside the second block: a duplicate above SND.UNA (RFC 2883 4).
    if (i == 0 && s.opts.sack_count > 1) {
      const SackBlock& next = s.opts.sack[1];
      if (next.begin <= b.begin && b.end <= next.end) {
        news.duplicate = true;
        continue;
      }
    }
    // Blocks repeat from ACK to ACK. Look only at what this ACK adds.
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
    news.fresh += t.sent_segments.sack(begin, end, fin, delivered);
    if (!l.any_sacked || end > l.highest_sacked) l.highest_sacked = end;
    l.any_sacked = true;
  }
  // A duplicate of our own probe says nothing about reordering.
  if (news.duplicate && !(l.rack.probe_out && l.rack.probe_again)) rack_on_dsack(t);
  l.seen_count = s.opts.sack_count;
  std::copy_n(s.opts.sack.begin(), s.opts.sack_count, l.seen.begin());
  return news;
}

void loss_on_progress(Tcb& t, const Segment& s, const AckNews& news, Instant now) {
  LossState& l = t.loss;
  corruption_earned(l.corruption, t.cc, news.bytes);
  AckTime at{now, t.rtt.srtt};
  const Delivery& d = news.delivered;
  if (d.any && !d.again) at.rtt = now - d.sent_at;
  at.una = t.snd.una;
  at.nxt = t.snd.nxt;
  at.sack = t.sack_on;
  if (l.rack.probe_out && probe_on_ack(t, news.sack.duplicate, false)) probe_repaired(t);
  const bool cut = l.undo.armed && try_undo(t, s, news);
  if (l.state == Recovery::Open) [[likely]] {
    if (!cut) cc_acked(t.cc, t.config, news.bytes, at);
    if (news.sack.fresh == 0) return;
    l.state = Recovery::Disorder;
    after_ack(t, news, now);
    return;
  }
  l.dup_acks = 0;
  const bool done = !l.has_recover || t.snd.una >= l.recover;
  switch (l.state) {
    case Recovery::Recovery:
      if (done || (!t.sack_on && t.cc.algorithm == CongestionControl::Reno)) {
        leave_recovery(t);
      } else if (!t.sack_on && !t.sent_segments.empty()) {
        // RFC 6582 3.2 step 5: the next one is missing as well.
        cc_partial_ack(t.cc, news.bytes);
        l.impatient = l.partial;
        l.partial = true;
        // One of the acknowledged segments was the retransmission.
        const std::uint32_t passed = news.delivered.segments;
        l.arrived -= std::min(l.arrived, passed - std::min(passed, 1u));
        resend_head(t);
      }
      break;
    case Recovery::Loss:
      cc_acked(t.cc, t.config, news.bytes, at);
      if (done) leave_recovery(t);
      break;
    case Recovery::Cwr:
      if (done) leave_recovery(t);
      break;
    case Recovery::Disorder:
    case Recovery::Open:
      cc_acked(t.cc, t.config, news.bytes, at);
      if (t.sent_segments.sacked() == 0 && t.sent_segments.to_resend() == 0) {
        l.state = Recovery::Open;
        l.corruption.together = 0;
      }
      break;
  }
  after_ack(t, news, now);
}

void loss_on_same_ack(Tcb& t, const Segment& s, const AckNews& news, Instant now) {
  LossState& l = t.loss;
  if (l.rack.probe_out) probe_on_ack(t, news.sack.duplicate, news.plain && s.opts.sack_count == 0);
  if (l.undo.armed) try_undo(t, s, news);
  // RFC 6675 2: with SACK, an ACK that SACKs nothing new is no duplicate ACK. With E-26 it counts.
  const bool counts =
      t.sack_on ? news.sack.fresh != 0 || (t.config.count_plain_dupacks && news.plain) : news.plain;
  if (!counts) return;
  if (l.state == Recovery::Recovery) {
    if (!t.sack_on) {
      cc_inflate(t.cc);
      ++l.arrived;
      if (resend_is_lost(t)) resend_head(t);
    }
    after_ack(t, news, now);
    return;
  }
  if (l.dup_acks < 255) ++l.dup_acks;
  if (l.state == Recovery::Open) l.state = Recovery::Disorder;
  // RACK has its own rule for when three duplicates are enough (RFC 8985 6.2 step 4). It knows
  // nothing of duplicates without SACK information (E-26).
  const bool by_count = l.dup_acks >= l.reordering && (!rack_on(t) || news.sack.fresh == 0);
  if (by_count && !t.sent_segments.empty() && may_enter(t)) {
    if (rack_on(t)) t.sent_segments.mark_lost_again(0);
    enter_recovery(t);
    if (!t.sack_on) {
      l.arrived = l.dup_acks;
      resend_head(t);
    }
  }
  after_ack(t, news, now);
}

void loss_on_timeout(Tcb& t, bool first, Instant now) {
  LossState& l = t.loss;
  // RFC 5682 3.1 step 1: not if only retransmissions were lost.
  const bool frto = t.config.frto && l.state != Recovery::Recovery &&
                    (l.state != Recovery::Loss || (!first && l.undo.frto == Undo::Frto::First));
  // RFC 5681 3.1: ssthresh is lowered once for the same data, also if the timer expires again.
  if (first && l.state == Recovery::Recovery) {
    cc_timeout_in_recovery(t.cc, flight(t));
    l.undo.armed = false;
  } else if (first) {
    cc_reduce(t.cc, flight(t), Cut::Timeout);
    undo_arm(t);
  }
  cc_timeout(t.cc);
  // RFC 6675 5.1: SACKed marks may be kept if reneging is detected in another way. E-27 detects it
  // when the window reaches SACKed data or begins with it.
  const bool keep =
      rack_on(t) && !(!t.sent_segments.empty() && t.sent_segments.front().is(SentSegment::kSacked));
  if (keep) {
    rack_on_timeout(t, now);
  } else {
    t.sent_segments.all_lost();
    l.any_sacked = false;
    l.highest_sacked = t.snd.una;
    l.rack.probe_out = l.rack.probe_due = false;
    t.timers.reorder = Instant::never();
  }
  l.state = Recovery::Loss;
  l.impatient = false;
  l.recover = t.snd.nxt;
  l.has_recover = true;
  l.dup_acks = 0;
  l.reordering = 3;
  l.force = true;
  l.has_rescue = false;
  l.seen_count = 0;
  l.high_rxt = t.snd.una;
  l.lost_edge = t.snd.una;
  l.undo.frto = frto ? Undo::Frto::First : Undo::Frto::Off;
}

void loss_on_reordering_timer(Tcb& t, Instant now) {
  t.timers.reorder = Instant::never();
  if (look_for_losses(t, now)) follow_prr(t, 0, false);
}

void loss_on_reneging(Tcb& t) {
  LossState& l = t.loss;
  t.sent_segments.renege();
  l.any_sacked = false;
  l.highest_sacked = t.snd.una;
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
  cc_reduce(t.cc, flight(t), Cut::Mark);
  l.undo.armed = false;
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
  // A smaller MTU is not congestion: the window stays (RFC 1191 6.4 leaves this to the
  // implementation).
  t.loss.high_rxt = t.snd.una;
  t.loss.force = true;
  if (t.loss.state == Recovery::Open) t.loss.state = Recovery::Disorder;
}

std::uint32_t loss_pipe(const Tcb& t) {
  const Scoreboard& b = t.sent_segments;
  if (t.loss.state == Recovery::Open) return flight(t);
  std::uint32_t pipe = flight(t) - b.lost() + b.retransmitted();
  // Before recovery, SACKed data makes room for new data only as limited transmit (RFC 6675 5 (3)).
  if (t.loss.state != Recovery::Disorder || t.config.limited_transmit) pipe -= b.sacked();
  return pipe;
}

std::uint32_t loss_limited_transmit(const Tcb& t) {
  if (t.sack_on || !t.config.limited_transmit || t.loss.state != Recovery::Disorder) return 0;
  return std::min<std::uint32_t>(t.loss.dup_acks, 2) * t.cc.smss;
}

std::size_t loss_next_lost(Tcb& t) {
  Scoreboard& b = t.sent_segments;
  if (b.to_resend() == 0) return b.size();
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
  // A lost segment may still lie below HighRxt, if it was marked later.
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
  // RACK-TLP does not need these guesses (RFC 8985 5.4).
  if (l.state != Recovery::Recovery || !t.sack_on || t.config.rack) return b.size();
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
  // Rule 4: one rescue retransmission of the last bytes, so that the tail does not wait for the
  // timer.
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
  undo_on_retransmission(t, now);
  const bool rescue = l.state == Recovery::Recovery && t.sack_on && !t.config.rack &&
                      !s.is(SentSegment::kLost) && (!l.any_sacked || s.begin >= l.highest_sacked);
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
