// Bytes of a stream written in any order within a window, by absolute offset: the store behind
// reassembly.
//
//   base()                              base() + capacity()
//      |   writable in any order             |
//
// Memory comes in chunks from a shared pool (chunk_pool.h), only for the parts of the window that
// were written, and goes back as the base advances: an empty store costs nothing but itself. The
// store does not know which bytes of a chunk were written; whoever uses it does, and reads only
// those (others hold what another connection left there). Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/chunk_pool.h"
#include "base/ring.h"

namespace urnic {

class ByteStore {
 public:
  // The pool outlives the store.
  ByteStore(ChunkPool* pool, std::uint64_t capacity, std::uint64_t base = 0);
  ~ByteStore();
  ByteStore(const ByteStore&) = delete;
  ByteStore& operator=(const ByteStore&) = delete;

  std::uint64_t base() const { return base_; }
  std::uint64_t capacity() const { return capacity_; }
  void set_capacity(std::uint64_t capacity) { capacity_ = capacity; }
  // One past the highest byte written since the last reset; base() if that has been passed.
  std::uint64_t high() const { return high_; }
  std::size_t memory() const { return chunk_count_ * pool_->chunk_size(); }

  // Could this be written, as far as window and pool are concerned?
  bool can_write(std::uint64_t offset, std::size_t length) const;
  // Store `bytes` at `offset`. False, and nothing changed, unless all of them lie in the window and
  // the pool has the chunks. Bytes written before are overwritten.
  bool write(std::uint64_t offset, ByteView bytes);

  // The bytes from `offset` on that lie in one piece of memory, at most `most`; empty outside the
  // window or where nothing near was written. Valid until the base passes them.
  ByteView view(std::uint64_t offset, std::size_t most) const;
  // Copy [offset, offset + dst.size()). False if not all of it has memory.
  bool read(std::uint64_t offset, MutBytes dst) const;

  // Bytes below `to` are done with; `to` >= base(), and may lie beyond what was written.
  void advance(std::uint64_t to);
  // Forget everything; the window begins at `base`.
  void reset(std::uint64_t base);

 private:
  std::uint64_t chunk_of(std::uint64_t offset) const { return offset >> shift_; }
  bool in_window(std::uint64_t offset, std::size_t length) const;
  std::size_t missing_chunks(std::uint64_t first, std::uint64_t last) const;
  bool add_chunks(std::uint64_t first, std::uint64_t last, std::size_t missing);
  std::uint8_t* chunk_at(std::uint64_t number) const;
  void drop_below(std::uint64_t number);

  ChunkPool* pool_;
  unsigned shift_;  // log2 of the chunk size
  std::uint64_t capacity_;
  std::uint64_t base_;
  std::uint64_t high_;
  std::uint64_t first_chunk_;    // number of chunks_[0]; chunk_of(base_) while there are any
  Ring<std::uint8_t*> chunks_;   // nullptr where nothing was written
  std::size_t chunk_count_ = 0;  // those that are not
};

}  // namespace urnic
