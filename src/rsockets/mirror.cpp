#include "rsockets/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "rsockets/raw.h"

namespace urnic::rsockets {

int Mirror::open() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  program_ = ends[0];
  own_ = ends[1];
  raw::control(program_, F_SETFD, 0);  // the default of socket()
  const int least = 1;
  syscall(SYS_setsockopt, program_, SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
  return 0;
}

Mirror::~Mirror() {
  // Shut down explicitly: a forked child has our end as well, so that closing it has no effect.
  if (own_ >= 0) raw::shutdown(own_, SHUT_RDWR);
  if (own_ >= 0) raw::close(own_);
  if (program_ >= 0) raw::close(program_);
}

bool Mirror::drop_number(int fd) {
  if (std::erase(others_, fd) != 0) return false;
  if (others_.empty()) return true;
  program_ = others_.back();
  others_.pop_back();
  return false;
}

void Mirror::show_input(bool shown) {
  if (shown == input_ || ended_) return;
  input_ = shown;
  char byte = 0;
  if (shown) {
    raw::send(own_, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  } else {
    raw::receive(program_, &byte, 1, MSG_DONTWAIT);
  }
}

void Mirror::show_output(bool shown) {
  if (shown == output_ || hung_up_) return;
  output_ = shown;
  static constexpr char kNothing[4096] = {};
  char taken[sizeof kNothing];
  if (shown) {
    while (raw::receive(own_, taken, sizeof taken, MSG_DONTWAIT) > 0) {
    }
  } else {
    while (raw::send(program_, kNothing, sizeof kNothing, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
  }
}

void Mirror::show_end_of_input() {
  if (ended_) return;
  ended_ = true;
  raw::shutdown(own_, SHUT_WR);
}

void Mirror::show_hang_up() {
  if (hung_up_) return;
  raw::shutdown(own_, SHUT_RDWR);  // first: a thread woken by room to send must see this too
  show_output(true);
  hung_up_ = ended_ = true;
}

}  // namespace urnic::rsockets
