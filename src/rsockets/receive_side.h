// The receiving half of the protocol: a buffer of two halves that are granted in turn, messages
// that say how many bytes arrived, and the credits for them.
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
    std::uint16_t limit = 0;              // the peer may send messages with numbers below it
    std::optional<std::uint32_t> offset;  // start of the half that it may write again
  };

  // `buffer` is an even number of bytes; `credits` messages may be outstanding. The peer has the
  // first half from the start.
  void open(std::uint32_t buffer, std::uint16_t credits);

  // The peer reports that it has written `bytes` more. False if it was not allowed to.
  bool on_data(std::uint32_t bytes);
  // A message that uses a credit and carries no data for the program.
  void on_mapping() { ++number_; }

  std::uint64_t readable() const { return unread_; }
  bool has_data() const { return !messages_.empty(); }
  // Copy available data, at most `size` bytes, out of `buffer`; peek() does not remove it.
  std::uint64_t read(std::span<const std::uint8_t> buffer, std::uint8_t* to, std::uint64_t size);
  std::uint64_t peek(std::span<const std::uint8_t> buffer, std::uint8_t* to,
                     std::uint64_t size) const;

  // True if freed space should be granted to the peer: half the buffer, or half the credits.
  bool grant_due() const;
  Grant grant();
  std::uint32_t half() const { return size_ / 2; }

 private:
  void take(std::uint64_t bytes);

  std::uint32_t size_ = 0, at_ = 0;
  std::uint32_t granted_ = 0;  // bytes that the peer may still write
  std::uint32_t free_ = 0;     // bytes read and not granted again
  std::uint32_t next_half_ = 0;
  std::uint64_t unread_ = 0;
  std::uint16_t credits_ = 0, number_ = 0, grant_from_ = 0;
  std::deque<std::uint32_t> messages_;  // bytes of each message
};

}  // namespace urnic::rsockets
