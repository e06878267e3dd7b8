// Registered memory and its keys (lkey, rkey; what RFC 5041 calls an STag). One table per device.
//
// A key is a 24-bit index and an 8-bit tag that changes at each use of the index. Entries are
// regions of consumers; windows on a part of a region, which only have an rkey; or keys that a
// transport has reserved for its own objects (iWARP: read sinks), which give no access to anything.
// Threading: changes happen under the engine's ownership (the engine lock); only the owning engine
// looks up keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/stag_form.h"

namespace urnic::verbs {

enum Access : std::uint8_t {
  kLocalRead = 0,  // always granted
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

// The requester of an access, bind or invalidation: the number of the queue pair, and its domain.
struct Requester {
  Requester(PdId d, std::uint32_t number = 0) : pd(d), qp(number) {}
  PdId pd;
  std::uint32_t qp;
};

// A type 1 window belongs to a protection domain and may be bound again at any time; the provider
// chooses its rkey. A type 2 window belongs to the queue pair that bound it, can only be bound
// while it is not bound, and is unbound by invalidation; the consumer chooses the tag of its rkey.
enum class WindowType : std::uint8_t { One = 1, Two = 2 };

// Parameters of a bind.
struct WindowBind {
  std::uint64_t address = 0;  // as in the region
  std::uint64_t length = 0;   // 0: unbinds the window
  std::uint32_t lkey = 0;     // of the region
  std::uint32_t rkey = 0;     // the window's new rkey: its index, and any tag
  std::uint8_t access = 0;    // remote rights, kZeroBased
};

// Result of an access check, in the order of the checks. Each transport maps these to its own codes
// on the wire.
enum class AccessVerdict : std::uint8_t {
  Ok,
  BadKey,       // index unknown, tag differs, or invalidated
  Reserved,     // a key reserved by the transport
  WrongDomain,  // a region of another protection domain, or a window of another queue pair
  Rights,       // the region does not allow the access
  Wraps,        // address + length exceeds 2^64
  Bounds,       // not inside the region
};

// The memory of a region.
struct Extent {
  std::uint8_t* base = nullptr;  // first byte in this process
  std::uint64_t address = 0;     // its address in work requests and from peers
  std::uint64_t length = 0;

  // Addresses start at the virtual address, or at 0 for a zero-based region.
  static Extent of(std::uint8_t* base, std::uint64_t length, std::uint8_t access) {
    const bool from_zero = (access & kZeroBased) != 0;
    return {base, from_zero ? 0 : reinterpret_cast<std::uintptr_t>(base), length};
  }
  bool operator==(const Extent&) const = default;
};

// One entry, in a cache line of its own, so that a lookup touches only one line.
struct alignas(64) Region {
  enum class Kind : std::uint8_t { Free, Memory, Reserved, Window };

  std::uint8_t* base = nullptr;  // first byte in this process
  std::uint64_t address = 0;     // its address in work requests and from peers
  std::uint64_t length = 0;
  PdId pd = 0;
  std::uint32_t uses = 0;  // unacknowledged rebuildable messages and open reads on it (E-25)
  std::uint32_t link = 0;  // Reserved: for its transport. Free: next free index. Window: its place
  std::uint32_t qp = 0;    // the only queue pair with access; 0: the whole protection domain
  std::uint32_t windows = 0;  // Memory: how many are bound to it
  std::uint32_t region = 0;   // Window: index of the region it is bound to; 0: none
  std::uint8_t access = 0;    // 0 unless Memory or Window
  std::uint8_t tag = 0;
  std::uint8_t use = 0;  // how often the index was freed
  Kind kind = Kind::Free;
  WindowType type = WindowType::One;  // Window
  bool valid = false;                 // false after invalidation: index owned, key unusable

  bool associated_with(const Requester& who) const {
    return pd == who.pd && (qp == 0 || qp == who.qp);
  }
  // True if check_remote_write() would return Ok for [at, at + len), len > 0.
  bool may_write(const Requester& who, std::uint64_t at, std::uint64_t len) const {
    const std::uint64_t offset = at - address;
    return (access & kRemoteWrite) != 0 && associated_with(who) && at >= address &&
           offset <= length && len <= length - offset;
  }
};
static_assert(sizeof(Region) == 64);
Extent extent_of(const Region&);

// True if this memory can become a region: it does not wrap around, and the rights are a legal set.
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

