// The data of an rsocket, and the state of its descriptor.
#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "rsockets/socket.h"

namespace urnic::rsockets {
namespace {

// Converts an address for a socket of this family: IPv6 sockets see IPv4 addresses as mapped ones.
socklen_t as_family(int family, const sockaddr_storage& from, sockaddr_storage* to) {
  *to = from;
  if (family == AF_INET) {
    to->ss_family = AF_INET;
    return sizeof(sockaddr_in);
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(to);
  if (from.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &from, sizeof v4);
    *to = {};
    v6->sin6_port = v4.sin_port;
    if (v4.sin_addr.s_addr != INADDR_ANY) {
      v6->sin6_addr.s6_addr[10] = v6->sin6_addr.s6_addr[11] = 0xff;
      std::memcpy(&v6->sin6_addr.s6_addr[12], &v4.sin_addr, 4);
    }
  }
  v6->sin6_family = AF_INET6;
  return sizeof(sockaddr_in6);
}

void tell_address(int family, const sockaddr_storage& a, sockaddr* to, socklen_t* length) {
  sockaddr_storage told;
  const socklen_t whole = as_family(family, a, &told);
  std::memcpy(to, &told, std::min(whole, *length));
  *length = whole;
}

}  // namespace

// The error that prevents sending or receiving now; 0 if there is none.
int Socket::state_error(bool sending) const {
  switch (stage_) {
    case State::connecting:
      return EAGAIN;
    case State::connected:
      break;
    case State::closed:
      return EBADF;
    default:
      return sending ? EPIPE : ENOTCONN;
  }
  if (!sending || stream_.ending().is_writable()) return 0;
  const int error = stream_.ending().error();
  return error != 0 ? error : EPIPE;
}

// Processes arrivals. Arms the send queue if room to send, or the last message's completion, is
// awaited.
void Socket::settle() {
  stream_.serve();
  const Ending& ending = stream_.ending();
  const bool ends = ending.is_connected() && !ending.is_readable() && !ending.is_writable();
  if (ends || (wants_output_ && !stream_.can_send())) {
    stream_.link().arm_sent();
    stream_.serve();
  }
  show();
}

// Updates the descriptor to the present state.
void Socket::show() {
  if (stage_ == State::listening) {
    mirror_.show_input(!accepted_.empty());
    return;
  }
  if (stage_ == State::failed) mirror_.show_hang_up();
  if (stage_ != State::connected) return;
  const Ending& ending = stream_.ending();
  if (wants_output_ && (stream_.can_send() || !ending.is_writable())) {
    wants_output_ = false;
    mirror_.show_output(true);
  }
  mirror_.show_input(stream_.has_data());
  if (!ending.is_connected()) {
    mirror_.show_hang_up();
  } else if (!ending.is_readable()) {
    mirror_.show_end_of_input();
  }
}

int Socket::send(Source& from) {
  const std::lock_guard guard(mutex_);
  if (const int e = state_error(true); e != 0) return e;
  stream_.send(from);
  if (from.left() != 0 && stream_.ending().is_writable()) {
    stream_.serve();
    stream_.send(from);
  }
  return sent(from);
}

int Socket::send_to_mapping(Source& from, std::uint64_t offset) {
  const std::lock_guard guard(mutex_);
  if (const int e = state_error(true); e != 0) return e;
  stream_.serve();
  offset += stream_.send_to_mapping(from, offset);
  if (from.left() != 0 && stream_.can_send() && !stream_.is_mapped(offset)) {
    show();
    return EINVAL;
  }
  return sent(from);
}

// The result of a send that may have left bytes in `from`.
int Socket::sent(const Source& from) {
  if (from.left() == 0) {
    show();
    return 0;
  }
  wants_output_ = true;
  mirror_.show_output(false);
  settle();
  const int e = state_error(true);
  return e != 0 ? e : EAGAIN;
}

int Socket::receive(std::uint8_t* to, std::size_t size, bool look, std::size_t* got) {
  const std::lock_guard guard(mutex_);
  *got = 0;
  if (const int e = state_error(false); e != 0) return e;
  if (!stream_.has_data()) stream_.serve();
  *got = stream_.receive(to, size, look);
  show();
  if (*got != 0 || size == 0 || stream_.has_data()) {
    looks_.found();
    return 0;
  }
  looks_.in_vain();
  const Ending& ending = stream_.ending();
  if (ending.error() != 0) return ending.error();
  return ending.is_readable() ? EAGAIN : 0;
}

void Socket::look(bool for_output, bool sleeps) {
  const std::lock_guard guard(mutex_);
  if (stage_ != State::connected) return;
  if (for_output && !wants_output_ && stream_.ending().is_writable() && !stream_.can_send()) {
    wants_output_ = true;
    mirror_.show_output(false);
  }
  if (sleeps) stream_.link().arm_received();
  settle();
  if (sleeps || stream_.has_data()) {
    looks_.found();
  } else {
    looks_.in_vain();
  }
}

int Socket::map(void* buffer, std::size_t length, bool written, std::uint64_t offset) {
  const std::lock_guard guard(mutex_);
  return stage_ == State::connected ? stream_.map(buffer, length, written, offset) : ENOTCONN;
}

int Socket::unmap(void* buffer, std::size_t length) {
  const std::lock_guard guard(mutex_);
  return stream_.unmap(buffer, length);
}

int Socket::address(bool of_peer, sockaddr* to, socklen_t* length) {
  const std::lock_guard guard(mutex_);
  const rdma_cm_id* of = id_ != nullptr ? id_ : stream_.link().id();
  if (of_peer && (stage_ != State::connected || of == nullptr)) return ENOTCONN;
  sockaddr_storage a{};
  if (of != nullptr) a = of_peer ? of->route.addr.dst_storage : of->route.addr.src_storage;
  tell_address(family_, a, to, length);
  return 0;
}

int Socket::error(bool taken) {
  const std::lock_guard guard(mutex_);
  if (stage_ == State::connected) return stream_.ending().error();
  return taken ? std::exchange(error_, 0) : error_;
}

std::uint64_t Socket::readable() {
  const std::lock_guard guard(mutex_);
  if (stage_ == State::connected) settle();
  return stream_.readable();
}

}  // namespace urnic::rsockets
