#include "ddp_rdma/read_queue.h"

#include <algorithm>
#include <bit>
#include <new>

namespace urnic::ddp {
namespace {

unsigned shift_for(std::size_t bytes) {
  return std::max<unsigned>(BufferPool::kMinShift,
                            static_cast<unsigned>(std::bit_width(bytes - 1)));
}

}  // namespace

ReadQueue::ReadQueue(BufferPool* pool, std::uint32_t first_msn)
    : pool_(pool), oldest_(first_msn), response_(first_msn), ready_end_(first_msn) {}

ReadQueue::~ReadQueue() {
  release();
}

void ReadQueue::set_limit(std::uint16_t ird) {
  if (!empty()) return;
  limit_ = ird;
  mask_ = std::bit_ceil(std::max<std::uint32_t>(ird, 1)) - 1;
}

void ReadQueue::reset(std::uint32_t first_msn) {
  release();
  oldest_ = response_ = ready_end_ = first_msn;
}

void ReadQueue::release() {
  if (entries_ == nullptr) return;
  pool_->give(reinterpret_cast<std::uint8_t*>(entries_),
              shift_for((std::size_t{mask_} + 1) * sizeof(Entry)));
  entries_ = nullptr;
  live_ = 0;
}

ReadQueue::Entry& ReadQueue::take(std::uint32_t msn) {
  if (entries_ == nullptr) {
    const std::size_t count = std::size_t{mask_} + 1;
    entries_ = reinterpret_cast<Entry*>(pool_->take(shift_for(count * sizeof(Entry))));
    for (std::size_t i = 0; i < count; ++i) ::new (entries_ + i) Entry{{}, {}, false, false};
  }
  Entry& e = entry(msn);
  if (!e.placed) ++live_;
  e.placed = true;
  return e;
}

void ReadQueue::place(std::uint32_t msn, const ReadRequest& request) {
  Entry& e = take(msn);
  e.request = request;
  e.is_atomic = false;
}

std::uint32_t ReadQueue::emit(std::uint32_t msn, std::uint32_t offset, std::uint8_t* dst) const {
  const Entry& e = entry(msn);
  SegmentHeader h;
  h.op = e.is_atomic ? Opcode::AtomicRequest : Opcode::ReadRequest;
  h.last = true;
  h.qn = kQnReadRequest;
  h.msn = msn;
  h.read = e.request;
  h.read.sink_to += offset;
  h.read.source_to += offset;
  h.read.size -= offset;
  const std::uint32_t n = emit_header(h, dst);
  if (!e.is_atomic) return n;
  emit_atomic_request(e.atomic, dst + n);
  return n + kAtomicRequest;
}

void ReadQueue::place(std::uint32_t msn, const AtomicRequest& request) {
  Entry& e = take(msn);
  e.request = {0, 0, kAtomicResponseHeader - kTaggedHeader, request.stag, request.to};
  e.atomic = request;
  e.is_atomic = true;
}

const ReadRequest* ReadQueue::to_deliver() const {
  if (entries_ == nullptr || ready_end_ - oldest_ >= limit_) return nullptr;
  const Entry& e = entry(ready_end_);
  return e.placed ? &e.request : nullptr;
}

void ReadQueue::finish_oldest() {
  entry(oldest_).placed = false;
  ++oldest_;
  if (--live_ == 0) release();
}

}  // namespace urnic::ddp
