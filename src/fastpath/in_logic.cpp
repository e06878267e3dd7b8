#include "fastpath/in_logic.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace urnic::fastpath {
namespace {

// 4B and E-8 depend on whether the segment begins at RCV.NXT, not on whether TCP found it free of
// overlap.
bool in_order(const SegmentFacts& f) {
  return f.arrival == tcp::Arrival::InOrder || f.at_rcv_nxt;
}

// The error that decides: the first in order (S11-S13, R-24). Only for a failed validation.
Reason error_row(const Validation& v) {
  assert(!v.frames.empty());
  const bool first = v.frames.size() == 1;
  if (v.frames.back().status == FrameStatus::TooLong) {
    return first ? Reason::TooLong : Reason::TooLongLast;
  }
  return first ? Reason::CrcFirst : Reason::CrcLater;
}

// 4B.S105: true if this in-order segment, sent after everything that caused the recovery, ends it.
bool ends_recovery(const ConnectionContext& c, const SegmentFacts& f) {
  return c.recovery_attempts != 0 && in_order(f) && f.sn > c.last_recovery_sn;
}

// True if the refused segment begins exactly where another one ended inside an FPDU. Then the peer
// (or a device on the path) cuts FPDUs, and the data is not corrupted.
bool completes_cut(const ConnectionContext& c, const SegmentFacts& f) {
  return c.config.max_cut_frames != 0 && c.cut_open && f.sn == c.cut_end;
}

// The number of cut FPDUs, including this one and those shortly before.
std::uint32_t cuts_with(const ConnectionContext& c, const SegmentFacts& f) {
  const std::int32_t apart = f.sn - c.last_cut;
  return (apart > -kCutReach && apart < kCutReach ? c.cuts : 0) + 1;
}

PathDecision downgrade(Reason why, Reason error) {
  PathDecision v;
  v.action = PathAction::Downgrade;
  v.reason = why;
  v.error = error;
  return v;
}

// Figs 4A and 10 (S155/S156) with E-8: drops once more, or downgrades at the limit.
PathDecision erroneous(const ConnectionContext& c, const SegmentFacts& f, Reason error) {
  PathDecision v;
  // 4B may run before 4A.S102: an error beyond the last recovery begins a new one. Fig 10
  // has its reset (S157) only on the branch of segments that passed.
  v.reset_recovery = c.config.variant != InLogicVariant::Fig10 && ends_recovery(c, f);
  const std::uint32_t attempts = v.reset_recovery ? 0 : c.recovery_attempts;
  // Counting first and testing '>' (4A) is the same as testing '>=' first (S155, Q-6): exactly
  // MaxRecoveryAttemptsNum drops.
  if (attempts >= c.config.max_recovery_attempts) {
    // Without section 4 there is no recovery to exhaust.
    return downgrade(c.config.max_recovery_attempts == 0 ? error : Reason::RecoveryExhausted,
                     error);
  }
  if (c.config.max_same_segment != 0 && in_order(f) && c.same_sn == f.sn &&
      c.same_count >= c.config.max_same_segment) {
    return downgrade(Reason::SameSegment, error);
  }
  v.cut = completes_cut(c, f);
  if (v.cut && cuts_with(c, f) >= c.config.max_cut_frames) {
    return downgrade(Reason::CutFrames, error);
  }
  v.action = PathAction::Drop;
  v.reason = error;
  v.counts = true;
  return v;
}

// S7 / S159.
PathDecision cut_through(const ConnectionContext& c, const SegmentFacts& f) {
  PathDecision v;
  v.action = PathAction::Fast;
  v.reason = Reason::Aligned;
  v.reset_recovery = ends_recovery(c, f);  // 4B.S106, S158
  return v;
}

// E-41: the segment is valid, but may not be placed before the bytes missing in front of it. It has
// no error, so this is not a recovery attempt.
PathDecision keep() {
  PathDecision v;
  v.action = PathAction::Keep;
  v.reason = Reason::OutOfOrderStore;
  return v;
}

// All frames are valid, and the bytes received before wait in the reassembly buffer, so nothing was
// placed from bytes that only looked like frames. RCV.NXT is a frame boundary (I-1), so the frames
// from there on are right, whatever the buffer holds of them. Elsewhere a bad seam means that
// either the old or the new bytes are not frames, and the segment can be retransmitted.
PathDecision overlapping_detour(const ConnectionContext& c, const SegmentFacts& f) {
  if (f.frame_at_rcv_nxt) return cut_through(c, f);
  return f.seam_on_boundary ? keep() : erroneous(c, f, Reason::Seam);
}

// All frames are valid, but some of their bytes were received before.
PathDecision overlapping(const ConnectionContext& c, const SegmentFacts& f) {
  if (!places_out_of_order(c)) return overlapping_detour(c, f);
  if (f.seam_on_boundary) return cut_through(c, f);
  // RCV.NXT is a frame boundary (I-1), so a chain of valid frames from there is right. If the chain
  // does not meet the edge of a block, the block was placed from bytes that only looked like frames
  // (E-12). Dropping the segment cannot repair that.
  if (f.at_rcv_nxt) {
    return downgrade(Reason::Seam, Reason::Seam);
  }
  return erroneous(c, f, Reason::Seam);
}

// The counter for a row of Fig 3 that drops or downgrades.
Reason row_reason(Row row, HeaderCase header, const Validation& v) {
  if (v.frames.back().status == FrameStatus::BadMarker) return Reason::MarkerElsewhere;
  if ((row == Row::T4 || row == Row::T8) && header == HeaderCase::A) return Reason::CrcCaseA;
  if ((row == Row::T5 || row == Row::T8) && header == HeaderCase::B) return Reason::CrcCaseB;
  return error_row(v);
}

// S9 for certain corruption: it cannot cause a deadlock and a downgrade would not help, so it is
// not a recovery attempt. 4B still checks every in-order segment.
PathDecision corrupted(const ConnectionContext& c, const SegmentFacts& f, Reason why) {
  PathDecision v;
  v.action = PathAction::Drop;
  v.reason = why;
  v.reset_recovery = ends_recovery(c, f);
  return v;
}

// Fig 3 on a FAST connection (S4 to S13), with section 4 in the rows marked with a diamond.
PathDecision decide_fig3(const ConnectionContext& c, const SegmentFacts& f) {
  const Validation& val = *f.validation;
  const Row row = fig3_row(false, f.payload, val, f.header);
  PathDecision v;
  if (row == Row::T3 || row == Row::T7) {  // S7
    v = f.arrival == tcp::Arrival::Overlap ? overlapping(c, f) : cut_through(c, f);
  } else if (certain(row, f.header)) {  // S9
    v = corrupted(c, f, row_reason(row, f.header, val));
  } else {  // S3, or 4A.S102 before it
    v = erroneous(c, f, row_reason(row, f.header, val));
  }
  v.row = row;
  return v;
}

PathDecision decide_fast(const ConnectionContext& c, const SegmentFacts& f) {
  if (c.config.variant == InLogicVariant::Fig3) return decide_fig3(c, f);
  const Validation& val = *f.validation;
  // Cases 2 and 3 and the failing half of case 4 in Fig 9; S154 NO of Fig 10, which sees only the
  // bit. Without markers there is no S10: in Case A and in all others, the segment is dropped
  //
  if (!val.passed()) return erroneous(c, f, error_row(val));
  if (f.arrival == tcp::Arrival::Overlap) return overlapping(c, f);
  if (f.arrival == tcp::Arrival::OutOfOrder && !places_out_of_order(c)) return keep();
  return cut_through(c, f);
}

PathDecision decide_slow(const ConnectionContext& c, const SegmentFacts& f) {
  PathDecision v;
  v.action = PathAction::Store;
  v.reason = Reason::Slow;
  if (c.config.variant == InLogicVariant::Fig3) v.row = Row::T1;
  if (c.config.initiated_as != ConnectionType::Fast) {
    return v;  // S34
  }
  if (!c.config.crc) return v;                                               // E-2
  v.aligned = f.arrival == tcp::Arrival::InOrder && f.validation->passed();  // S33
  const std::uint32_t needed = std::max<std::uint32_t>(c.upgrade_needed, 1);
  if (v.aligned && f.reassembly_empty &&  // S31
      c.aligned_seen + 1 >= needed) {
    v.action = PathAction::Fast;  // S35: this segment continues at S4 as FAST
    v.reason = Reason::Upgrade;
    v.upgraded = true;
  }
  return v;
}

void leave_recovery(ConnectionContext& c) {
  c.recovery_attempts = 0;
  c.same_count = 0;
}

void note_cut(ConnectionContext& c, const PathDecision& v, const SegmentFacts& f) {
  if (v.cut) {
    c.cuts = cuts_with(c, f);
    c.last_cut = f.sn;
  }
  // The second half can parse as anything, so it does not count as the beginning of another cut.
  c.cut_open = !v.cut && (v.reason == Reason::TooLong || v.reason == Reason::TooLongLast);
  c.cut_end = f.sn + f.payload;
}

void note_drop(ConnectionContext& c, const SegmentFacts& f) {
  // A stale LastRecoverySN is ignored in a new recovery.
  const bool first = c.recovery_attempts == 0;
  c.last_recovery_sn = first ? f.sn : tcp::seq_max(c.last_recovery_sn, f.sn);
  ++c.recovery_attempts;
  if (!in_order(f)) return;
  if (c.same_sn != f.sn) c.same_count = 0;
  c.same_sn = f.sn;
  ++c.same_count;
}

// E-9: N is as configured after the first downgrade. Each later one halves N once per minute spent
// FAST, then doubles it.
void note_downgrade(ConnectionContext& c, Reason why, Instant now) {
  const std::uint32_t least =
      std::clamp<std::uint32_t>(c.config.upgrade_after, 1, kMaxUpgradeAfter);
  if (!c.was_downgraded) {
    c.upgrade_needed = least;
  } else {
    constexpr std::int64_t kMinute = 60'000'000'000;
    const std::int64_t minutes =
        std::clamp<std::int64_t>((now - c.fast_since).count_ns() / kMinute, 0, 31);
    const std::uint32_t rested = std::max(least, c.upgrade_needed >> minutes);
    c.upgrade_needed = std::min(2 * rested, kMaxUpgradeAfter);
  }
  if (why == Reason::CutFrames) {
    c.upgrade_needed = std::min(std::max(c.upgrade_needed, least * kHabit), kMaxUpgradeAfter);
  }
  c.was_downgraded = true;
  c.type = ConnectionType::Slow;
  c.aligned_seen = 0;
  c.cuts = 0;
  c.cut_open = false;
  leave_recovery(c);
}

void note_upgrade(ConnectionContext& c, Instant now) {
  c.type = ConnectionType::Fast;
  c.fast_since = now;
  c.aligned_seen = 0;
  leave_recovery(c);
}

// E-9: counts segments in a row. A segment that says nothing about alignment (valid, out of order)
// neither counts nor ends the row. A segment that is not aligned ends it, wherever it lies.
void note_stored(ConnectionContext& c, const PathDecision& v, const SegmentFacts& f) {
  if (v.aligned) {
    if (c.aligned_seen < kMaxUpgradeAfter) ++c.aligned_seen;
  } else if (!f.validation->passed()) {
    c.aligned_seen = 0;
  }
}

}  // namespace

