#include "verbs/memory.h"

#include <algorithm>

namespace urnic::verbs {
namespace {

constexpr std::uint32_t kMaxIndex = (1u << 24) - 1;

bool inside(const Region& r, std::uint64_t address, std::uint64_t len) {
  return address >= r.address && address - r.address <= r.length &&
         len <= r.length - (address - r.address);
}

AccessVerdict check(const MemoryTable& table, std::uint32_t key, std::uint64_t address,
                    std::uint64_t len, const Requester& by, std::uint8_t right) {
  const Region* r = table.find(key);
  if (r == nullptr) return AccessVerdict::BadKey;
  if (r->kind == Region::Kind::Reserved) return AccessVerdict::Reserved;
  if (!r->associated_with(by)) return AccessVerdict::WrongDomain;
  if ((r->access & right) == 0) return AccessVerdict::Rights;
  if (address + len < address) return AccessVerdict::Wraps;
  return inside(*r, address, len) ? AccessVerdict::Ok : AccessVerdict::Bounds;
}

void fill(Region& r, PdId pd, const Extent& memory, std::uint8_t access) {
  r.base = memory.base;
  r.address = memory.address;
  r.length = memory.length;
  r.pd = pd;
  r.access = access;
  r.valid = true;
}

}  // namespace

bool registrable(const Extent& m, std::uint8_t access) {
  const auto address = reinterpret_cast<std::uintptr_t>(m.base);
  if (address + m.length < address || m.address + m.length < m.address) return false;
  if (m.base == nullptr && m.length != 0) return false;
  return (access & (kRemoteWrite | kRemoteAtomic)) == 0 || (access & kLocalWrite) != 0;
}

Extent extent_of(const Region& r) {
  return {r.base, r.address, r.length};
}

MemoryTable::MemoryTable(std::uint32_t max_regions, const StagForm& form)
    : max_(std::min(max_regions, kMaxIndex)), form_(form) {}

std::uint32_t MemoryTable::take_index() {
  if (in_use_ >= max_) return 0;
  if (free_head_ != 0) {
    const std::uint32_t index = free_head_;
    free_head_ = regions_[index].link;
    ++in_use_;
    return index;
  }
  if (regions_.empty()) regions_.emplace_back();  // index 0 is never used
  const auto index = static_cast<std::uint32_t>(regions_.size());
  regions_.emplace_back().tag = form_.key(index, 0);
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
  r.qp = 0;
  r.access = 0;
  r.tag = form_.key(index, ++r.use);
  r.link = free_head_;
  free_head_ = index;
  --in_use_;
}

std::uint32_t MemoryTable::register_memory(PdId pd, const Extent& memory, std::uint8_t access) {
  if (!registrable(memory, access)) return 0;
  const std::uint32_t index = take_index();
  if (index == 0) return 0;
  Region& r = regions_[index];
  fill(r, pd, memory, access);
  r.kind = Region::Kind::Memory;
  r.link = 0;
  r.windows = 0;
  r.uses = 0;
  return form_.stag(index, r.tag);
}

std::uint32_t MemoryTable::reregister(std::uint32_t key, PdId pd, const Extent& memory,
                                      std::uint8_t access) {
  Region* r = find_registered(key);
  if (r == nullptr || r->windows != 0 || !registrable(memory, access)) return 0;
  const std::uint32_t index = form_.inside(key);
  if (r->pd != pd || extent_of(*r) != memory) r->tag = form_.key(index, ++r->use);
  fill(*r, pd, memory, access);
  return form_.stag(index, r->tag);
}

bool MemoryTable::deregister(std::uint32_t key) {
  const Region* const r = find_registered(key);
  if (r == nullptr || r->windows != 0) return false;
  free_index(form_.inside(key));
  return true;
}

MemoryTable::Invalidate MemoryTable::invalidate(std::uint32_t key, const Requester& by) {
  Region* r = at_index(key);
  if (r == nullptr || r->tag != static_cast<std::uint8_t>(key)) return Invalidate::Unknown;
  // A consumer cannot invalidate keys that a transport has reserved; a type 1 window can only be
  // rebound.
  const bool may = r->kind == Region::Kind::Memory
                       ? r->windows == 0
                       : r->kind == Region::Kind::Window && r->type == WindowType::Two;
  if (!may || !r->associated_with(by)) return Invalidate::Other;
  if (r->kind == Region::Kind::Window) unbind(*r);
  r->valid = false;
  return Invalidate::Ok;
}

// ---- windows

std::uint32_t MemoryTable::allocate_window(PdId pd, WindowType type) {
  if (windows_.size() == windows_.capacity()) windows_.reserve(2 * windows_.size() + 8);
  const std::uint32_t index = take_index();
  if (index == 0) return 0;
  Region& w = regions_[index];
  w.kind = Region::Kind::Window;
  w.type = type;
  w.pd = pd;
  w.region = 0;
  w.link = static_cast<std::uint32_t>(windows_.size());
  windows_.push_back(index);
  return form_.stag(index, w.tag);
}

void MemoryTable::unbind(Region& window) {
  window.valid = false;
  window.access = 0;
  if (window.region != 0) --regions_[window.region].windows;
  window.region = 0;
}

bool MemoryTable::free_window(std::uint32_t key) {
  Region* const w = at_index(key);
  if (w == nullptr || w->kind != Region::Kind::Window) return false;
  unbind(*w);
  const std::uint32_t last = windows_.back();
  windows_[w->link] = last;
  regions_[last].link = w->link;
  windows_.pop_back();
  free_index(form_.inside(key));
  return true;
}

bool MemoryTable::bind(const WindowBind& bind, const Requester& by) {
  constexpr std::uint8_t kRights = kRemoteWrite | kRemoteRead | kRemoteAtomic | kZeroBased;
  Region* const w = at_index(bind.rkey);
  if (w == nullptr || w->kind != Region::Kind::Window || w->pd != by.pd) return false;
  if (w->type == WindowType::Two && w->valid) return false;
  if (bind.length == 0) {
    if (w->type == WindowType::Two) return false;  // type 2 is unbound only by invalidation
    unbind(*w);
    w->tag = static_cast<std::uint8_t>(bind.rkey);
    return true;
  }
  if (find(bind.lkey) == nullptr) return false;
  Region* const r = find_registered(bind.lkey);
  if (r == nullptr || r->pd != by.pd || (r->access & kBindWindow) == 0) return false;
  if (!inside(*r, bind.address, bind.length) || (bind.access & ~kRights) != 0) return false;
  const bool changes = (bind.access & (kRemoteWrite | kRemoteAtomic)) != 0;
  if (changes && (r->access & kLocalWrite) == 0) return false;
  unbind(*w);
  const Extent part{r->base + (bind.address - r->address),
                    (bind.access & kZeroBased) != 0 ? 0 : bind.address, bind.length};
  fill(*w, by.pd, part, bind.access);
  w->tag = static_cast<std::uint8_t>(bind.rkey);
  w->qp = w->type == WindowType::Two ? by.qp : 0;
  w->region = form_.inside(bind.lkey);
  ++r->windows;
  return true;
}

void MemoryTable::unbind_windows_of(std::uint32_t qp) {
  for (const std::uint32_t index : windows_) {
    Region& w = regions_[index];
    if (w.qp == qp && w.region != 0) unbind(w);
  }
}

void MemoryTable::unbind_windows_on(std::uint32_t key) {
  const Region* const r = find_registered(key);
  if (r == nullptr || r->windows == 0) return;
  for (const std::uint32_t index : windows_) {
    if (regions_[index].region == form_.inside(key)) unbind(regions_[index]);
  }
}

std::uint32_t MemoryTable::reserve(std::uint32_t link) {
  const std::uint32_t index = take_index();
  if (index == 0) return 0;
  Region& r = regions_[index];
  r.kind = Region::Kind::Reserved;
  r.valid = true;
  r.link = link;
  return form_.stag(index, r.tag);
}

Region* MemoryTable::find_reserved(std::uint32_t key) {
  Region* r = at_index(key);
  const bool is =
      r != nullptr && r->kind == Region::Kind::Reserved && r->tag == static_cast<std::uint8_t>(key);
  return is ? r : nullptr;
}

bool MemoryTable::release(std::uint32_t key) {
  if (find_reserved(key) == nullptr) return false;
  free_index(form_.inside(key));
  return true;
}

void MemoryTable::invalidate_reserved(std::uint32_t key) {
  if (Region* r = find_reserved(key)) r->valid = false;
}

AccessVerdict check_remote_write(const MemoryTable& table, std::uint32_t key, std::uint64_t address,
                                 std::uint64_t len, const Requester& by) {
  return check(table, key, address, len, by, kRemoteWrite);
}

AccessVerdict check_remote_read(const MemoryTable& table, std::uint32_t key, std::uint64_t address,
                                std::uint64_t len, const Requester& by) {
  return check(table, key, address, len, by, kRemoteRead);
}

AccessVerdict check_remote_atomic(const MemoryTable& table, std::uint32_t key,
                                  std::uint64_t address, std::uint64_t len, const Requester& by) {
  return check(table, key, address, len, by, kRemoteAtomic);
}

std::span<std::uint8_t> resolve_sge(const MemoryTable& table, const Sge& sge, PdId pd, bool write) {
  static std::uint8_t nothing;
  if (sge.length == 0) return {&nothing, 0};
  const Region* r = table.find(sge.lkey);
  if (r == nullptr || r->kind != Region::Kind::Memory || r->pd != pd) return {};
  if (write && (r->access & kLocalWrite) == 0) return {};
  const std::uint64_t offset = sge.addr - r->address;
  if (sge.addr < r->address || offset > r->length || sge.length > r->length - offset) return {};
  return {r->base + offset, sge.length};
}

}  // namespace urnic::verbs
