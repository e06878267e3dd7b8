#include "verbs/send_queue.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace urnic::verbs {
namespace {

constexpr std::uint32_t kLine = 64;

constexpr std::uint32_t round_up(std::uint32_t n, std::uint32_t to) {
  return (n + to - 1) & ~(to - 1);
}

constexpr std::uint32_t payload_of(std::uint32_t part) {
  return round_up(static_cast<std::uint32_t>(sizeof(SendWqe)) + part, alignof(Sge));
}

bool known(WrOp op) {
  return op <= WrOp::Swap;
}
bool carries_inline(WrOp op) {
  return !awaits_response(op) && !is_local(op);
}
bool names_remote(WrOp op) {
  return op == WrOp::Write || op == WrOp::WriteImm || awaits_response(op);
}
bool has_operands(WrOp op) {
  return op >= WrOp::SendImm;
}

// The fields of a bind that do not fit into the SendWqe; they use the place of the first SGE of
// other requests.
struct BindRest {
  std::uint64_t length;
  std::uint32_t lkey;
  std::uint8_t access;
};
static_assert(sizeof(BindRest) == sizeof(Sge) && alignof(BindRest) == alignof(Sge));

}  // namespace

SendQueue::SendQueue(std::uint32_t max_wr, std::uint32_t max_sge, std::uint32_t max_inline,
                     std::uint32_t part)
    : max_wr_(std::min(max_wr, 1u << 24)),
      max_inline_(std::min(max_inline, 1u << 16)),
      mask_(std::bit_ceil(std::max(max_wr_, 1u)) - 1),
      stride_(round_up(
          payload_of(part) +
              std::max<std::uint32_t>(std::clamp(max_sge, 1u, kMaxSges) * sizeof(Sge), max_inline_),
          kLine)),
      payload_(static_cast<std::uint16_t>(payload_of(part))),
      max_sge_(static_cast<std::uint8_t>(std::min(max_sge, kMaxSges))) {}

Post SendQueue::post(const SendWr& wr) {
  if (!known(wr.op)) return Post::BadOp;
  const bool inlined = (wr.flags & kInline) != 0;
  if (inlined && !carries_inline(wr.op)) return Post::BadOp;
  if (wr.op == WrOp::Bind && wr.bind == nullptr) return Post::BadOp;
  const std::span<const Sge> sges = is_local(wr.op) ? std::span<const Sge>() : wr.sges;
  if (sges.size() > max_sge_) return Post::TooManySges;
  std::uint64_t length = 0;
  for (const Sge& sge : sges) length += sge.length;
  if (inlined && length > max_inline_) return Post::InlineTooLong;
  if (length > kMaxMessage) return Post::TooLong;
  if (is_atomic(wr.op) && length != kAtomicBytes) return Post::BadOp;
  const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
  if (tail - places_.oldest(head_.load(std::memory_order_acquire)) >= max_wr_) return Post::Full;
  if (!slots_) {
    const std::size_t bytes = (std::size_t{mask_} + 1) * stride_;
    slots_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kLine})));
  }
  if (has_operands(wr.op)) {
    if (!operands_) operands_ = std::make_unique<SendOperands[]>(std::size_t{mask_} + 1);
    operands_[tail & mask_] = {wr.immediate, wr.atomic};
  }
  std::byte* at = slot(tail);
  auto* w = ::new (at) SendWqe;
  w->wr_id = wr.wr_id;
  w->remote_address = wr.remote_address;
  w->key = names_remote(wr.op) ? wr.rkey : wr.inv_key;
  w->length = static_cast<std::uint32_t>(length);
  w->op = wr.op;
  w->flags = wr.flags;
  w->remote_srq = wr.remote_srq;
  std::memset(at + sizeof(SendWqe), 0, payload_ - sizeof(SendWqe));
  std::byte* payload = at + payload_;
  if (wr.op == WrOp::Bind) [[unlikely]] {
    const WindowBind& b = *wr.bind;
    w->key = b.rkey;
    w->remote_address = b.address;
    ::new (payload) BindRest{b.length, b.lkey, b.access};
  } else if (inlined) {
    for (const Sge& sge : sges) {
      if (sge.length == 0) continue;
      std::memcpy(payload, reinterpret_cast<const void*>(sge.addr), sge.length);
      payload += sge.length;
    }
  } else {
    w->num_sge = static_cast<std::uint8_t>(sges.size());
    for (const Sge& sge : sges) {
      ::new (payload) Sge(sge);
      payload += sizeof(Sge);
    }
  }
  tail_.store(tail + 1, std::memory_order_release);
  return Post::Ok;
}

WindowBind SendQueue::window_bind(std::uint32_t index) const {
  const SendWqe& w = wqe(index);
  const auto& rest = *reinterpret_cast<const BindRest*>(slot(index) + payload_);
  return {w.remote_address, rest.length, rest.lkey, w.key, rest.access};
}

}  // namespace urnic::verbs
