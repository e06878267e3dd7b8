#include "rsockets/mappings.h"

#include <algorithm>

namespace urnic::rsockets {

void Mappings::open(std::uint32_t peers, std::uint32_t own) {
  peers_ = peers;
  own_.clear();
  theirs_.assign(own, {});
}

int Mappings::free_index() const {
  for (std::uint32_t i = 0; i < peers_; ++i) {
    const bool taken = std::any_of(own_.begin(), own_.end(),
                                   [&](const Own& o) { return o.index == static_cast<int>(i); });
    if (!taken) return static_cast<int>(i);
  }
  return kLocal;
}

void Mappings::add(const Own& o) {
  own_.push_back(o);
}

bool Mappings::remove(const void* buffer, std::size_t length, Own* out) {
  const auto found = std::find_if(own_.begin(), own_.end(), [&](const Own& o) {
    return o.buffer == buffer && o.length == length;
  });
  if (found == own_.end()) return false;
  *out = *found;
  own_.erase(found);
  return true;
}

Mappings::Own* Mappings::untold() {
  for (Own& o : own_) {
    if (o.index != kLocal && !o.told) return &o;
  }
  return nullptr;
}

bool Mappings::on_mapping(std::uint32_t index, const Mapping& m) {
  if (index >= theirs_.size()) return false;
  theirs_[index] = m;
  return true;
}

const Mapping* Mappings::find(std::uint64_t offset) const {
  for (const Mapping& m : theirs_) {
    if (offset >= m.offset && offset - m.offset < m.memory.length) return &m;
  }
  return nullptr;
}

}  // namespace urnic::rsockets
