#include "verbs/completion_queue.h"

#include <algorithm>
#include <bit>
#include <mutex>

namespace urnic::verbs {

CompletionQueue::CompletionQueue(std::uint32_t depth)
    : mask_(std::bit_ceil(std::max(depth, 1u)) - 1), ring_(std::make_unique<Cqe[]>(mask_ + 1)) {}

CompletionQueue::Notify CompletionQueue::push(const Cqe& cqe) {
  const std::lock_guard guard(lock_);
  const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
  if (tail - head_.load(std::memory_order_relaxed) > mask_) {
    overrun_.store(true, std::memory_order_relaxed);
    const bool wake = armed_ != Armed::No;
    armed_ = Armed::No;
    return wake ? Notify::Yes : Notify::No;
  }
  ring_[tail & mask_] = cqe;
  tail_.store(tail + 1, std::memory_order_release);
  const bool wanted = armed_ == Armed::Any ||
                      (armed_ == Armed::Solicited &&
                       (cqe.completion.solicited || cqe.completion.status != ddp::Status::Success));
  if (!wanted) return Notify::No;
  armed_ = Armed::No;
  return Notify::Yes;
}

int CompletionQueue::poll(std::span<Cqe> out) {
  if (looks_empty()) return overrun() ? -1 : 0;
  const std::lock_guard guard(lock_);
  std::uint32_t head = head_.load(std::memory_order_relaxed);
  const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
  const std::uint32_t n =
      std::min<std::uint32_t>(tail - head, static_cast<std::uint32_t>(out.size()));
  for (std::uint32_t i = 0; i < n; ++i) out[i] = ring_[head++ & mask_];
  head_.store(head, std::memory_order_release);
  return static_cast<int>(n);
}

void CompletionQueue::arm(bool solicited_only) {
  const std::lock_guard guard(lock_);
  // An earlier request for any completion is the stronger one and stays.
  if (armed_ != Armed::Any) armed_ = solicited_only ? Armed::Solicited : Armed::Any;
}

}  // namespace urnic::verbs
