#include "kernel_tcp/poller.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace urnic::kernel_tcp {
namespace {

constexpr unsigned kAtOnce = 64;

}  // namespace

Outcome<std::unique_ptr<Poller>, std::string> Poller::make() {
  std::unique_ptr<Poller> made(new Poller);  // first: if there is no memory, no descriptor leaks
  made->fd_ = epoll_create1(EPOLL_CLOEXEC);
  if (made->fd_ < 0)
    return fail(std::string("cannot create an epoll descriptor: ") + std::strerror(errno));
  return made;
}

Poller::~Poller() {
  if (fd_ >= 0) ::close(fd_);
}

int Poller::add(int fd, std::uint64_t tag) {
  epoll_event e{};
  e.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  e.data.u64 = tag;
  return epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : errno;
}

void Poller::remove(int fd) {
  epoll_event e{};
  epoll_ctl(fd_, EPOLL_CTL_DEL, fd, &e);
}

unsigned Poller::take(Ready* out, unsigned max) {
  epoll_event events[kAtOnce];
  const int n = epoll_wait(fd_, events, static_cast<int>(std::min(max, kAtOnce)), 0);
  for (int i = 0; i < n; ++i) {
    const auto what = events[i].events;
    const bool over = (what & (EPOLLERR | EPOLLHUP)) != 0;
    out[i].tag = events[i].data.u64;
    out[i].readable = over || (what & (EPOLLIN | EPOLLRDHUP)) != 0;
    out[i].writable = over || (what & EPOLLOUT) != 0;
    out[i].ended = over || (what & EPOLLRDHUP) != 0;
  }
  return n > 0 ? static_cast<unsigned>(n) : 0;
}

}  // namespace urnic::kernel_tcp
