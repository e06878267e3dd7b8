#include "ddp_rdma/control_queue.h"

#include <cstring>

namespace urnic::ddp {

void ControlQueue::add(KeptBytes* kept, ByteView bytes, bool raw) {
  const auto len = static_cast<std::uint32_t>(bytes.size());
  items_.reserve(items_.size() + 1);  // make room first: if that failed later, the block would leak
  std::uint8_t* block = kept->allocate(len);
  std::memcpy(block, bytes.data(), len);
  items_.push_back({block, len, raw});
}

void ControlQueue::add_raw(KeptBytes* kept, ByteView bytes) {
  if (bytes.empty() || bytes.size() > KeptBytes::kMaxBlock) return;
  add(kept, bytes, true);
}

void ControlQueue::add_ulpdu(KeptBytes* kept, ByteView ulpdu) {
  if (ulpdu.size() < 2 || ulpdu.size() > mpa::kMaxUlpdu) return;
  add(kept, ulpdu, false);
}

void ControlQueue::pop() {
  items_.erase(items_.begin());
  if (items_.empty()) items_.shrink_to_fit();
}

void ControlQueue::clear(KeptBytes* kept) {
  for (const Item& item : items_) kept->free(item.block);
  items_.clear();
  items_.shrink_to_fit();
}

std::uint64_t ControlQueue::estimate(const FpduSizes& sizes) const {
  std::uint64_t n = 0;
  for (const Item& item : items_) n += item.raw ? item.len : sizes.estimate(item.len);
  return n;
}

}  // namespace urnic::ddp
