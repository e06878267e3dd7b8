// Stores the bytes of a stream, written in any order within a window, by absolute offset: the
// storage for reassembly.
//
//   base()                              base() + capacity()
//      |   writable in any order             |
//
// Memory comes in chunks from a shared pool (chunk_pool.h), only for the written parts of the
// window, and is returned as the base advances: an empty store has no chunks. The store does not
// record which bytes of a chunk were written; the caller must, and may read only those (other bytes
// may be data of another connection). Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/chunk_pool.h"
#include "base/ring.h"

namespace urnic {

class ByteStore {
 public:
  // The pool must outlive the store.
  ByteStore(ChunkPool* pool, std::uint64_t capacity, std::uint64_t base = 0);
  ~ByteStore();
  ByteStore(const ByteStore&) = delete;
  ByteStore& operator=(const ByteStore&) = delete;

  std::uint64_t base() const { return base_; }
  std::uint64_t capacity() const { return capacity_; }
  void set_capacity(std::uint64_t capacity) { capacity_ = capacity; }
  // One past the highest byte written since the last reset; base() if the base has passed it.
  std::uint64_t high() const { return high_; }
  std::size_t memory() const { return chunk_count_ * pool_->chunk_size(); }

  // True if window and pool permit this write.
  bool can_write(std::uint64_t offset, std::size_t length) const;
  // Stores `bytes` at `offset`. Returns false and changes nothing unless all of them fit into the
  // window and the pool has enough chunks. Overwrites bytes written before.
  bool write(std::uint64_t offset, ByteView bytes);

  // The contiguous bytes from `offset` on, at most `most`. Empty outside the window, or where no
  // chunk is allocated. Valid until the base passes them.
  ByteView view(std::uint64_t offset, std::size_t most) const;
  // Copies [offset, offset + dst.size()). False if part of it has no chunk.
  bool read(std::uint64_t offset, MutBytes dst) const;

  // Releases the bytes below `to`; `to` >= base(), and may be higher than all written bytes.
  void advance(std::uint64_t to);
  // Discards everything; the window begins at `base`.
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
  Ring<std::uint8_t*> chunks_;   // nullptr where no byte was written
  std::size_t chunk_count_ = 0;  // non-null entries of chunks_
};

}  // namespace urnic
