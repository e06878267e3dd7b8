#include "ib/sent_log.h"

#include <bit>
#include <type_traits>
#include <utility>

namespace urnic::ib {

// ---- memory

bool SentLog::open() {
  static_assert(std::is_trivially_copyable_v<Record>);
  if (ring_ != nullptr) return true;
  if (pool_ == nullptr) return false;
  const std::uint32_t room = std::bit_ceil(std::max(most_, 1u));
  shift_ = std::max(static_cast<unsigned>(std::bit_width(room * sizeof(Record) - 1)),
                    BufferPool::kMinShift);
  ring_ = reinterpret_cast<Record*>(pool_->take(shift_));
  if (ring_ == nullptr) return false;
  mask_ = room - 1;
  return true;
}

void SentLog::clear() {
  head_ = count_ = lost_ = kept_ = 0;
  due_ = Instant::never();
  if (ring_ == nullptr) return;
  pool_->give(reinterpret_cast<std::uint8_t*>(ring_), shift_);
  ring_ = nullptr;
}

// ---- sending

void SentLog::append(Psn psn, Psn end, Instant now) {
  if (count_ != 0 && (psn != end_ || count_ == most_)) clear();
  if (!open()) return;
  at(count_++) = {now, psn, 0};
  end_ = end;
}

void SentLog::append_run(Psn first, std::uint32_t packets, Instant now) {
  if (!open()) return;
  for (std::uint32_t i = 0; i < packets; ++i) at(count_ + i) = {now, first + i, 0};
  count_ += packets;
  end_ = first + packets;
}

void SentLog::again(Psn psn, Instant now) {
  if (!covers(psn)) return;
  Record& r = at(find(psn));
  unmark_lost(&r);
  r.left = now;
  r.flags |= kRepeated;
}

// The index of the record that contains `psn`, which is covered. Mostly each record has one PSN.
std::uint32_t SentLog::find(Psn psn) const {
  const std::uint32_t guess = psn - at(0).psn;
  if (guess < count_ && at(guess).psn == psn) return guess;
  std::uint32_t found = 0, behind = count_;
  while (behind - found > 1) {
    const std::uint32_t middle = found + (behind - found) / 2;
    if (psn.before(at(middle).psn)) {
      behind = middle;
    } else {
      found = middle;
    }
  }
  return found;
}

// ---- reports of the peer

bool SentLog::left_before_newest(const Record& r) const {
  if (r.left != newest_.left) return r.left < newest_.left;
  return r.psn.before(newest_.psn);
}

void SentLog::unmark_lost(Record* r) {
  if (r->is(kLost)) --lost_;
  r->flags &= static_cast<std::uint8_t>(~kLost);
}

// The packet has arrived. If it was repeated and arrives sooner than any response is possible, it
// was only late: the reordering window is too narrow, and the sample is no round trip.
void SentLog::take(Record* r, Instant now) {
  if (r->is(kHas)) return;
  const bool late = r->is(kLost);
  unmark_lost(r);
  r->flags |= kHas;
  ++kept_;
  const Duration trip = now - r->left;
  const bool needless = r->is(kRepeated) && trip * 4 < least_trip_ * 3;
  if (needless) ++needless_;
  if (late || needless) {
    widen(*r, now);
    if (needless) return;
  } else if (r->is(kRepeated) && ++calm_ == kCalm) {
    calm_ = 0;
    width_ = std::max<std::uint8_t>(width_ - 1, 1);
  }
  if (!r->is(kRepeated) && (least_trip_ == Duration::zero() || trip < least_trip_)) {
    least_trip_ = trip;
  }
  // For a repeated packet it is unknown which copy was answered (Karn); such a sample only counts
  // once something has been measured.
  if (r->is(kRepeated) && least_trip_ == Duration::zero()) return;
  if (!newest_.known || !left_before_newest(*r)) newest_ = {r->left, r->psn, trip, true};
}

// Widens only once for all packets sent before the last widening: a late burst counts once.
void SentLog::widen(const Record& r, Instant now) {
  calm_ = 0;
  if (r.left < widened_) return;
  widened_ = now;
  width_ = std::min<std::uint8_t>(width_ + 1, kMostWidth);
}

// The peer has dropped a packet that it had kept.
void SentLog::take_back(Record* r) {
  if (r->is(kHas)) --kept_;
  r->flags &= static_cast<std::uint8_t>(~kHas);
}

void SentLog::passed(Psn una, Instant now) {
  while (count_ != 0) {
    const Psn end = count_ == 1 ? end_ : at(1).psn;
    if (una.before(end)) return;
    take(&at(0), now);
    --kept_;
    ++head_;
    --count_;
  }
  clear();
}

bool SentLog::report(const Sack& sack, Instant now) {
  if (any_serial_ && static_cast<std::int32_t>(sack.serial - serial_) <= 0) return false;
  any_serial_ = true;
  serial_ = sack.serial;
  std::uint32_t i = 0;
  for (; i < count_ && at(i).psn.before(sack.expected); ++i) take(&at(i), now);
  for (; i < count_; ++i) {
    const std::uint32_t bit = at(i).psn - sack.expected;
    if (bit >= sack.size()) break;
    if (sack.has(bit)) {
      take(&at(i), now);
    } else {
      take_back(&at(i));
    }
  }
  return true;
}

Duration SentLog::reordering_window() const {
  return std::max(kLeastWindow, least_trip_ * width_ / 4);
}

void SentLog::judge(Instant now) {
  due_ = Instant::never();
  if (!newest_.known) return;
  const Duration enough = newest_.round_trip + reordering_window();
  for (std::uint32_t i = 0; i < count_; ++i) {
    Record& r = at(i);
    if (r.is(kHas) || r.is(kLost)) continue;
    const bool overtaken = left_before_newest(r);
    if (overtaken && r.left + enough <= now) {
      r.flags |= kLost;
      ++lost_;
      continue;
    }
    if (overtaken) due_ = earlier(due_, r.left + enough);
    // The packets after it were sent later, or were repeated later; mostly it is the first.
    if (!r.is(kRepeated)) return;
  }
}

void SentLog::mark_lost(Psn psn) {
  if (!covers(psn)) return;
  Record& r = at(find(psn));
  take_back(&r);
  if (r.is(kLost)) return;
  r.flags |= kLost;
  ++lost_;
}

Psn SentLog::first_lost() const {
  std::uint32_t i = 0;
  while (!at(i).is(kLost)) ++i;
  return at(i).psn;
}

std::uint32_t SentLog::take_needless_repeats() {
  return std::exchange(needless_, 0);
}

}  // namespace urnic::ib
