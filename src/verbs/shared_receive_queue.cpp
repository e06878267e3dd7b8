#include "verbs/shared_receive_queue.h"

#include <algorithm>

namespace urnic::verbs {

SharedReceiveQueue::SharedReceiveQueue(PdId pd, std::uint32_t max_wr, std::uint32_t max_sge)
    : store_(WqeStore::make_shared(std::min(max_wr, 1u << 24), std::min(max_sge, kMaxSges))),
      posted_(std::make_unique<std::uint32_t[]>(std::size_t{store_->mask()} + 1)),
      max_wr_(std::min(max_wr, 1u << 24)),
      max_sge_(std::min(max_sge, kMaxSges)),
      pd_(pd) {}

SharedReceiveQueue::Post SharedReceiveQueue::post(const RecvWr& wr) {
  if (wr.sges.size() > max_sge_) return Post::TooManySges;
  std::uint32_t position = 0;
  if (!store_->take_free(&position)) return Post::Full;
  store_->write(position, wr);
  const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
  posted_[tail & store_->mask()] = position;
  tail_.store(tail + 1);
  return Post::Ok;
}

std::uint32_t SharedReceiveQueue::bind() {
  return posted_[head_++ & store_->mask()];
}

void SharedReceiveQueue::set_limit(std::uint32_t limit) {
  limit_ = limit;
}

bool SharedReceiveQueue::take_limit_event() {
  if (available() >= limit_) return false;  // limit 0: never
  limit_ = 0;
  return true;
}

}  // namespace urnic::verbs
