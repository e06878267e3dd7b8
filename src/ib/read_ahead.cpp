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

void ReadAhead::pass(Psn p) {
  if (book_ != nullptr) book_->has[p.value() % kReach] = false;
}

Psn ReadAhead::first(bool come, Psn from, Psn to) const {
  while (from != to && has(from) != come) ++from;
  return from;
}

bool ReadAhead::asked(Psn from, Psn to, Instant now, Duration patience, Instant* until) {
  if (book_ == nullptr) return false;
  for (Part& part : book_->parts) {
    if (part.left.is_never() || part.begin - from >= to - from) continue;
    if (now < part.left + patience && first(false, part.begin, part.end) != part.end) {
      *until = part.left + patience;
      return true;
    }
    part = {};
  }
  return false;
}

bool ReadAhead::ask(Psn begin, Psn end, Instant now) {
  if (!open()) return true;
  const auto free = [](const Part& part) { return part.left.is_never(); };
  const auto spare = std::ranges::find_if(book_->parts, free);
  if (spare == book_->parts.end()) return false;
  *spare = {begin, end, now};
  return true;
}

bool ReadAhead::ends(Psn p) const {
  return book_ != nullptr && std::ranges::any_of(book_->parts, [p](const Part& part) {
           return !part.left.is_never() && part.end == p + 1;
         });
}

}  // namespace urnic::ib
