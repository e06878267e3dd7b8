#include "ib/read_ahead.h"

#include <algorithm>
#include <new>

namespace urnic::ib {

bool ReadAhead::open() {
  if (book_ != nullptr) return true;
  std::uint8_t* const block = pool_ == nullptr ? nullptr : pool_->take(kShift);
  if (block != nullptr) book_ = new (block) Book;
  return book_ != nullptr;
}

void ReadAhead::clear() {
  if (book_ == nullptr) return;
  pool_->give(reinterpret_cast<std::uint8_t*>(book_), kShift);
  book_ = nullptr;
}

void ReadAhead::pass(Psn p, Instant now) {
  if (book_ == nullptr) return;
  book_->has[p.value() % kReach] = false;
  came(p, now);
}

// A part is answered in order, so its last packet completes it.
void ReadAhead::came(Psn p, Instant now) {
  book_->heard = now;
  for (const Part& part : book_->parts) {
    if (part.left.is_never() || part.end != p + 1 || part.serial < book_->answered) continue;
    book_->answered = part.serial;
    book_->answered_psn = part.begin;
  }
}

Psn ReadAhead::first(bool come, Psn from, Psn to) const {
  while (from != to && has(from) != come) ++from;
  return from;
}

// Peers answer parts in the order of their PSNs or in that of the requests. So a part that was
// requested earlier than an answered one, and lies before it, has been lost.
bool ReadAhead::waits(Part* part, Instant now, const Patience& patience, Instant* until) const {
  const bool overtaken = part->serial < book_->answered && part->begin.before(book_->answered_psn);
  const Instant silent = std::max(part->left, book_->heard) + patience.most;
  const Instant end = overtaken ? part->left + patience.overtaken
                                : earlier(silent, part->left + patience.most * kQueued);
  if (now < end && first(false, part->begin, part->end) != part->end) {
    *until = end;
    return true;
  }
  *part = {};
  return false;
}

bool ReadAhead::asked(Psn from, Psn to, Instant now, const Patience& patience, Instant* until) {
  if (book_ == nullptr) return false;
  for (Part& part : book_->parts) {
    if (part.left.is_never() || part.begin - from >= to - from) continue;
    if (waits(&part, now, patience, until)) return true;
  }
  return false;
}

bool ReadAhead::covers(Psn p, Instant now, const Patience& patience, Instant* until, Psn* end) {
  if (book_ == nullptr) return false;
  for (Part& part : book_->parts) {
    if (part.left.is_never() || p - part.begin >= part.end - part.begin) continue;
    *end = part.end;
    if (waits(&part, now, patience, until)) return true;
  }
  return false;
}

bool ReadAhead::ask(Psn begin, Psn end, Psn una, Instant now) {
  if (!open()) return true;
  const auto free = [&](const Part& part) {
    return part.left.is_never() || !una.before(part.end) ||
           (!part.begin.before(una) && first(false, part.begin, part.end) == part.end);
  };
  const auto spare = std::ranges::find_if(book_->parts, free);
  if (spare == book_->parts.end()) return false;
  *spare = {begin, end, ++book_->serial, now};
  return true;
}

bool ReadAhead::ends(Psn p) const {
  return book_ != nullptr && std::ranges::any_of(book_->parts, [p](const Part& part) {
           return !part.left.is_never() && part.end == p + 1;
         });
}

}  // namespace urnic::ib
