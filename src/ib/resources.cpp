#include "ib/resources.h"

namespace urnic::ib {

Resources::Resources(std::uint8_t depth)
    : depth_(depth), ring_(depth == 0 ? nullptr : new Resource[depth]) {}

bool Resources::full() const {
  if (size_ < depth_) return false;
  return size_ == 0 || at(0).fresh;
}

void Resources::add(const Resource& r) {
  if (size_ == depth_) {
    done(&at(0));
    oldest_ = (oldest_ + 1) % depth_;
    --size_;
  }
  Resource& mine = at(size_++);
  mine = r;
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
  r->pending = r->fresh = r->has_aside = false;
}

}  // namespace urnic::ib
