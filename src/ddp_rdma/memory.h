// Registered memory and STags (RFC 5040, 5041 4.x; iwarp-wire 5.2). One table per device.
//
// An STag is a 24-bit index and an 8-bit key. Entries are user regions or read sinks (E-16).
// Threading: changes happen under the engine's ownership (the engine lock); lookups are made by
// the owning engine only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/stag_form.h"
#include "ddp_rdma/buffer_pool.h"
#include "ddp_rdma/send_end.h"
#include "ddp_rdma/violation.h"

namespace urnic::ddp {

enum Access : std::uint8_t {
  kLocalRead = 0,  // always there
  kLocalWrite = 1,
  kRemoteWrite = 2,  // requires kLocalWrite
  kRemoteRead = 4,
  kZeroBased = 8,  // TO counts from 0 instead of the virtual address
};

// Scatter/gather element of a work request: `addr` is the virtual address (or the offset in a
// zero-based region), `lkey` the STag of the region.
struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

using PdId = std::uint32_t;
using StreamId = std::uint32_t;  // one RDMA stream (QP) of the device

// One entry: a user region or a read sink. 64 octets, so that a lookup is one cache line.
struct Region {
  enum class Kind : std::uint8_t { Free, Memory, ReadSink };

  std::uint8_t* base = nullptr;  // first octet in this process; null for a sink of several pieces
  std::uint64_t to = 0;          // tagged offset of that octet; 0 for sinks
  std::uint64_t length = 0;
  PdId pd = 0;
  std::uint32_t uses = 0;  // unacknowledged rebuildable messages and open reads on it (E-25)
  StreamId stream = 0;     // ReadSink: the one stream that may use it. Free: the next free index
  std::uint32_t progress = 0;  // ReadSink: octets received in order so far
  std::uint8_t access = 0;
  std::uint8_t key = 0;
  std::uint8_t use = 0;  // how often the index was given back
  Kind kind = Kind::Free;
  bool valid = false;         // false after invalidation: index owned, STag unusable
  bool out_of_order = false;  // ReadSink: part of it came out of order, `progress` means nothing
  bool ended = false;         // ReadSink: the last segment of the response has been placed
  // ReadSink of several pieces: them, in order. Kept with the index for reuse.
  std::unique_ptr<std::vector<std::span<std::uint8_t>>> pieces;

  // Whether check_write() would find nothing wrong with [at, at + len), len > 0.
  bool may_write(PdId of, std::uint64_t at, std::uint64_t len) const {
    const std::uint64_t offset = at - to;
    return kind == Kind::Memory && pd == of && (access & kRemoteWrite) != 0 && at >= to &&
           offset <= length && len <= length - offset;
  }
};
static_assert(sizeof(Region) <= 64);

class MemoryTable {
 public:
  // At most 2^24 - 1 regions and sinks together.
  explicit MemoryTable(std::uint32_t max_regions = 1u << 20, const StagForm& form = StagForm());
  MemoryTable(const MemoryTable&) = delete;
  MemoryTable& operator=(const MemoryTable&) = delete;

  // New STag for [base, base+length). Fails (0) when the table is full, the range wraps, or the
  // rights are not a legal set. STag 0 and index 0 are never given out. The key changes on each
  // reuse of an index, so that a stale STag does not match.
  std::uint32_t register_memory(PdId, std::uint8_t* base, std::uint64_t length,
                                std::uint8_t access);
  // Frees the index. False if unknown, or a read sink. The caller has settled `uses` first
  // (Sender::detach_region, E-25).
  bool deregister(std::uint32_t stag);
  // Local or remote invalidation: STag must belong to `pd`. An already invalid one succeeds.
  enum class Invalidate : std::uint8_t { Ok, Unknown, Other };
  Invalidate invalidate(std::uint32_t stag, PdId pd, StreamId stream);

  // nullptr when index or key do not match or the STag is invalid.
  const Region* find(std::uint32_t stag) const {
    const std::uint32_t index = form_.inside(stag);
    if (index >= regions_.size()) return nullptr;
    const Region& r = regions_[index];
    return r.valid && r.key == static_cast<std::uint8_t>(stag) ? &r : nullptr;
  }
  Region* find_mutable(std::uint32_t stag) { return const_cast<Region*>(find(stag)); }
  // The region a registered STag names, also when it has been invalidated: its memory is still
  // ours to read for retransmission.
  Region* find_registered(std::uint32_t stag) {
    Region* r = at_index(stag);
    return r != nullptr && r->kind == Region::Kind::Memory &&
                   r->key == static_cast<std::uint8_t>(stag)
               ? r
               : nullptr;
  }
  // By the index of `stag` alone (also when invalid); nullptr when that index is free.
  Region* at_index(std::uint32_t stag) {
    const std::uint32_t index = form_.inside(stag);
    if (index >= regions_.size() || regions_[index].kind == Region::Kind::Free) return nullptr;
    return &regions_[index];
  }

  // Single-use read sink over `pieces`; TO counts from 0. Freed by release_sink. 0 when the table
  // is full.
  std::uint32_t open_sink(StreamId, std::span<const std::span<std::uint8_t>> pieces);
  void release_sink(std::uint32_t stag);

  std::size_t in_use() const { return in_use_; }

  // What the streams of this device share besides regions; same ownership as the table.
  BufferPool& pool() { return pool_; }
  std::uint8_t* header_scratch() { return header_scratch_; }  // kMaxHeader octets
  FreshSends& fresh_sends() { return fresh_sends_; }

 private:
  std::uint32_t take_index();
  void free_index(std::uint32_t index);

  std::vector<Region> regions_;
  std::uint32_t max_;
  std::uint32_t free_head_ = 0;  // list through Region::stream; 0 = none
  std::size_t in_use_ = 0;
  StagForm form_;
  BufferPool pool_;
  std::uint8_t header_scratch_[48] = {};
  FreshSends fresh_sends_;
};

// The tagged-access checks of RFC 5041 7.x for [to, to+len), len > 0.
Violation check_write(const MemoryTable&, std::uint32_t stag, std::uint64_t to, std::uint64_t len,
                      PdId pd, StreamId stream);
Violation check_read_response(const MemoryTable&, std::uint32_t stag, std::uint64_t to,
                              std::uint64_t len, StreamId stream);
Violation check_read_source(const MemoryTable&, std::uint32_t stag, std::uint64_t to,
                            std::uint64_t len, PdId pd, StreamId stream);

// Local key check of one SGE: the octets it names, or an empty span with data() == nullptr when
// lkey, PD, bounds or (for `write`) rights do not allow it. lkey checks for length 0 are skipped.
std::span<std::uint8_t> resolve_sge(const MemoryTable&, const Sge&, PdId pd, bool write);

}  // namespace urnic::ddp
