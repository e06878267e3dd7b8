#include "rsockets/service.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "rsockets/socket.h"
#include "rsockets/verbs_calls.h"

namespace urnic::rsockets {
namespace {

// How soon a socket is served again after it was left to a program that polls by itself.
constexpr int kAgainMs = 1;

std::atomic<Service*> current{nullptr};
std::mutex making;

// A child has none of the parent's threads, and the locks may be taken: it creates its own service.
void forget_parent() {
  current.store(nullptr);
  new (&making) std::mutex;
}

int make_non_blocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ? errno : 0;
}

// The error of a failed connection for its program.
int error_of(const rdma_cm_event& e) {
  if (e.event == RDMA_CM_EVENT_REJECTED) return ECONNREFUSED;
  return e.status == 0 ? ECONNREFUSED : e.status < 0 ? -e.status : e.status;
}

}  // namespace

Service& Service::get() {
  Service* s = current.load();
  if (s != nullptr) return *s;
  const std::lock_guard guard(making);
  s = current.load();
  if (s != nullptr) return *s;
  static const int hooked = pthread_atfork(nullptr, nullptr, forget_parent);
  (void)hooked;
  s = new Service;
  current.store(s);
  return *s;
}

int Service::start() {
  const std::lock_guard guard(mutex_);
  if (started_) return 0;
  if (events_ == nullptr) events_ = verbs.create_event_channel();
  if (events_ == nullptr) return errno;
  if (watched_ < 0) watched_ = epoll_create1(EPOLL_CLOEXEC);
  if (watched_ < 0) return errno;
  if (const int e = watch(events_->fd); e != 0) return e;
  const int e = verbs.start(*this);
  started_ = e == 0;
  return e;
}

// From now on the thread takes the events of `fd`; calling it again has no effect.
int Service::watch(int fd) const {
  if (const int e = make_non_blocking(fd); e != 0) return e;
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  return epoll_ctl(watched_, EPOLL_CTL_ADD, fd, &wanted) == 0 || errno == EEXIST ? 0 : errno;
}

ibv_comp_channel* Service::completions(ibv_context* context) {
  const std::lock_guard guard(mutex_);
  for (ibv_comp_channel* channel : completions_) {
    if (channel->context == context) return channel;
  }
  completions_.reserve(completions_.size() + 1);
  ibv_comp_channel* channel = verbs.create_comp_channel(context);
  if (channel == nullptr) return nullptr;
  if (const int e = watch(channel->fd); e != 0) {
    verbs.destroy_comp_channel(channel);
    errno = e;
    return nullptr;
  }
  completions_.push_back(channel);
  return channel;
}

void* Service::add(std::weak_ptr<Socket> socket) {
  const std::lock_guard guard(mutex_);
  sockets_.emplace(++last_, std::move(socket));
  return reinterpret_cast<void*>(last_);
}

void Service::remove(const void* cookie) {
  const std::lock_guard guard(mutex_);
  sockets_.erase(reinterpret_cast<std::uint64_t>(cookie));
}

std::shared_ptr<Socket> Service::find(const void* cookie) {
  const std::lock_guard guard(mutex_);
  const auto found = sockets_.find(reinterpret_cast<std::uint64_t>(cookie));
  return found == sockets_.end() ? nullptr : found->second.lock();
}

// Signals belong to the program: block them in our thread.
int start_thread(Service& service) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int error = 0;
  try {
    std::thread([&service] { service.run(); }).detach();
  } catch (const std::system_error&) {
    error = EAGAIN;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return error;
}

void Service::run() {
  pthread_setname_np(pthread_self(), "urnic-rsockets");
  for (;;) {
    epoll_event any;
    (void)epoll_wait(watched_, &any, 1, busy_.empty() ? -1 : kAgainMs);
    try {
      serve();
    } catch (const std::exception&) {
      // Without memory an event is lost, as on a device that has no room for it.
    }
  }
}

void Service::serve() {
  while (take_event()) {
  }
  ask_again();
  for (std::size_t i = 0; ibv_comp_channel* channel = nth_channel(i); ++i) {
    while (take_completion(channel)) {
    }
  }
}

Service* Service::replace(Service* other) {
  return current.exchange(other);
}

Service::~Service() {
  for (ibv_comp_channel* channel : completions_) verbs.destroy_comp_channel(channel);
  if (watched_ >= 0) close(watched_);
}

std::size_t Service::known() {
  const std::lock_guard guard(mutex_);
  return sockets_.size();
}

bool Service::take_event() {
  rdma_cm_event* event = nullptr;
  if (verbs.get_cm_event(events_, &event) != 0) return false;
  const rdma_cm_event e = *event;
  const rdma_conn_param& conn = e.param.conn;
  std::array<char, 255> kept;
  std::size_t length = 0;
  if (conn.private_data != nullptr) {
    length = conn.private_data_len;
    std::memcpy(kept.data(), conn.private_data, length);
  }
  const std::string_view said(kept.data(), length);
  const bool is_request = e.event == RDMA_CM_EVENT_CONNECT_REQUEST;
  const auto socket = find(is_request ? e.listen_id->context : e.id->context);
  verbs.ack_cm_event(event);  // after this the identifier may be destroyed
  if (is_request && socket == nullptr) verbs.destroy_id(e.id);
  if (socket == nullptr) return true;
  switch (e.event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      socket->on_request(e.id, said);
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
      socket->on_established(said);
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      socket->on_disconnected();
      break;
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
      socket->on_failed(error_of(e));
      break;
    default:
      break;
  }
  return true;
}

void Service::ask_again() {
  for (void* cookie : std::exchange(busy_, {})) {
    const auto socket = find(cookie);
    if (socket != nullptr && !socket->on_completion()) busy_.insert(cookie);
  }
}

// Null after the last one.
ibv_comp_channel* Service::nth_channel(std::size_t i) {
  const std::lock_guard guard(mutex_);
  return i < completions_.size() ? completions_[i] : nullptr;
}

bool Service::take_completion(ibv_comp_channel* channel) {
  ibv_cq* cq = nullptr;
  void* cookie = nullptr;
  if (verbs.get_cq_event(channel, &cq, &cookie) != 0) return false;
  verbs.ack_cq_events(cq, 1);  // after this the queue may be destroyed
  const auto socket = find(cookie);
  if (socket != nullptr && !socket->on_completion()) busy_.insert(cookie);
  return true;
}

}  // namespace urnic::rsockets