  // Returns a new key for `memory`. Fails (0) when the table is full, the range wraps around, or
  // the rights are not a legal set. Key 0 and index 0 are never used. Tags change on each reuse of
  // an index, so that a stale key does not match.
  std::uint32_t register_memory(PdId, const Extent& memory, std::uint8_t access);
  std::uint32_t register_memory(PdId pd, std::uint8_t* base, std::uint64_t length,
                                std::uint8_t access) {
    return register_memory(pd, Extent::of(base, length, access), access);
  }
  // Changes memory, domain or rights of the region `key`, which becomes valid again if it was
  // invalidated. Returns its key: the same one if only the rights change, because it still gives
  // access to the same memory only; else a new one with the same index. Returns 0, with nothing
  // changed, as register_memory() does, or if there is no such region. If the memory changes, the
  // caller has settled `uses` first (E-25).
  std::uint32_t reregister(std::uint32_t key, PdId, const Extent& memory, std::uint8_t access);
  // Frees the index. False if the key is unknown or not a region, or while windows are bound to it.
  // The caller has settled `uses` first (E-25).
  bool deregister(std::uint32_t key);
  // Local or remote invalidation of a region of the domain without windows, or of a type 2 window
  // of the queue pair, which becomes unbound. Succeeds if the key is already invalid.
  enum class Invalidate : std::uint8_t { Ok, Unknown, Other };
  Invalidate invalidate(std::uint32_t key, const Requester& by);

  // ---- windows
  // Returns the window's first key, which gives no access. 0 when the table is full.
  std::uint32_t allocate_window(PdId, WindowType);
  // Unbinds and frees the window; any of its keys will do. False if it is not a window.
  bool free_window(std::uint32_t key);
  // Binds as described at WindowBind and WindowType. False, with nothing changed, if: there is no
  // such window in the domain of `by`; a type 2 window is already bound; there is no valid region
  // in that domain, it lacks kBindWindow, or it does not contain the range; the rights are not
  // remote ones, or allow writing although the region does not allow local writing. The region's
  // own remote rights do not matter.
  bool bind(const WindowBind& bind, const Requester& by);
  // Unbind the type 2 windows of a destroyed queue pair, and the windows bound to a region.
  void unbind_windows_of(std::uint32_t qp);
  void unbind_windows_on(std::uint32_t key);

  // Reserves a key for a transport. 0 when the table is full.
  std::uint32_t reserve(std::uint32_t link);
  // Frees a reserved key. False if it is not one.
  bool release(std::uint32_t key);
  // Keeps the key reserved, but no lookup finds it any more.
  void invalidate_reserved(std::uint32_t key);

  // Returns nullptr when index or tag do not match or the key is invalid.
  const Region* find(std::uint32_t key) const {
    const std::uint32_t index = form_.inside(key);
    if (index >= regions_.size()) return nullptr;
    const Region& r = regions_[index];
    return r.valid && r.tag == static_cast<std::uint8_t>(key) ? &r : nullptr;
  }
  // The region of a registered key, even after invalidation: we may still read its memory for
  // retransmission.
  Region* find_registered(std::uint32_t key) {
    Region* r = at_index(key);
    return r != nullptr && r->kind == Region::Kind::Memory &&
                   r->tag == static_cast<std::uint8_t>(key)
               ? r
               : nullptr;
  }
  // Looks only at the index of `key` (also when invalid); nullptr when that index is free.
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
  std::vector<std::uint32_t> windows_;  // their indices, in any order
  std::uint32_t max_;
  std::uint32_t free_head_ = 0;  // list through Region::link; 0 = none
  std::size_t in_use_ = 0;
  StagForm form_;
};

// Check whether the peer of that queue pair may write to, read from, or do atomics on [address,
// address + len), len > 0.
AccessVerdict check_remote_write(const MemoryTable&, std::uint32_t key, std::uint64_t address,
                                 std::uint64_t len, const Requester& by);
AccessVerdict check_remote_read(const MemoryTable&, std::uint32_t key, std::uint64_t address,
                                std::uint64_t len, const Requester& by);
AccessVerdict check_remote_atomic(const MemoryTable&, std::uint32_t key, std::uint64_t address,
                                  std::uint64_t len, const Requester& by);

// Checks the local key of one SGE. Returns its bytes, or an empty span with data() == nullptr when
// lkey, PD, bounds or (for `write`) rights do not allow it. The lkey is not checked for length 0.
std::span<std::uint8_t> resolve_sge(const MemoryTable&, const Sge&, PdId pd, bool write);

}  // namespace urnic::verbs
