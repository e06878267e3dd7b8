// Copies of FPDUs that are kept until acknowledged (E-22). Blocks come out of chunks of the pool;
// a chunk goes back when its last block is freed, so blocks may be freed in any order and an idle
// sender owns nothing.
#pragma once

#include <cstdint>

#include "base/buffer_pool.h"

namespace urnic::ddp {

class KeptBytes {
 public:
  static constexpr std::uint32_t kMaxBlock = 100000;  // more than any FPDU

  explicit KeptBytes(BufferPool* pool) : pool_(pool) {}
  // Everything allocated must have been freed.
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
    std::uint32_t used;  // bytes handed out, this header included
    std::uint32_t live;  // blocks not yet freed
    std::uint32_t shift;
  };
  static constexpr std::uint32_t kBlockHeader = 8;  // pointer to the chunk

  BufferPool* pool_;
  Chunk* current_ = nullptr;
  std::uint32_t chunks_ = 0;
};

}  // namespace urnic::ddp
