// What the other end may send here and has sent: a buffer of two halves that are granted in turn,
// messages that say how much of it came, and the credits for those.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "rsockets/wire.h"

namespace urnic::rsockets {

class ReceiveSide {
 public:
  struct Grant {
    std::uint16_t limit = 0;              // up to which number the peer may send
    std::optional<std::uint32_t> offset;  // of the half it may write again
  };

  // `buffer` bytes, an even number, and as many messages as there are credits. The peer has the
  // first half to begin with.
  void open(std::uint32_t buffer, std::uint16_t credits);

  // The peer says that it has written `bytes` more. False when it had no right to.
  bool on_data(std::uint32_t bytes);
  // A message that takes a credit and has nothing for the program.
  void on_mapping() { ++number_; }

  std::uint64_t readable() const { return unread_; }
  bool has_data() const { return !messages_.empty(); }
  // Copies what is there, up to `size`, out of `buffer`; a look leaves it.
  std::uint64_t read(std::span<const std::uint8_t> buffer, std::uint8_t* to, std::uint64_t size);
  std::uint64_t peek(std::span<const std::uint8_t> buffer, std::uint8_t* to,
                     std::uint64_t size) const;

  // Whether the peer is to be told of what is free again: half the buffer, or half the credits.
  bool owes_grant() const;
  Grant grant();
  std::uint32_t half() const { return size_ / 2; }

 private:
  void take(std::uint64_t bytes);

  std::uint32_t size_ = 0, at_ = 0;
  std::uint32_t granted_ = 0;  // of what the peer may write, not yet written
  std::uint32_t free_ = 0;     // read, and not granted again
  std::uint32_t next_half_ = 0;
  std::uint64_t unread_ = 0;
  std::uint16_t credits_ = 0, number_ = 0, owed_from_ = 0;
  std::deque<std::uint32_t> messages_;  // bytes of each
};

}  // namespace urnic::rsockets
