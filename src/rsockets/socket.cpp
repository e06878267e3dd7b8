// The life cycle of an rsocket. Its data is in socket_data.cpp.
#include "rsockets/socket.h"

#include <errno.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>
#include <utility>

#include "dropin/errors.h"
#include "rsockets/raw.h"
#include "rsockets/service.h"
#include "rsockets/verbs_calls.h"

namespace urnic::rsockets {
namespace {

// A program that calls listen(5) still gets many simultaneous connections.
// bound: rsockets of a listener waiting to be accepted, and as many being opened; limit: the
// backlog of `rlisten`, 128 to 4096; beyond: refused; test:
// ConnectionTest.WaitingConnectionsAreBoundedAndTheNextIsRefused,
// ConnectionTest.UnfinishedConnectionsAreBounded
constexpr int kLeastBacklog = 128, kMostBacklog = 4096;
constexpr int kResolveMs = 2000;
// close() gives up sent data when there was no progress for this long.
constexpr int kQuietMs = 10'000;

constexpr unsigned kInVain = 3;
constexpr std::int64_t kStillLookingUs = 1000;

std::int64_t now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

bool is_usable(const sockaddr* a, socklen_t length, int family) {
  if (a == nullptr || a->sa_family != family) return false;
  return length >= (family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
}

std::span<const std::uint8_t> bytes_of(std::string_view s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

int set_flag(rdma_cm_id* id, int name) {
  int on = 1;
  return verbs.set_option(id, RDMA_OPTION_ID, name, &on, sizeof on) == 0 ? 0 : errno;
}

}  // namespace

void Looks::in_vain() {
  vain_.fetch_add(1, std::memory_order_relaxed);
  last_us_.store(now_us(), std::memory_order_relaxed);
}

bool Looks::are_many() const {
  return vain_.load(std::memory_order_relaxed) > kInVain &&
         now_us() - last_us_.load(std::memory_order_relaxed) < kStillLookingUs;
}

int Socket::open() {
  if (const int e = mirror_.open(); e != 0) return e;
  cookie_ = Service::get().add(weak_from_this());
  return 0;
}

Socket::~Socket() {
  if (cookie_ != nullptr) Service::get().remove(cookie_);
  if (id_ != nullptr) verbs.destroy_id(id_);
  stream_.finish();
}

// ---- bind, listen, connect

int Socket::make_id() {
  if (id_ != nullptr) return 0;
  if (verbs.create_id(nullptr, &id_, cookie_, RDMA_PS_TCP) != 0) return errno;
  int e = settings_.reuse_address ? set_flag(id_, RDMA_OPTION_ID_REUSEADDR) : 0;
  if (e == 0 && settings_.ipv6_only) e = set_flag(id_, RDMA_OPTION_ID_AFONLY);
  return e;
}

int Socket::bind(const sockaddr* a, socklen_t length) {
  const std::lock_guard guard(mutex_);
  if (!is_usable(a, length, family_)) return a != nullptr && length >= 2 ? EAFNOSUPPORT : EINVAL;
  if (stage_ != State::fresh) return EINVAL;
  if (const int e = make_id(); e != 0) return e;
  sockaddr_storage to{};
  std::memcpy(&to, a, std::min<std::size_t>(length, sizeof to));
  if (verbs.bind_addr(id_, reinterpret_cast<sockaddr*>(&to)) != 0) {
    return errno == ENODEV ? EADDRNOTAVAIL : errno;
  }
  stage_ = State::bound;
  return 0;
}

int Socket::listen(int backlog) {
  const std::lock_guard guard(mutex_);
  if (stage_ == State::listening) return 0;
  if (stage_ != State::fresh && stage_ != State::bound) return EINVAL;
  if (const int e = Service::get().start(); e != 0) return e;
  if (const int e = make_id(); e != 0) return e;
  if (verbs.migrate_id(id_, Service::get().events()) != 0) return errno;
  const int wanted = std::clamp(backlog, kLeastBacklog, kMostBacklog);
  if (verbs.listen(id_, wanted) != 0) return errno;
  backlog_ = static_cast<std::size_t>(wanted);
  stage_ = State::listening;
  return 0;
}

// Afterwards the id has the device and the service's channel, and the stream owns the id.
int Socket::prepare_connection(const sockaddr* to) {
  if (const int e = Service::get().start(); e != 0) return e;
  if (const int e = make_id(); e != 0) return e;
  sockaddr_storage there{};
  std::memcpy(&there, to, family_ == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  if (verbs.resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&there), kResolveMs) != 0 ||
      verbs.resolve_route(id_, kResolveMs) != 0 ||
      verbs.migrate_id(id_, Service::get().events()) != 0) {
    return errno;
  }
  ibv_comp_channel* const channel = Service::get().completions(id_->verbs);
  return stream_.open(std::exchange(id_, nullptr), settings_, channel, cookie_);
}

int Socket::connect(const sockaddr* to, socklen_t length) {
  const std::lock_guard guard(mutex_);
  if (stage_ == State::connected) return EISCONN;
  if (stage_ == State::connecting) return EALREADY;
  if (!is_usable(to, length, family_)) return to != nullptr && length >= 2 ? EAFNOSUPPORT : EINVAL;
  if (stage_ != State::fresh && stage_ != State::bound) return EINVAL;
  int e = dropin::guarded([&] { return prepare_connection(to); }, ENOMEM);
  if (e == 0) {
    stage_ = State::connecting;  // before an event of it can arrive
    const auto said = encode(stream_.own_data());
    rdma_conn_param p{};
    p.private_data = said.data();
    p.private_data_len = said.size();
    p.responder_resources = p.initiator_depth = 1;
    p.retry_count = p.rnr_retry_count = 7;
    if (verbs.connect(stream_.link().id(), &p) != 0) e = errno;
  }
  if (e != 0) {
    stage_ = State::failed;
    show();
    return e;
  }
  mirror_.show_output(false);
  return EINPROGRESS;
}

int Socket::connect_result() {
  const std::lock_guard guard(mutex_);
  if (stage_ == State::connecting) return EALREADY;
  if (stage_ == State::failed) return error_ != 0 ? std::exchange(error_, 0) : ECONNREFUSED;
  return stage_ == State::connected ? 0 : ENOTCONN;
}

// ---- events from the service

// Prepares the answer to the request of `id_`. Returns 0, or errno if it cannot be answered.
int Socket::open_request(std::string_view private_data) {
  const std::lock_guard guard(mutex_);
  rdma_cm_id* const id = id_;
  id->context = cookie_;
  const auto peers = decode(bytes_of(private_data));
  ibv_comp_channel* const channel = Service::get().completions(id->verbs);
  id_ = nullptr;
  int e = stream_.open(id, settings_, channel, cookie_);
  if (e == 0 && !peers) e = EPROTO;
  if (e != 0) return e;
  stream_.begin(*peers);
  stage_ = State::connecting;
  const auto said = encode(stream_.own_data());
  rdma_conn_param p{};
  p.private_data = said.data();
  p.private_data_len = said.size();
  p.responder_resources = p.initiator_depth = 1;
  p.retry_count = p.rnr_retry_count = 7;
  return verbs.accept(id, &p) == 0 ? 0 : errno;
}

void Socket::on_request(rdma_cm_id* id, std::string_view private_data) {
  std::shared_ptr<Socket> made;
  const auto begin = [&] {
    made = std::make_shared<Socket>(family_);
    made->id_ = id;
    {
      const std::lock_guard guard(mutex_);
      const bool wanted =
          stage_ == State::listening && accepted_.size() < backlog_ && making_.size() < backlog_;
      if (!wanted) return ECONNREFUSED;
      making_.reserve(making_.size() + 1);
      made->settings_ = settings_;
      made->listener_ = weak_from_this();
    }
    const int e = made->open();
    return e != 0 ? e : made->open_request(private_data);
  };
  if (dropin::guarded(begin, ENOMEM) != 0) {
    verbs.reject(id, nullptr, 0);
    if (made == nullptr) verbs.destroy_id(id);
    return;  // otherwise the socket destroys the id
  }
  // Only this listener has it until it is established.
  const std::lock_guard guard(mutex_);
  making_.push_back(std::move(made));
}

void Socket::on_established(std::string_view private_data) {
  std::shared_ptr<Socket> listener;
  {
    const std::lock_guard guard(mutex_);
    if (stage_ != State::connecting) return;
    listener = listener_.lock();
    if (listener == nullptr) {
      const auto peers = decode(bytes_of(private_data));
      if (!peers) {
        stage_ = State::failed;
        error_ = EPROTO;
        stream_.finish();
        show();
        return;
      }
      stream_.begin(*peers);
    }
    stage_ = State::connected;
    stream_.link().arm_received();  // messages that arrived before caused no event
    stream_.connected();
    mirror_.show_output(true);
    show();
  }
  if (listener != nullptr) listener->queue(shared_from_this());
}

void Socket::on_failed(int error) {
  std::shared_ptr<Socket> listener;
  {
    const std::lock_guard guard(mutex_);
    if (stage_ != State::connecting) return;
    listener = listener_.lock();
    stage_ = State::failed;
    error_ = error;
    show();
  }
  if (listener != nullptr) listener->forget(this);
}

void Socket::on_disconnected() {
  std::shared_ptr<Socket> listener;
  {
    const std::lock_guard guard(mutex_);
    if (stage_ == State::connecting) {
      stage_ = State::failed;
      error_ = ECONNRESET;
      listener = listener_.lock();
    } else if (stage_ == State::connected) {
      stream_.serve();  // process messages that arrived before
      stream_.lost(ECONNRESET);
    }
    show();
    served_.notify_all();
  }
  if (listener != nullptr) listener->forget(this);
}

bool Socket::on_completion() {
  if (looks_.are_many()) return false;
  const std::lock_guard guard(mutex_);
  if (stage_ != State::connected) return true;
  stream_.link().arm_received();
  settle();
  served_.notify_all();
  return true;
}

void Socket::queue(std::shared_ptr<Socket> made) {
  const std::lock_guard guard(mutex_);
  std::erase(making_, made);
  if (stage_ != State::listening) return;
  accepted_.push_back(std::move(made));
  show();
}

void Socket::forget(const Socket* made) {
  std::shared_ptr<Socket> last;  // destroyed without the lock
  const std::lock_guard guard(mutex_);
  const auto found =
      std::find_if(making_.begin(), making_.end(), [&](const auto& s) { return s.get() == made; });
  if (found == making_.end()) return;
  last = std::move(*found);
  making_.erase(found);
}

int Socket::accept(std::shared_ptr<Socket>* out) {
  const std::lock_guard guard(mutex_);
  if (stage_ != State::listening) return EINVAL;
  if (accepted_.empty()) return EAGAIN;
  *out = std::move(accepted_.front());
  accepted_.pop_front();
  show();
  return 0;
}

// ---- ending

int Socket::shutdown(int how) {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return EINVAL;
  const std::lock_guard guard(mutex_);
  if (stage_ != State::connected) return ENOTCONN;
  stream_.close(how != SHUT_WR, how != SHUT_RD);
  settle();
  return 0;
}

// Closes both directions, and waits until sent data has gone, or there was no progress for
// `quiet_ms`.
void Socket::finish(std::unique_lock<std::mutex>& lock, int quiet_ms) {
  if (stage_ != State::connected) return;
  stream_.close(true, true);
  std::uint32_t before = 0;
  std::int64_t moved = 0;
  for (;;) {
    stream_.link().arm_sent();
    stream_.serve();
    const std::uint32_t left = stream_.under_way();
    if (left == 0) return;
    if (left != std::exchange(before, left)) moved = now_us();
    if (now_us() - moved >= std::int64_t{quiet_ms} * 1000) return;
    served_.wait_for(lock, std::chrono::milliseconds(20));
  }
}

void Socket::number_lost(int fd) {
  const std::lock_guard guard(mutex_);
  if (mirror_.drop_number(fd)) mirror_.release();
}

void Socket::give_up(int fd) {
  std::unique_lock lock(mutex_);
  if (!mirror_.drop_number(fd)) {
    lock.unlock();
    raw::close(fd);
    return;
  }
  const bool resets = settings_.linger_on != 0 && settings_.linger_s == 0;
  if (!resets) finish(lock, settings_.linger_on != 0 ? settings_.linger_s * 1000 : kQuietMs);
  stage_ = State::closed;
  const auto waiting = std::exchange(accepted_, {});
  const auto unmade = std::exchange(making_, {});
  rdma_cm_id* id = std::exchange(id_, nullptr);
  lock.unlock();
  if (id != nullptr) verbs.destroy_id(id);  // its port must be free when close() returns
  lock.lock();
  stream_.finish();
  mirror_.show_hang_up();
  mirror_.release();
  lock.unlock();
  raw::close(fd);
}

void Socket::also_known_as(int fd) {
  const std::lock_guard guard(mutex_);
  mirror_.add_number(fd);
}

// Threads inside a call hold the lock only briefly. But a call that was interrupted by a signal
// handler which ended the process never continues, so the wait has a limit.
void Socket::leave(int quiet_ms) {
  std::unique_lock lock(mutex_, std::defer_lock);
  const std::int64_t until = now_us() + std::int64_t{quiet_ms} * 1000;
  while (!lock.try_lock()) {
    if (now_us() >= until) return;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  finish(lock, quiet_ms);
}

}  // namespace urnic::rsockets
