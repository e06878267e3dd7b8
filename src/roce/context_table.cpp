#include "roce/context_table.h"

#include <algorithm>

namespace urnic::roce {
namespace {

std::uint32_t salt_of(const SipKey& key) {
  return static_cast<std::uint32_t>(siphash24(key, {2})) & 0xffffff;
}

// Numbers with a special meaning: subnet management, general services, multicast.
bool reserved(std::uint32_t number) {
  return number <= 1 || number == 0xffffff;
}
// This many entries stay unused before one is reused, so that a number does not soon return.
constexpr std::uint32_t kRest = 64;

}  // namespace

ContextTable::ContextTable(const SipKey& key, std::uint32_t most)
    : form_(key), salt_(salt_of(key)), most_(std::min(most, kMost)) {}

std::uint32_t ContextTable::open() {
  std::uint32_t index = first_free_;
  if (free_ < kRest && entries_.size() < most_) {
    index = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();  // throws before any change
  } else if (index == kNone) {
    return 0;
  } else {
    first_free_ = entries_[index].next_free;
    if (first_free_ == kNone) last_free_ = kNone;
    --free_;
  }
  Entry& e = entries_[index];
  while (reserved(number_of(index))) e.generation = (e.generation + 1) % kGenerations;
  e.open = true;
  ++size_;
  return number_of(index);
}

std::uint32_t ContextTable::index_of(std::uint32_t number) const {
  const std::uint32_t inside = form_.inside(number << 8) ^ salt_;
  const std::uint32_t index = inside & (kMost - 1);
  if (index >= entries_.size()) return kNone;
  const Entry& e = entries_[index];
  return e.open && e.generation == inside >> kIndexBits ? index : kNone;
}

void ContextTable::set(std::uint32_t number, Context* context) {
  entries_[index_of(number)].context = context;
}

void ContextTable::rest(std::uint32_t number) noexcept {
  const std::uint32_t index = index_of(number);
  if (index == kNone || entries_[index].resting) return;
  entries_[index].context = nullptr;
  entries_[index].resting = true;
  ++resting_;
  forget_last(number);
}

void ContextTable::close(std::uint32_t number) noexcept {
  const std::uint32_t index = index_of(number);
  if (index == kNone) return;
  Entry& e = entries_[index];
  resting_ -= e.resting;
  e.context = nullptr;
  e.open = e.resting = false;
  e.generation = (e.generation + 1) % kGenerations;
  e.next_free = kNone;
  (last_free_ == kNone ? first_free_ : entries_[last_free_].next_free) = index;
  last_free_ = index;
  ++free_;
  --size_;
  forget_last(number);
}

void ContextTable::forget_last(std::uint32_t number) {
  if (last_number_ != number) return;
  last_number_ = kNone;
  last_ = nullptr;
}

Context* ContextTable::find_other(std::uint32_t number) {
  const std::uint32_t index = index_of(number);
  if (index == kNone || entries_[index].context == nullptr) return nullptr;
  last_number_ = number;
  return last_ = entries_[index].context;
}

}  // namespace urnic::roce
