#include "tcp/scoreboard.h"

namespace urnic::tcp {

using S = SentSegment;

void Scoreboard::count(const S& s) {
  if (s.is(S::kSacked)) {
    sacked_ += s.space();
    ++sacked_segments_;
    return;
  }
  if (s.is(S::kLost)) lost_ += s.space();
  if (s.is(S::kRetransmitted)) retransmitted_ += s.space();
  if ((s.flags & (S::kLost | S::kRetransmitted)) == S::kLost) to_resend_ += s.space();
}

void Scoreboard::uncount(const S& s) {
  if (s.is(S::kSacked)) {
    sacked_ -= s.space();
    --sacked_segments_;
    return;
  }
  if (s.is(S::kLost)) lost_ -= s.space();
  if (s.is(S::kRetransmitted)) retransmitted_ -= s.space();
  if ((s.flags & (S::kLost | S::kRetransmitted)) == S::kLost) to_resend_ -= s.space();
}

std::size_t Scoreboard::index_after(StreamOffset at) const {
  std::size_t lo = 0, hi = segs_.size();
  while (lo < hi) {
    const std::size_t mid = (lo + hi) / 2;
    if (segs_[mid].begin + segs_[mid].space() <= at) {
      lo = mid + 1;
    } else {
      hi = mid;
    }
  }
  return lo;
}

void Scoreboard::push(StreamOffset begin, std::uint32_t len, bool fin, Instant now) {
  S& s = segs_.emplace_back();
  s.begin = begin;
  s.sent_at = now;
  s.len = len;
  if (fin) s.flags = S::kFin;
}

void Scoreboard::pop(StreamOffset una, bool fin, Delivery* out) {
  while (!segs_.empty()) {
    S& s = segs_.front();
    if (una <= s.begin && !(s.len == 0 && fin)) break;
    const bool whole = una >= s.end() && (!s.is(S::kFin) || fin);
    uncount(s);
    if (!whole) {
      // Partly acknowledged: the rest stays as a shorter entry with its marks.
      const auto gone = static_cast<std::uint32_t>(std::min<std::uint64_t>(una - s.begin, s.len));
      if (!s.is(S::kSacked)) {
        S part = s;
        part.len = gone;
        part.flags = static_cast<std::uint8_t>(part.flags & ~S::kFin);
        out->add(part);
      }
      s.begin += gone;
      s.len -= gone;
      count(s);
      break;
    }
    if (!s.is(S::kSacked)) out->add(s);
    segs_.pop_front();
  }
}

std::uint32_t Scoreboard::sack(StreamOffset begin, StreamOffset end, bool fin, Delivery* out) {
  std::uint32_t fresh = 0;
  for (std::size_t i = index_after(begin); i < segs_.size(); ++i) {
    S& s = segs_[i];
    if (s.begin >= end && !(s.len == 0 && fin)) break;
    if (s.begin < begin || s.is(S::kSacked)) continue;
    if (s.end() > end || (s.is(S::kFin) && !fin)) continue;
    out->add(s);
    uncount(s);
    s.flags = static_cast<std::uint8_t>((s.flags & ~(S::kLost | S::kRetransmitted)) | S::kSacked);
    count(s);
    fresh += s.space();
  }
  return fresh;
}

void Scoreboard::mark_lost(std::size_t i) {
  S& s = segs_[i];
  if (s.is(S::kSacked) || s.is(S::kLost)) return;
  uncount(s);
  s.flags |= S::kLost;
  count(s);
}

void Scoreboard::mark_lost_again(std::size_t i) {
  S& s = segs_[i];
  if (s.is(S::kSacked)) return;
  uncount(s);
  s.flags = static_cast<std::uint8_t>((s.flags & ~S::kRetransmitted) | S::kLost);
  count(s);
}

void Scoreboard::mark_retransmitted(std::size_t i, std::uint32_t len, Instant now) {
  if (len < segs_[i].len) {
    // Re-cut to a smaller MSS (E-24): the tail keeps its marks and waits for its own turn. This is
    // rare, so moving the later entries costs little.
    S tail = segs_[i];
    uncount(tail);
    tail.begin += len;
    tail.len -= len;
    segs_[i].len = len;
    segs_[i].flags = static_cast<std::uint8_t>(segs_[i].flags & ~S::kFin);
    count(segs_[i]);
    count(tail);
    segs_.push_back(tail);
    for (std::size_t k = segs_.size() - 1; k > i + 1; --k) segs_[k] = segs_[k - 1];
    segs_[i + 1] = tail;
  }
  S& s = segs_[i];
  uncount(s);
  s.flags |= S::kRetransmitted | S::kEverAgain;
  s.sent_at = now;
  count(s);
  oldest_resent();  // drops finished entries, so that the list is no longer than the flight
  resent_.push_back({s.begin, now});
}

const Scoreboard::Resent* Scoreboard::oldest_resent() {
  while (!resent_.empty()) {
    const Resent& r = resent_.front();
    const std::size_t i = index_after(r.begin);
    if (i < segs_.size() && segs_[i].begin == r.begin && segs_[i].is(S::kRetransmitted) &&
        segs_[i].sent_at == r.at) {
      return &r;
    }
    resent_.pop_front();  // arrived, lost again, or resent once more
  }
  return nullptr;
}

void Scoreboard::none_lost() {
  lost_ = to_resend_ = 0;
  for (std::size_t i = 0; i < segs_.size(); ++i) {
    segs_[i].flags = static_cast<std::uint8_t>(segs_[i].flags & ~S::kLost);
  }
}

void Scoreboard::renege() {
  for (std::size_t i = 0; i < segs_.size(); ++i) {
    S& s = segs_[i];
    if (!s.is(S::kSacked)) continue;
    uncount(s);
    s.flags = static_cast<std::uint8_t>((s.flags & ~S::kSacked) | S::kLost);
    count(s);
  }
}

void Scoreboard::all_lost() {
  sacked_ = lost_ = retransmitted_ = to_resend_ = sacked_segments_ = 0;
  resent_.clear();
  for (std::size_t i = 0; i < segs_.size(); ++i) {
    S& s = segs_[i];
    s.flags = static_cast<std::uint8_t>((s.flags & ~(S::kSacked | S::kRetransmitted)) | S::kLost);
    count(s);
  }
}

void Scoreboard::clear() {
  segs_.clear();
  trim();
  sacked_ = lost_ = retransmitted_ = to_resend_ = sacked_segments_ = 0;
}

}  // namespace urnic::tcp
