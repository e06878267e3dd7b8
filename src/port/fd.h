// A file descriptor that closes itself, and that is closed in a child after fork.
#pragma once

#include <unistd.h>

#include <utility>

#include "base/private_descriptors.h"

namespace urnic::port {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) { private_descriptors::add(fd); }
  ~Fd() { reset(); }
  Fd(Fd&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Fd& operator=(Fd&& o) noexcept {
    if (this != &o) reset(std::exchange(o.fd_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    private_descriptors::remove(fd_);
    return std::exchange(fd_, -1);
  }
  void reset(int fd = -1) {
    private_descriptors::remove(fd_);
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
    private_descriptors::add(fd_);
  }

 private:
  int fd_ = -1;
};

}  // namespace urnic::port
