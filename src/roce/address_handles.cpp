#include "roce/address_handles.h"

namespace urnic::roce {

std::uint32_t AddressHandles::open(const ib::AddressVector& av) {
  std::uint32_t index = first_free_;
  if (index == kNone) {
    if (entries_.size() == kMost) return 0;
    index = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    first_free_ = entries_[index].next_free;
  }
  Entry& e = entries_[index];
  e.handle = {av, {}};
  e.open = true;
  ++size_;
  return index | e.generation << kIndexBits;
}

AddressHandles::Handle* AddressHandles::find(std::uint32_t handle) {
  const std::uint32_t index = handle & (kMost - 1);
  if (index >= entries_.size()) return nullptr;
  Entry& e = entries_[index];
  return e.open && e.generation == handle >> kIndexBits ? &e.handle : nullptr;
}

void AddressHandles::close(std::uint32_t handle) noexcept {
  if (find(handle) == nullptr) return;
  const std::uint32_t index = handle & (kMost - 1);
  Entry& e = entries_[index];
  e.open = false;
  e.generation = e.generation + 1 == kGenerations ? 1 : e.generation + 1;
  e.next_free = first_free_;
  first_free_ = index;
  --size_;
}

}  // namespace urnic::roce
