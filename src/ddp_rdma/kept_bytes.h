// Copies of FPDUs, kept until they are acknowledged (E-22). Blocks are allocated from chunks of the
// pool. A chunk is returned when its last block is freed, so blocks may be freed in any order, and
// an idle sender owns no memory.
#pragma once

#include <cstdint>

#include "base/buffer_pool.h"

namespace urnic::ddp {

class KeptBytes {
 public:
  static constexpr std::uint32_t kMaxBlock = 100000;  // more than any FPDU

  explicit KeptBytes(BufferPool* pool) : pool_(pool) {}
  // All blocks must have been freed.
  ~KeptBytes();
  KeptBytes(const KeptBytes&) = delete;
  KeptBytes& operator=(const KeptBytes&) = delete;

  // `len` bytes, 1..kMaxBlock, aligned to 8.
  std::uint8_t* allocate(std::uint32_t len);
  void free(std::uint8_t* block);

  std::uint32_t chunks() const { return chunks_; }

 private:
  struct Chunk {
    std::uint32_t size;
    std::uint32_t used;  // bytes allocated, including this header
    std::uint32_t live;  // blocks not yet freed
    std::uint32_t shift;
  };
  static constexpr std::uint32_t kBlockHeader = 8;  // pointer to the chunk

  BufferPool* pool_;
  Chunk* current_ = nullptr;
  std::uint32_t chunks_ = 0;
};

}  // namespace urnic::ddp
