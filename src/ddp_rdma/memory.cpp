#include "ddp_rdma/memory.h"

#include <algorithm>

namespace urnic::ddp {
namespace {

constexpr std::uint32_t kMaxIndex = (1u << 24) - 1;

// Range rows of a table of violations: TO wrap is told apart from bounds (RFC 5041, 7; RFC 5040,
// 7).
Violation check_range(const Region& r, std::uint64_t to, std::uint64_t len, Violation wrap,
                      Violation bounds) {
  if (to + len < to) return wrap;
  if (to < r.to || to - r.to > r.length || len > r.length - (to - r.to)) return bounds;
  return Violation::None;
}

}  // namespace

MemoryTable::MemoryTable(std::uint32_t max_regions, const StagForm& form)
    : max_(std::min(max_regions, kMaxIndex)), form_(form) {}

std::uint32_t MemoryTable::take_index() {
  if (in_use_ >= max_) return 0;
  if (free_head_ != 0) {
    const std::uint32_t index = free_head_;
    free_head_ = regions_[index].stream;
    ++in_use_;
    return index;
  }
  if (regions_.empty()) regions_.emplace_back();  // index 0 stays free for ever
  const auto index = static_cast<std::uint32_t>(regions_.size());
  regions_.emplace_back().key = form_.key(index, 0);
  ++in_use_;
  return index;
}

void MemoryTable::free_index(std::uint32_t index) {
  Region& r = regions_[index];
  r.kind = Region::Kind::Free;
  r.valid = false;
  r.base = nullptr;
  r.length = 0;
  r.uses = 0;
  r.key = form_.key(index, ++r.use);
  r.stream = free_head_;
  free_head_ = index;
  --in_use_;
}

std::uint32_t MemoryTable::register_memory(PdId pd, std::uint8_t* base, std::uint64_t length,
                                           std::uint8_t access) {
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  if (address + length < address) return 0;
  if (base == nullptr && length != 0) return 0;
  if ((access & kRemoteWrite) != 0 && (access & kLocalWrite) == 0) return 0;
  const std::uint32_t index = take_index();
  if (index == 0) return 0;
  Region& r = regions_[index];
  r.base = base;
  r.to = (access & kZeroBased) != 0 ? 0 : address;
  r.length = length;
  r.pd = pd;
  r.access = access;
  r.kind = Region::Kind::Memory;
  r.valid = true;
  r.stream = 0;
  r.uses = 0;
  return form_.stag(index, r.key);
}

bool MemoryTable::deregister(std::uint32_t stag) {
  if (find_registered(stag) == nullptr) return false;
  free_index(form_.inside(stag));
  return true;
}

MemoryTable::Invalidate MemoryTable::invalidate(std::uint32_t stag, PdId pd, StreamId) {
  Region* r = at_index(stag);
  if (r == nullptr || r->key != static_cast<std::uint8_t>(stag)) return Invalidate::Unknown;
  // A read sink is the engine's own; no consumer may invalidate it.
  if (r->kind != Region::Kind::Memory || r->pd != pd) return Invalidate::Other;
  r->valid = false;
  return Invalidate::Ok;
}

std::uint32_t MemoryTable::open_sink(StreamId stream,
                                     std::span<const std::span<std::uint8_t>> pieces) {
  const std::uint32_t index = take_index();
  if (index == 0) return 0;
  Region& r = regions_[index];
  r.to = 0;
  r.base = nullptr;
  r.length = 0;
  if (pieces.size() == 1) {
    r.base = pieces[0].data();
    r.length = pieces[0].size();
  } else if (pieces.size() > 1) {
    if (!r.pieces) r.pieces = std::make_unique<std::vector<std::span<std::uint8_t>>>();
    r.pieces->assign(pieces.begin(), pieces.end());
    for (const auto& piece : pieces) r.length += piece.size();
  }
  r.pd = 0;
  r.access = 0;
  r.kind = Region::Kind::ReadSink;
  r.valid = true;
  r.stream = stream;
  r.progress = 0;
  r.out_of_order = false;
  r.ended = false;
  return form_.stag(index, r.key);
}

void MemoryTable::release_sink(std::uint32_t stag) {
  const Region* r = at_index(stag);
  if (r == nullptr || r->kind != Region::Kind::ReadSink) return;
  if (r->key != static_cast<std::uint8_t>(stag)) return;
  free_index(form_.inside(stag));
}

Violation check_write(const MemoryTable& table, std::uint32_t stag, std::uint64_t to,
                      std::uint64_t len, PdId pd, StreamId stream) {
  const Region* r = table.find(stag);
  if (r == nullptr) return Violation::TaggedInvalidStag;
  if (r->kind == Region::Kind::ReadSink) {  // E-16: a sink takes Read Responses only
    return r->stream == stream ? Violation::WriteAccess : Violation::TaggedStagNotAssociated;
  }
  if (r->pd != pd) return Violation::TaggedStagNotAssociated;
  if ((r->access & kRemoteWrite) == 0) return Violation::WriteAccess;
  return check_range(*r, to, len, Violation::TaggedToWrap, Violation::TaggedBounds);
}

Violation check_read_response(const MemoryTable& table, std::uint32_t stag, std::uint64_t to,
                              std::uint64_t len, StreamId stream) {
  const Region* r = table.find(stag);
  if (r == nullptr) return Violation::TaggedInvalidStag;
  if (r->kind != Region::Kind::ReadSink) {
    return Violation::TaggedInvalidStag;
  }
  if (r->stream != stream) return Violation::TaggedStagNotAssociated;
  return check_range(*r, to, len, Violation::TaggedToWrap, Violation::TaggedBounds);
}

Violation check_read_source(const MemoryTable& table, std::uint32_t stag, std::uint64_t to,
                            std::uint64_t len, PdId pd, StreamId stream) {
  const Region* r = table.find(stag);
  if (r == nullptr) return Violation::ReadInvalidStag;
  if (r->kind == Region::Kind::ReadSink) {
    return r->stream == stream ? Violation::ReadAccess : Violation::ReadStagNotAssociated;
  }
  if (r->pd != pd) return Violation::ReadStagNotAssociated;
  if ((r->access & kRemoteRead) == 0) return Violation::ReadAccess;
  return check_range(*r, to, len, Violation::ReadToWrap, Violation::ReadBounds);
}

std::span<std::uint8_t> resolve_sge(const MemoryTable& table, const Sge& sge, PdId pd, bool write) {
  static std::uint8_t nothing;
  if (sge.length == 0) return {&nothing, 0};
  const Region* r = table.find(sge.lkey);
  if (r == nullptr || r->kind != Region::Kind::Memory || r->pd != pd) return {};
  if (write && (r->access & kLocalWrite) == 0) return {};
  const std::uint64_t offset = sge.addr - r->to;
  if (sge.addr < r->to || offset > r->length || sge.length > r->length - offset) return {};
  return {r->base + offset, sge.length};
}

}  // namespace urnic::ddp
