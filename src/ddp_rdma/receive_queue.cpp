#include "ddp_rdma/receive_queue.h"

#include <algorithm>
#include <bit>
#include <new>

namespace urnic::ddp {

ReceiveQueue::ReceiveQueue(std::uint32_t max_wr, std::uint32_t max_sge, std::uint32_t first_msn)
    : max_wr_(std::min(max_wr, 1u << 24)),
      max_sge_(std::min<std::uint32_t>(max_sge, kMaxSges)),
      mask_(std::bit_ceil(std::max(max_wr_, 1u)) - 1),
      stride_(static_cast<std::uint32_t>(sizeof(ReceiveWqe) + max_sge_ * sizeof(Sge))),
      head_(first_msn),
      tail_(first_msn) {}

ReceiveQueue::Post ReceiveQueue::post(const RecvWr& wr) {
  if (wr.sges.size() > max_sge_) return Post::TooManySges;
  const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
  if (tail - head_.load(std::memory_order_acquire) >= max_wr_) return Post::Full;
  if (!slots_) slots_.reset(new std::byte[(std::size_t{mask_} + 1) * stride_]);
  std::byte* at = slot(tail);
  auto* w = ::new (at) ReceiveWqe;
  w->wr_id = wr.wr_id;
  w->num_sge = static_cast<std::uint8_t>(wr.sges.size());
  auto* out = reinterpret_cast<Sge*>(at + sizeof(ReceiveWqe));
  for (const Sge& sge : wr.sges) {
    ::new (out++) Sge(sge);
    w->capacity += sge.length;
  }
  tail_.store(tail + 1);
  return Post::Ok;
}

}  // namespace urnic::ddp
