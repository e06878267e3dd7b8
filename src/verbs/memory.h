// Registered memory and its keys (lkey, rkey; what RFC 5041 calls an STag). One table per device.
//
// A key is a 24-bit index and an 8-bit tag that changes at each use of the index. Entries are
// regions of consumers, windows on a part of one, which have an rkey only, or keys a transport has
// reserved for something of its own (iWARP: read sinks), which give nobody else access to anything.
// Threading: changes happen under the engine's ownership (the engine lock); lookups are made by
// the owning engine only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/stag_form.h"

namespace urnic::verbs {

enum Access : std::uint8_t {
  kLocalRead = 0,  // always there
  kLocalWrite = 1,
  kRemoteWrite = 2,  // requires kLocalWrite
  kRemoteRead = 4,
  kZeroBased = 8,      // addresses count from 0 instead of the virtual address
  kRemoteAtomic = 16,  // requires kLocalWrite
  kBindWindow = 32,    // windows may be bound to it
};

// Scatter/gather element of a work request: `addr` is the virtual address (or the offset in a
// zero-based region), `lkey` the key of the region.
struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

using PdId = std::uint32_t;  // protection domain

// For whom an access is, or who binds and invalidates: a queue pair by its number, and its domain.
struct Requester {
  Requester(PdId d, std::uint32_t number = 0) : pd(d), qp(number) {}
  PdId pd;
  std::uint32_t qp;
};

// A window of type 1 is of a protection domain, bound anew at any time; its rkey is the provider's.
// One of type 2 is of the queue pair that bound it, bound when it is not, unbound by invalidation;
// the tag of its rkey is the consumer's.
enum class WindowType : std::uint8_t { One = 1, Two = 2 };

// What a bind asks for.
struct WindowBind {
  std::uint64_t address = 0;  // as the region has it
  std::uint64_t length = 0;   // 0: the window names nothing afterwards
  std::uint32_t lkey = 0;     // of the region
  std::uint32_t rkey = 0;     // the window's from then on: its index, and any tag
  std::uint8_t access = 0;    // remote rights, kZeroBased
};

// What the check of an access found, in the order it looks. Each transport has its own words for
// these on the wire.
enum class AccessVerdict : std::uint8_t {
  Ok,
  BadKey,       // index unknown, tag differs, or invalidated
  Reserved,     // names something of the transport's own
  WrongDomain,  // a region of another protection domain, or a window of another queue pair
  Rights,       // the region does not allow it
  Wraps,        // address + length exceeds 2^64
  Bounds,       // not inside the region
};

// Memory as a region has it.
struct Extent {
  std::uint8_t* base = nullptr;  // first byte in this process
  std::uint64_t address = 0;     // that byte's, as work requests and peers name it
  std::uint64_t length = 0;

  // Named as the process names it, or from 0 on.
  static Extent of(std::uint8_t* base, std::uint64_t length, std::uint8_t access) {
    const bool from_zero = (access & kZeroBased) != 0;
    return {base, from_zero ? 0 : reinterpret_cast<std::uintptr_t>(base), length};
  }
  bool operator==(const Extent&) const = default;
};

// One entry. A line of its own, so that a lookup costs one.
struct alignas(64) Region {
  enum class Kind : std::uint8_t { Free, Memory, Reserved, Window };

  std::uint8_t* base = nullptr;  // first byte in this process
  std::uint64_t address = 0;     // that byte's, as work requests and peers name it
  std::uint64_t length = 0;
  PdId pd = 0;
  std::uint32_t uses = 0;     // unacknowledged rebuildable messages and open reads on it (E-25)
  std::uint32_t link = 0;     // Reserved: its transport's. Free: the next free index. Window: place
  std::uint32_t qp = 0;       // alone this one has access; 0: the whole protection domain
  std::uint32_t windows = 0;  // Memory: how many are bound to it
  std::uint32_t region = 0;   // Window: the index of the one it is bound to; 0: none
  std::uint8_t access = 0;    // none unless Memory or Window
  std::uint8_t tag = 0;
  std::uint8_t use = 0;  // how often the index was given back
  Kind kind = Kind::Free;
  WindowType type = WindowType::One;  // Window
  bool valid = false;                 // false after invalidation: index owned, key unusable

  bool associated_with(const Requester& who) const {
    return pd == who.pd && (qp == 0 || qp == who.qp);
  }
  // Whether check_remote_write() would find nothing wrong with [at, at + len), len > 0.
  bool may_write(const Requester& who, std::uint64_t at, std::uint64_t len) const {
    const std::uint64_t offset = at - address;
    return (access & kRemoteWrite) != 0 && associated_with(who) && at >= address &&
           offset <= length && len <= length - offset;
  }
};
static_assert(sizeof(Region) == 64);
Extent extent_of(const Region&);

// Whether that can be a region: it does not wrap, and the rights are a legal set.
bool registrable(const Extent& memory, std::uint8_t access);

class MemoryTable {
 public:
  // At most 2^24 - 1 regions, windows and reserved keys together.
  // bound: regions, windows and read sinks of a device (STags, rkeys); limit: 1048576; beyond:
  // registering and `create_window` fail with no_memory; a Read waits; test:
  // Memory.FullTableRefusesAndRecovers, Memory.AMillionRegions
  explicit MemoryTable(std::uint32_t max_regions = 1u << 20, const StagForm& form = StagForm());
  MemoryTable(const MemoryTable&) = delete;
  MemoryTable& operator=(const MemoryTable&) = delete;

