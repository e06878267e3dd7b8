#include "verbs/wqe_store.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace urnic::verbs {

void fill_completion(const ReceiveWqe& w, const ReceiveEnd& end, Completion* out) {
  *out = Completion{};
  out->wr_id = w.wr_id;
  out->receive = true;
  out->byte_len = end.byte_len;
  out->solicited = end.solicited;
  out->with_invalidate = end.with_invalidate;
  if (end.with_invalidate) out->inv_key = end.inv_key;
  out->with_immediate = end.with_immediate;
  if (end.with_immediate) out->immediate = w.immediate;
}

WqeStore::WqeStore(std::uint32_t slots, std::uint32_t max_sge, bool shared)
    : mask_(std::bit_ceil(std::max(slots, 1u)) - 1),
      stride_(static_cast<std::uint32_t>(kSges + max_sge * sizeof(Sge))),
      slots_(new std::byte[(std::size_t{mask_} + 1) * stride_]),
      free_(shared ? new std::uint32_t[std::size_t{mask_} + 1] : nullptr) {
  if (!shared) return;
  for (std::uint32_t i = 0; i < slots; ++i) free_[i] = i;
  free_tail_ = slots;
}

WqeStore* WqeStore::make(std::uint32_t slots, std::uint32_t max_sge) {
  return new WqeStore(slots, max_sge, false);
}

WqeStore* WqeStore::make_shared(std::uint32_t limit, std::uint32_t max_sge) {
  return new WqeStore(limit, max_sge, true);
}

void WqeStore::write(std::uint32_t position, const RecvWr& wr) {
  std::byte* at = slot(position);
  auto* w = ::new (at) ReceiveWqe;
  w->wr_id = wr.wr_id;
  w->num_sge = static_cast<std::uint8_t>(wr.sges.size());
  std::memset(at + sizeof(ReceiveWqe), 0, kReceivePart);
  auto* out = reinterpret_cast<Sge*>(at + kSges);
  for (const Sge& sge : wr.sges) {
    ::new (out++) Sge(sge);
    w->capacity += sge.length;
  }
}

void WqeStore::lend(std::uint32_t position) {
  // While others are lent, the floor is lower and stays.
  if (!any_lent()) floor_.store(position, std::memory_order_release);
  users_.fetch_add(1, std::memory_order_release);
}

bool WqeStore::take_free(std::uint32_t* position) {
  lock_.lock();
  const bool any = free_head_ != free_tail_;
  if (any) *position = free_[free_head_++ & mask_];
  lock_.unlock();
  return any;
}

void WqeStore::give_free(std::uint32_t position) {
  lock_.lock();
  free_[free_tail_++ & mask_] = position & mask_;
  lock_.unlock();
}

void WqeStore::take(std::uint32_t position, Completion* out) {
  const ReceiveWqe& w = wqe(position);
  fill_completion(w, w.end, out);
  if (free_ != nullptr) {
    give_free(position);
  } else {
    floor_.store(position + 1, std::memory_order_release);
  }
  leave(1);
}

void WqeStore::leave(std::uint32_t users) {
  if (users_.fetch_sub(users, std::memory_order_acq_rel) == users) delete this;
}

}  // namespace urnic::verbs
