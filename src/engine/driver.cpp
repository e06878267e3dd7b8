#include "engine/driver.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace urnic::engine {
namespace {

constexpr int kNapMs = 2;  // how often the thread looks whether the application still polls
constexpr unsigned kMaxFds = 16;

}  // namespace

Instant monotonic_now() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return Instant::from_ns(static_cast<std::int64_t>(ts.tv_sec) * 1000000000 + ts.tv_nsec);
}

Driver::Driver(const DriverOptions& options, Engine* engine, port::Port* port, unsigned queue)
    : options_(options), engine_(engine), port_(port), queue_(queue) {
  wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

Driver::~Driver() {
  stop_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
  if (wake_fd_ >= 0) close(wake_fd_);
}

void Driver::watch(int fd, std::function<void()> service) {
  watch_fd_ = fd;
  service_ = std::move(service);
}

void Driver::start() {
  if (options_.progress == Progress::Poll) return;
  // The caller's signals are the caller's: none is delivered to our thread.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

bool Driver::app_poll() {
  if (options_.progress == Progress::Thread) return false;
  app_polls_.fetch_add(1, std::memory_order_relaxed);
  if (handed_over_.load(std::memory_order_relaxed)) handed_over_ = false;
  if (!lock_.try_lock()) return false;
  bool disarmed = false;
  if (armed_) {  // the thread sleeps; from now on this thread polls
    port_->disarm(queue_);
    armed_ = false;
    disarmed = true;
  }
  const Instant now = monotonic_now();
  const bool any = engine_->poll(now);
  next_deadline_.store(engine_->next_deadline().ns(), std::memory_order_relaxed);
  lock_.unlock();
  // The sleeper no longer has a descriptor that would wake it: it must look again by itself.
  if (disarmed) wake();
  if (options_.progress == Progress::Poll && watch_fd_ >= 0 &&
      now - last_service_ > Duration::ms(50)) {
    last_service_ = now;
    service_watched();
  }
  return any;
}

void Driver::hand_over() {
  if (options_.progress != Progress::Auto) return;
  if (handed_over_.exchange(true)) return;
  if (!sleeping_.load()) wake();
}

void Driver::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(wake_fd_, &one, sizeof one);
}

void Driver::drain_wake() {
  std::uint64_t v;
  [[maybe_unused]] const auto n = ::read(wake_fd_, &v, sizeof v);
}

void Driver::wake_if_late() {
  if (options_.progress == Progress::Poll) return;
  if (!sleeping_.load()) return;
  std::int64_t next;
  {
    const std::lock_guard guard(lock_);
    next = engine_->tx_blocked() ? 0 : engine_->next_deadline().ns();
  }
  if (next < sleep_deadline_.load()) wake();
}

void Driver::service_watched() {
  if (watch_fd_ < 0) return;
  pollfd p{watch_fd_, POLLIN, 0};
  if (::poll(&p, 1, 0) > 0 && service_) service_();
}

int Driver::poll_descriptors(int timeout_ms, bool with_port) {
  pollfd fds[kMaxFds + 2];
  unsigned n = 0;
  fds[n++] = {wake_fd_, POLLIN, 0};
  if (watch_fd_ >= 0) fds[n++] = {watch_fd_, POLLIN, 0};
  if (with_port) {
    int port_fds[kMaxFds];
    const unsigned k = port_->wait_fds(queue_, port_fds, kMaxFds);
    for (unsigned i = 0; i < k; ++i) fds[n++] = {port_fds[i], POLLIN, 0};
  }
  const int r = ::poll(fds, n, timeout_ms);
  if (r > 0) {
    if (fds[0].revents != 0) drain_wake();
    if (watch_fd_ >= 0 && fds[1].revents != 0 && service_) service_();
  }
  return r;
}

void Driver::run() {
  pthread_setname_np(pthread_self(), "urnic");
  std::uint64_t seen = app_polls_.load();
  while (!stop_) {
    const std::uint64_t polls = app_polls_.load(std::memory_order_relaxed);
    if (options_.progress == Progress::Auto && polls != seen && !handed_over_.load()) {
      seen = polls;  // the application drives: look again in a moment
      poll_descriptors(kNapMs, false);
      continue;
    }
    seen = polls;
    drive();
  }
}

// Drive until the application does it again, or we are stopped.
void Driver::drive() {
  const std::uint64_t polls = app_polls_.load(std::memory_order_relaxed);
  const auto application_polls = [&] {
    return options_.progress == Progress::Auto &&
           app_polls_.load(std::memory_order_relaxed) != polls && !handed_over_.load();
  };
  Instant idle_since = monotonic_now(), last_look = idle_since;
  while (!stop_ && !application_polls()) {
    bool any;
    Instant now;
    {
      const std::lock_guard guard(lock_);
      now = monotonic_now();
      any = engine_->poll(now);
    }
    if (now - last_look > Duration::ms(20)) {
      last_look = now;
      service_watched();
    }
    if (any) {
      idle_since = now;
      continue;
    }
    if (now - idle_since < options_.spin) {
      __builtin_ia32_pause();
      continue;
    }
    if (!sleep_until_work()) idle_since = monotonic_now();
    idle_since = monotonic_now();
  }
}

// Arm the port and sleep. False when there was work already.
bool Driver::sleep_until_work() {
  std::int64_t deadline;
  {
    const std::lock_guard guard(lock_);
    if (port_->arm(queue_)) {
      port_->disarm(queue_);
      return false;
    }
    armed_ = true;
    deadline = engine_->next_deadline().ns();
    sleep_deadline_ = deadline;
    sleeping_ = true;
  }
  int timeout = -1;
  if (deadline != Instant::never().ns()) {
    const std::int64_t left = deadline - monotonic_now().ns();
    timeout =
        left <= 0 ? 0 : static_cast<int>(std::min<std::int64_t>((left + 999999) / 1000000, 60000));
  }
  sleeps_.fetch_add(1, std::memory_order_relaxed);
  poll_descriptors(timeout, true);
  sleeping_ = false;
  const std::lock_guard guard(lock_);
  if (armed_) {
    port_->disarm(queue_);
    armed_ = false;
  }
  return true;
}

}  // namespace urnic::engine
