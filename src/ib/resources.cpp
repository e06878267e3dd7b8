#include "ib/resources.h"

#include <algorithm>
#include <new>

namespace urnic::ib {

bool Resources::open() {
  if (ring_ == nullptr) ring_.reset(new (std::nothrow) Resource[depth_]);
  return ring_ != nullptr;
}

bool Resources::full() const {
  if (size_ < depth_) return false;
  return size_ == 0 || at(0).fresh;
}

void Resources::add(const Resource& r) {
  if (!open()) throw std::bad_alloc();
  if (size_ == depth_) {
    done(&at(0));
    oldest_ = (oldest_ + 1) % depth_;
    --size_;
  }
  Resource& mine = at(size_++);
  mine = r;
  mine.asides = 0;
  mine.fresh = mine.pending = true;
  mine.answer = {r.psn, r.address, r.length, 0};
  ++pending_;
}

Resource* Resources::find(Psn psn) {
  for (std::uint32_t i = size_; i-- != 0;) {
    if (psn - at(i).psn < at(i).packets) return &at(i);
  }
  return nullptr;
}

void Resources::ask_again(Resource* r, const Answer& answer, bool alone) {
  if (!r->pending) ++pending_;
  r->pending = true;
  r->answer = answer;
  if (alone) return;
  bool behind = false;
  for (std::uint32_t i = 0; i != size_; ++i) {
    if (behind) at(i).answer.sent = 0;
    behind = behind || &at(i) == r;
  }
}

bool Resources::reads_by(std::uint32_t rkey) const {
  if (pending_ == 0) return false;
  for (std::uint32_t i = 0; i != size_; ++i) {
    if (at(i).fresh && at(i).family == Family::Read && at(i).rkey == rkey) return true;
  }
  return false;
}

Resource* Resources::due() {
  if (pending_ == 0) return nullptr;
  for (std::uint32_t i = 0; i != size_; ++i) {
    if (at(i).pending) return &at(i);
  }
  return nullptr;
}

void Resources::done(Resource* r) {
  if (r->pending) --pending_;
  r->pending = r->fresh = false;
  while (r->asides != 0) aside_done(r);
}

// ---- parts

void Resources::ask_aside(Resource* r, const Answer& part) {
  if (asides_ == nullptr) asides_.reset(new (std::nothrow) Aside[kMostAsides]);
  if (asides_ == nullptr || asides_count_ == kMostAsides) return;
  const auto known = [&](const Aside& a) {
    return a.of == r && a.part.psn == part.psn && a.part.bytes == part.bytes && a.part.sent == 0;
  };
  if (std::any_of(asides_.get(), asides_.get() + asides_count_, known)) return;
  asides_[asides_count_++] = {r, part};
  ++r->asides;
}

Resources::Aside* Resources::first_aside(const Resource& r) {
  const auto mine = [&](const Aside& a) { return a.of == &r; };
  return std::find_if(asides_.get(), asides_.get() + asides_count_, mine);
}

Answer& Resources::aside_of(const Resource& r) {
  return first_aside(r)->part;
}

void Resources::aside_done(Resource* r) {
  Aside* const a = first_aside(*r);
  std::copy(a + 1, asides_.get() + asides_count_, a);
  --asides_count_;
  --r->asides;
}

}  // namespace urnic::ib
