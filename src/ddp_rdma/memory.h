// Registered memory and STags (RFC 5040, 5041 4.x; iwarp-wire 5.2). One table per device.
//
// An STag is a 24-bit index and an 8-bit key. Entries are user regions or read sinks (E-16).
// Threading: changes happen under the engine's ownership (the engine lock); lookups are made by
// the owning engine only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "ddp_rdma/violation.h"

namespace urnic::ddp {

enum Access : std::uint8_t {
  kLocalRead = 0,  // always there
  kLocalWrite = 1,
  kRemoteWrite = 2,  // requires kLocalWrite
  kRemoteRead = 4,
  kZeroBased = 8,    // TO counts from 0 instead of the virtual address
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

struct Region {
  std::uint8_t* base = nullptr;  // first octet in this process
  std::uint64_t to = 0;          // tagged offset of that octet
  std::uint64_t length = 0;
  PdId pd = 0;
  std::uint8_t access = 0;
  std::uint8_t key = 0;
  enum class Kind : std::uint8_t { Free, Memory, ReadSink } kind = Kind::Free;
  bool valid = false;            // false after invalidation: index owned, STag unusable
  StreamId stream = 0;           // ReadSink: the one stream that may use it
  std::uint32_t uses = 0;        // rebuildable FPDUs and queued WQEs that still read it (E-25)
  // ReadSink: the pieces, in order (base/length describe the whole as [0, length)).
  std::vector<std::span<std::uint8_t>> pieces;
};

class MemoryTable {
 public:
  explicit MemoryTable(std::uint32_t max_regions = 1u << 20);

  // New STag for [base, base+length). Fails (nullopt-like 0) when the table is full or the range
  // wraps. STag 0 and index 0 are never given out. Keys start at a value from `key_seed` and change
  // on each reuse of an index, so that a stale STag does not match.
  std::uint32_t register_memory(PdId, std::uint8_t* base, std::uint64_t length, std::uint8_t access);
  // Frees the index. False if unknown. The caller has settled `uses` first (E-25).
  bool deregister(std::uint32_t stag);
  // Local or remote invalidation: STag must belong to `pd`. An already invalid one succeeds.
  enum class Invalidate : std::uint8_t { Ok, Unknown, Other };
  Invalidate invalidate(std::uint32_t stag, PdId pd, StreamId stream);

  // nullptr when index or key do not match or the STag is invalid.
  const Region* find(std::uint32_t stag) const;
  Region* find_mutable(std::uint32_t stag);
  // By index alone (also when invalid).
  Region* at_index(std::uint32_t stag);

  // Single-use read sink over `pieces`; TO counts from 0. Freed by release_sink.
  std::uint32_t open_sink(StreamId, std::span<const std::span<std::uint8_t>> pieces);
  void release_sink(std::uint32_t stag);

  std::size_t in_use() const { return in_use_; }

 private:
  std::vector<Region> regions_;
  std::vector<std::uint32_t> free_;
  std::uint32_t max_;
  std::size_t in_use_ = 0;
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