  // New key for `memory`. Fails (0) when the table is full, the range wraps, or the rights are not
  // a legal set. Key 0 and index 0 are never given out. Tags change on each reuse of an index, so
  // that a stale key does not match.
  std::uint32_t register_memory(PdId, const Extent& memory, std::uint8_t access);
  std::uint32_t register_memory(PdId pd, std::uint8_t* base, std::uint64_t length,
                                std::uint8_t access) {
    return register_memory(pd, Extent::of(base, length, access), access);
  }
  // Other memory, domain or rights for the region `key`, invalidated or not, which is valid
  // afterwards. Its key: the same if only the rights are others, as who knows it reaches nothing
  // else by it; else a new one of the same index. 0 and nothing changed as for register_memory(),
  // or if there is no such region. The caller has settled `uses` first where the new memory is not
  // the old (E-25).
  std::uint32_t reregister(std::uint32_t key, PdId, const Extent& memory, std::uint8_t access);
  // Frees the index. False if unknown, no region, or while windows are bound to it. The caller has
  // settled `uses` first (E-25).
  bool deregister(std::uint32_t key);
  // Local or remote invalidation, of a region of the domain without windows, or of a window of type
  // 2 of the queue pair, which is unbound. An already invalid one succeeds.
  enum class Invalidate : std::uint8_t { Ok, Unknown, Other };
  Invalidate invalidate(std::uint32_t key, const Requester& by);

  // ---- windows
  // Its first key, which names nothing. 0 when the table is full.
  std::uint32_t allocate_window(PdId, WindowType);
  // Unbinds and frees it; any of its keys will do. False if it is none.
  bool free_window(std::uint32_t key);
  // As WindowBind and WindowType say. False, and nothing changed: no window of the domain of `by`,
  // one of type 2 that is bound; no valid region of that domain, without kBindWindow, or that does
  // not hold the range; rights other than remote ones, or to write where the region is not for
  // local writing. What the region itself allows to peers does not matter.
  bool bind(const WindowBind& bind, const Requester& by);
  // Windows of type 2 of a queue pair that is no more, and those bound to a region, name nothing.
  void unbind_windows_of(std::uint32_t qp);
  void unbind_windows_on(std::uint32_t key);

  // A key of a transport's own. 0 when the table is full.
  std::uint32_t reserve(std::uint32_t link);
  // Frees a reserved one. False if it is none.
  bool release(std::uint32_t key);
  // It stays reserved and names nothing any more.
  void invalidate_reserved(std::uint32_t key);

  // nullptr when index or tag do not match or the key is invalid.
  const Region* find(std::uint32_t key) const {
    const std::uint32_t index = form_.inside(key);
    if (index >= regions_.size()) return nullptr;
    const Region& r = regions_[index];
    return r.valid && r.tag == static_cast<std::uint8_t>(key) ? &r : nullptr;
  }
  // The region a registered key names, also when it has been invalidated: its memory is still ours
  // to read for retransmission.
  Region* find_registered(std::uint32_t key) {
    Region* r = at_index(key);
    return r != nullptr && r->kind == Region::Kind::Memory &&
                   r->tag == static_cast<std::uint8_t>(key)
               ? r
               : nullptr;
  }
  // By the index of `key` alone (also when invalid); nullptr when that index is free.
  Region* at_index(std::uint32_t key) {
    const std::uint32_t index = form_.inside(key);
    if (index >= regions_.size() || regions_[index].kind == Region::Kind::Free) return nullptr;
    return &regions_[index];
  }

  std::size_t in_use() const { return in_use_; }

 private:
  std::uint32_t take_index();
  void free_index(std::uint32_t index);
  void unbind(Region& window);
  Region* find_reserved(std::uint32_t key);

  std::vector<Region> regions_;
  std::vector<std::uint32_t> windows_;  // their indices, in no order
  std::uint32_t max_;
  std::uint32_t free_head_ = 0;  // list through Region::link; 0 = none
  std::size_t in_use_ = 0;
  StagForm form_;
};

// May the peer of that queue pair write to, read from, or do atomics on [address, address + len),
// len > 0?
AccessVerdict check_remote_write(const MemoryTable&, std::uint32_t key, std::uint64_t address,
                                 std::uint64_t len, const Requester& by);
AccessVerdict check_remote_read(const MemoryTable&, std::uint32_t key, std::uint64_t address,
                                std::uint64_t len, const Requester& by);
AccessVerdict check_remote_atomic(const MemoryTable&, std::uint32_t key, std::uint64_t address,
                                  std::uint64_t len, const Requester& by);

// Local key check of one SGE: the bytes it names, or an empty span with data() == nullptr when
// lkey, PD, bounds or (for `write`) rights do not allow it. lkey checks for length 0 are skipped.
std::span<std::uint8_t> resolve_sge(const MemoryTable&, const Sge&, PdId pd, bool write);

}  // namespace urnic::verbs
