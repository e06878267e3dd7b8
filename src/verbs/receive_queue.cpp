#include "verbs/receive_queue.h"

#include <algorithm>
#include <bit>

namespace urnic::verbs {
namespace {

constexpr unsigned kPositionShift = 2;  // log2 of the bytes of a position

unsigned shift_of(std::uint32_t mask) {
  return static_cast<unsigned>(std::bit_width(mask)) + kPositionShift;
}

}  // namespace

ReceiveQueue::ReceiveQueue(std::uint32_t max_wr, std::uint32_t max_sge, std::uint32_t first)
    : max_wr_(std::min(max_wr, 1u << 24)),
      max_sge_(std::min(max_sge, kMaxSges)),
      holds_(0),
      head_(first),
      tail_(first) {
  places_.clear(first);
}

ReceiveQueue::ReceiveQueue(SharedReceiveQueue* shared, BufferPool* pool, std::uint32_t first)
    : store_(shared->store()),
      max_wr_(0),
      max_sge_(shared->max_sge()),
      holds_(0),
      head_(first),
      tail_(first),
      shared_(shared),
      pool_(pool) {
  ++shared_->users;
}

ReceiveQueue::ReceiveQueue(BufferPool* pool, std::uint32_t first)
    : max_wr_(0), max_sge_(0), holds_(0), head_(first), tail_(first), pool_(pool) {}

ReceiveQueue::~ReceiveQueue() {
  if (shared_ != nullptr) {
    reset(head());
    if (shared_->xrc.number == 0) --shared_->users;
  } else if (store_ != nullptr) {
    store_->abandon();
  }
}

ReceiveQueue::Post ReceiveQueue::post(const RecvWr& wr) {
  if (shared_ != nullptr) return Post::Shared;
  if (wr.sges.size() > max_sge_) return Post::TooManySges;
  if (store_ == nullptr) {
    if (max_wr_ == 0) return Post::Full;
    store_ = WqeStore::make(max_wr_, max_sge_);
  }
  // Load the head first: WQEs below it that are lent were lent before it moved.
  std::uint32_t oldest = places_.oldest(head_.load(std::memory_order_acquire));
  if (holds_ == 0 && store_->any_lent()) oldest = store_->floor();
  const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
  if (tail - oldest >= max_wr_) return Post::Full;
  store_->write(tail, wr);
  tail_.store(tail + 1);
  return Post::Ok;
}

void ReceiveQueue::forget_ends() {
  for (std::uint32_t index = head(); index != tail_; ++index) wqe(index).ended = false;
}

void ReceiveQueue::forget_posted() {
  if (shared_ != nullptr) {
    for (std::uint32_t index = head(); index != tail_; ++index) store_->give_free(position(index));
    release_bound();
  } else if (store_ != nullptr && store_->any_lent()) {
    store_->abandon();  // unpolled completions keep it alive; indices start again in a new store
    store_ = nullptr;
  }
}

void ReceiveQueue::reset(std::uint32_t first) {
  forget_posted();
  places_.clear(first);
  head_ = first;
  tail_ = first;
}

void ReceiveQueue::turn_to(SharedReceiveQueue* queue) {
  shared_ = queue;
  store_ = queue != nullptr ? queue->store() : nullptr;
}

void ReceiveQueue::forget_queue(const SharedReceiveQueue* queue) {
  if (shared_ != queue) return;
  forget_posted();
  tail_ = head();
  turn_to(nullptr);
}

void ReceiveQueue::leave() {
  forget_posted();
  tail_ = head();
  if (shared_ == nullptr) return;
  if (shared_->xrc.number == 0) --shared_->users;
  shared_ = nullptr;
  store_ = nullptr;
}

void ReceiveQueue::bind_through(std::uint32_t index) {
  while (index - head() >= posted()) {
    if (bound_ == nullptr || posted() > bound_mask_) grow_bound();
    bound_[tail_ & bound_mask_] = shared_->bind();
    tail_.store(tail_ + 1);
  }
}

void ReceiveQueue::pop_shared(bool lent) {
  if (!lent) store_->give_free(position(head()));
  head_.store(head() + 1, std::memory_order_release);
  if (posted() == 0) release_bound();
}

void ReceiveQueue::grow_bound() {
  const unsigned shift = bound_ == nullptr ? BufferPool::kMinShift : shift_of(bound_mask_) + 1;
  auto* more = reinterpret_cast<std::uint32_t*>(pool_->take(shift));
  const std::uint32_t mask = (1u << (shift - kPositionShift)) - 1;
  for (std::uint32_t index = head(); index != tail_; ++index)
    more[index & mask] = bound_[index & bound_mask_];
  if (bound_ != nullptr) {
    pool_->give(reinterpret_cast<std::uint8_t*>(bound_), shift_of(bound_mask_));
  }
  bound_ = more;
  bound_mask_ = mask;
}

void ReceiveQueue::release_bound() {
  if (bound_ == nullptr) return;
  pool_->give(reinterpret_cast<std::uint8_t*>(bound_), shift_of(bound_mask_));
  bound_ = nullptr;
  bound_mask_ = 0;
}

}  // namespace urnic::verbs