std::string_view reason_name(Reason reason) {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(Reason::kCount)> kNames = {
      "slow",          "aligned",    "crc-first",          "crc-later",          "too-long",
      "too-long-last", "seam",       "out-of-order-store", "recovery-exhausted", "same-segment",
      "upgrade",       "crc-case-a", "crc-case-b",         "marker-elsewhere",   "cut-frames",
  };
  const auto i = static_cast<std::size_t>(reason);
  return i < kNames.size() ? kNames[i] : "?";
}

bool places_out_of_order(const ConnectionContext& c) {
  return c.config.place_out_of_order || c.config.variant == InLogicVariant::Fig3;
}

PathDecision decide(const ConnectionContext& context, const SegmentFacts& facts) {
  assert(facts.validation != nullptr && !facts.validation->frames.empty());
  const bool slow = context.type == ConnectionType::Slow;
  return slow ? decide_slow(context, facts)  // S2, S152
              : decide_fast(context, facts);
}

void become_slow(ConnectionContext& c, Reason why, Instant now) {
  note_downgrade(c, why, now);
}

void apply(ConnectionContext& c, const PathDecision& verdict, const SegmentFacts& facts) {
  switch (verdict.action) {
    case PathAction::Fast:
      if (verdict.upgraded) note_upgrade(c, facts.now);
      if (verdict.reset_recovery) leave_recovery(c);
      if (in_order(facts)) c.same_count = 0;  // RCV.NXT advances
      break;
    case PathAction::Store:
      note_stored(c, verdict, facts);
      break;
    case PathAction::Keep:
      break;
    case PathAction::Downgrade:
      note_downgrade(c, verdict.reason, facts.now);
      break;
    case PathAction::Drop:
      if (verdict.reset_recovery) leave_recovery(c);
      if (verdict.counts) note_drop(c, facts);
      if (c.config.max_cut_frames != 0) note_cut(c, verdict, facts);
      break;
  }
}

}  // namespace urnic::fastpath
