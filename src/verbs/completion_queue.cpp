#include "verbs/completion_queue.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <new>
#include <type_traits>

namespace urnic::verbs {
namespace {

// Frees the WQEs of a completion that will not be polled.
void give_back(const Cqe& cqe) {
  Completion lost;
  for (std::uint32_t i = 0; cqe.stored != nullptr && i < cqe.references; ++i) {
    cqe.stored->take(cqe.position + i, &lost);
  }
}

std::uint32_t mask_for(std::uint32_t depth) {
  return std::bit_ceil(std::max(depth, 1u)) - 1;
}

// Elements are written before they are read; until then the system has not allocated their pages.
static_assert(std::is_trivially_copyable_v<Cqe> && std::is_trivially_destructible_v<Cqe>);
std::unique_ptr<Cqe[]> make_ring(std::size_t elements) {
  return std::unique_ptr<Cqe[]>(
      static_cast<Cqe*>(::operator new[](elements * sizeof(Cqe), std::align_val_t{alignof(Cqe)})));
}

}  // namespace

CompletionQueue::CompletionQueue(std::uint32_t depth)
    : mask_(mask_for(depth)), ring_(make_ring(std::size_t{mask_} + 1)) {}

bool CompletionQueue::resize(std::uint32_t depth) {
  const std::uint32_t mask = mask_for(depth);
  auto ring = make_ring(std::size_t{mask} + 1);
  const std::lock_guard guard(lock_);
  const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
  const std::uint32_t head = head_.load(std::memory_order_relaxed);
  if (tail - head > mask + 1) return false;
  for (std::uint32_t i = head; i != tail; ++i) ring[i & mask] = ring_[i & mask_];
  ring_.swap(ring);
  mask_.store(mask, std::memory_order_relaxed);
  return true;
}

// Completions left in the ring will not be polled; this frees their WQEs.
CompletionQueue::~CompletionQueue() {
  Cqe rest[16];
  overrun_.store(false, std::memory_order_relaxed);
  while (poll(rest) > 0) {
  }
}

CompletionQueue::Notify CompletionQueue::push(const StoredSends& sends, std::uint32_t qp_number,
                                              Places* places) {
  Cqe cqe;
  cqe.completion.receive = true;
  cqe.completion.solicited = sends.solicited;
  cqe.qp_number = qp_number;
  cqe.references = sends.count;
  cqe.stored = sends.store;
  cqe.position = sends.first;
  cqe.places = places;
  return push(cqe);
}

CompletionQueue::Notify CompletionQueue::push(const Cqe& cqe) {
  const std::lock_guard guard(lock_);
  const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
  if (overrun() || tail - head_.load(std::memory_order_relaxed) > mask_) {
    const bool first = !overrun_.exchange(true);
    Completion lost;
    for (std::uint32_t i = 0; cqe.stored != nullptr && i < cqe.references; ++i) {
      cqe.stored->take(cqe.position + i, &lost);
    }
    armed_ = Armed::No;
    return first ? Notify::Overrun : Notify::No;
  }
  ring_[tail & mask_] = cqe;
  tail_.store(tail + 1, std::memory_order_release);
  const bool wanted = armed_ == Armed::Any ||
                      (armed_ == Armed::Solicited &&
                       (cqe.completion.solicited || cqe.completion.status != Status::Success));
  if (!wanted) return Notify::No;
  armed_ = Armed::No;
  return Notify::Yes;
}

int CompletionQueue::poll(std::span<Cqe> out) {
  if (looks_empty()) return overrun() ? -1 : 0;
  const std::lock_guard guard(lock_);
  std::uint32_t head = head_.load(std::memory_order_relaxed);
  const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
  std::size_t n = 0;
  while (n < out.size() && head != tail) {
    Cqe& cqe = ring_[head & mask_];
    Cqe& polled = out[n++];
    polled = cqe;
    if (cqe.stored == nullptr) [[likely]] {
      if (cqe.places != nullptr) cqe.places->poll(cqe.position);
      ++head;
      continue;
    }
    cqe.stored->take(cqe.position++, &polled.completion);
    if (cqe.places != nullptr) cqe.places->poll(cqe.position);
    polled.references = 1;
    polled.stored = nullptr;
    if (--cqe.references == 0) ++head;
  }
  head_.store(head, std::memory_order_release);
  return static_cast<int>(n);
}

void CompletionQueue::forget(std::uint32_t qp_number) {
  const std::lock_guard guard(lock_);
  const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
  std::uint32_t kept = head_.load(std::memory_order_relaxed);
  for (std::uint32_t i = kept; i != tail; ++i) {
    const Cqe& cqe = ring_[i & mask_];
    if (cqe.qp_number != qp_number) {
      ring_[kept++ & mask_] = cqe;
    } else {
      give_back(cqe);
    }
  }
  tail_.store(kept, std::memory_order_release);
}

void CompletionQueue::leave(const Places& places) {
  if (places.all_polled()) return;
  const std::lock_guard guard(lock_);
  const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
  for (std::uint32_t i = head_.load(std::memory_order_relaxed); i != tail; ++i) {
    Cqe& cqe = ring_[i & mask_];
    if (cqe.places == &places) cqe.places = nullptr;
  }
}

bool CompletionQueue::peek(Cqe* out) {
  const std::lock_guard guard(lock_);
  if (looks_empty()) return false;
  *out = ring_[head_.load(std::memory_order_relaxed) & mask_];
  return true;
}

void CompletionQueue::arm(bool solicited_only) {
  const std::lock_guard guard(lock_);
  // An earlier request for any completion includes this one, so it stays.
  if (armed_ != Armed::Any) armed_ = solicited_only ? Armed::Solicited : Armed::Any;
}

}  // namespace urnic::verbs
