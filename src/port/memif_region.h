// Memory shared with the peer. The peer can write to it at any time, but it can neither remove nor
// shrink it: access to a truncated file would raise SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "port/fd.h"

namespace urnic::port::memif {

class Region {
 public:
  // Our own region, sealed so that neither end can change its size. Zeroed.
  static Outcome<Region, std::string> create(std::size_t size);
  // The peer's region of `stated` bytes. Refused unless the file has that size and is sealed
  // against shrinking. The error is a reason for a DISCONNECT message.
  static Outcome<Region, std::string> adopt(Fd fd, std::uint64_t stated);

  Region(Region&& o) noexcept
      : fd_(std::move(o.fd_)), base_(std::exchange(o.base_, nullptr)), size_(o.size_) {}
  Region& operator=(Region&&) = delete;
  ~Region();

  std::uint8_t* base() const { return base_; }
  std::size_t size() const { return size_; }
  int fd() const { return fd_.get(); }
  // True if [offset, offset + length) lies inside.
  bool holds(std::uint64_t offset, std::uint64_t length) const {
    return offset <= size_ && length <= size_ - offset;
  }

 private:
  Region() = default;
  Fd fd_;
  std::uint8_t* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace urnic::port::memif
