#include "device/event_queue.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "device/nap.h"

namespace urnic::device {

EventFd::EventFd() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
EventFd::~EventFd() {
  if (fd_ >= 0) close(fd_);
}
void EventFd::signal() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(fd_, &one, sizeof one);
}
void EventFd::clear() {
  std::uint64_t v;
  [[maybe_unused]] const auto n = ::read(fd_, &v, sizeof v);
}
bool EventFd::wait(Duration most) const {
  pollfd p{fd_, POLLIN, 0};
  return ::ppoll(&p, 1, Nap(most).get(), nullptr) > 0;
}

}  // namespace urnic::device
