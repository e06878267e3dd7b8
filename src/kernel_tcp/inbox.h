// Bytes received from a socket and not yet consumed: the reassembly buffer of a connection over the
// kernel's TCP (D7). The bytes are contiguous, so that an FPDU can be parsed in place, independent
// of segment boundaries.
//
// Memory is borrowed from a pool only while there are bytes; an idle connection owns none. Blocks
// are reused last in, first out, so that they stay in the cache. A connection that waits for the
// rest of an FPDU keeps its block while few blocks are lent. Otherwise it keeps only its bytes
// (E-11): at most one FPDU, because everything before it has been consumed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace urnic::kernel_tcp {

// Shared by the connections of an engine; must outlive their inboxes.
class InboxPool {
 public:
  // Holds the largest FPDU (65 544 bytes) with enough room for an efficient read after any part of
  // one.
  static constexpr std::size_t kBlock = 256 * 1024;
  // The maximum number of blocks that waiting connections may keep.
  // bound: buffers lent to connections over the kernel's TCP that wait for the rest of an FPDU;
  // beyond: they keep only the bytes they have, at most one FPDU (E-11); test:
  // Inbox.ManyWaitingConnectionsKeepOnlyTheirBytes
  static constexpr std::size_t kLent = 64;

  std::unique_ptr<std::uint8_t[]> take();
  void give(std::unique_ptr<std::uint8_t[]> block);
  // True if too many blocks are lent.
  bool crowded() const { return lent_ > kLent; }
  std::size_t lent() const { return lent_; }
  // Bytes of waiting connections that are stored outside of blocks.
  std::size_t set_aside() const { return set_aside_; }
  void count_set_aside(std::size_t more, std::size_t less) { set_aside_ += more - less; }

 private:
  static constexpr std::size_t kKeep = 4;
  std::vector<std::unique_ptr<std::uint8_t[]>> free_;
  std::size_t lent_ = 0, set_aside_ = 0;
};

class Inbox {
 public:
  explicit Inbox(InboxPool* pool) : pool_(pool) {}
  ~Inbox() { clear(); }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // The memory to receive into, after the stored bytes. Empty only if a whole block waits to be
  // consumed.
  std::span<std::uint8_t> space();
  void received(std::size_t n) { end_ += n; }
  ByteView bytes() const { return {base() + begin_, end_ - begin_}; }
  bool empty() const { return begin_ == end_; }
  void consume(std::size_t n);
  void clear();
  // Call it when no more bytes are expected for now: returns memory that is not needed.
  void settle();

 private:
  const std::uint8_t* base() const { return block_ ? block_.get() : aside_.data(); }

  InboxPool* pool_;
  std::unique_ptr<std::uint8_t[]> block_;
  std::vector<std::uint8_t> aside_;  // the bytes, if there is no block
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace urnic::kernel_tcp
