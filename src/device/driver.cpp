#include "device/driver.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <system_error>

namespace urnic::engine {
namespace {

constexpr int kNapMs = 2;  // how often the thread looks whether the application still polls
constexpr unsigned kMaxFds = 16;
constexpr Duration kServicePeriod = Duration::ms(50);  // of the watched descriptor, when polled

// Forks between the first device of the family and this process.
std::atomic<std::uint64_t> forks{0};

std::uint64_t count_forks() {
  [[maybe_unused]] static const int once =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return forks.load(std::memory_order_relaxed);
}

}  // namespace

Error inherited_error() {
  return {Errc::closed, "the device belongs to the parent process; open another one after fork"};
}

Instant monotonic_now() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return Instant::from_ns(static_cast<std::int64_t>(ts.tv_sec) * 1000000000 + ts.tv_nsec);
}

Driver::Driver(const DriverOptions& options, Engine* engine, port::Port* port, unsigned queue)
    : options_(options), engine_(engine), port_(port), queue_(queue), forks_(count_forks()) {
  wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

bool Driver::inherited() const {
  return forks.load(std::memory_order_relaxed) != forks_;
}

Driver::~Driver() {
  if (inherited()) {  // the thread is not there, and its descriptors are closed with the others
    if (thread_.joinable()) thread_.detach();
    if (wake_fd_ >= 0) close(wake_fd_);
    return;
  }
  stop_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
  if (wake_fd_ >= 0) close(wake_fd_);
}

void Driver::watch(int fd, std::function<void()> service) {
  watch_fd_ = fd;
  service_ = std::move(service);
}

Result<void> Driver::start() {
  if (wake_fd_ < 0) {
    return Error{Errc::no_memory, "no file descriptor left for the engine (see ulimit -n)"};
  }
  if (options_.progress == Progress::Poll) return {};
  // The caller's signals are the caller's: none is delivered to our thread.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  std::string wrong;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& e) {
    wrong = e.what();
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (!wrong.empty()) return Error{Errc::no_memory, "no thread for the engine: " + wrong};
  return {};
}

// Without memory a burst ends early: what it had not come to is lost as on the wire, and TCP sends
// it again.
bool Driver::poll_engine(Instant now) {
  try {
    return engine_->poll(now);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Driver::attend(verbs::QueuePair& qp, Instant now) {
  try {
    engine_->work_posted(qp, now);
  } catch (const std::bad_alloc&) {
    // What was posted stays posted; the next burst takes it up.
  }
}

bool Driver::app_poll() {
  if (options_.progress == Progress::Thread || inherited()) return false;
  app_polls_.fetch_add(1, std::memory_order_relaxed);
  if (handed_over_.load(std::memory_order_relaxed)) handed_over_ = false;
  if (!ownership_.try_take()) return false;
  bool disarmed = false;
  if (armed_) {  // the thread sleeps; from now on this thread polls
    port_->disarm(queue_);
    armed_ = false;
    disarmed = true;
  }
  const Instant now = monotonic_now();
  const bool any = poll_engine(now);
  give_up();
  // The sleeper no longer has a descriptor that would wake it: it must look again by itself.
  if (disarmed) wake();
  if (options_.progress == Progress::Poll && watch_fd_ >= 0) {
    std::int64_t due = next_service_.load(std::memory_order_relaxed);
    if (now.ns() >= due &&
        next_service_.compare_exchange_strong(due, (now + kServicePeriod).ns())) {
      service_watched();
    }
  }
  return any;
}

void Driver::hand_over() {
  if (options_.progress != Progress::Auto || inherited()) return;
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

void Driver::ring(verbs::QueuePair& qp) {
  if (inherited()) return;
  if (ownership_.try_take()) {
    attend(qp, monotonic_now());
    leave();
    return;
  }
  if (!qp.rung.exchange(true)) doorbells_.push(&qp);
  ownership_.rang();
  if (ownership_.try_take()) {  // the owner may have gone without seeing it
    answer_doorbells();
    leave();
  }
}

void Driver::answer_doorbells() {
  ownership_.answer();
  const Instant now = monotonic_now();
  while (verbs::QueuePair* qp = doorbells_.pop()) {
    qp->rung.exchange(false);  // first: what is posted from now on rings again
    attend(*qp, now);
  }
}

// The thread sleeps past a deadline that what was done as owner has set.
bool Driver::sleeps_too_long() const {
  if (!sleeping_.load(std::memory_order_relaxed)) return false;
  const std::int64_t next = engine_->tx_blocked() ? 0 : engine_->next_deadline().ns();
  return next < sleep_deadline_.load(std::memory_order_relaxed);
}

// End of an ownership that may have given the engine something to do later.
void Driver::leave() {
  const bool late = sleeps_too_long();
  give_up();
  if (late) wake();
}

// End of an ownership after which this thread looks at the engine's deadlines itself.
void Driver::give_up() {
  while (ownership_.give_up() && ownership_.try_take()) {
    answer_doorbells();
    if (sleeps_too_long()) wake();
  }
}

void Driver::service_watched() {
  if (watch_fd_ < 0 || serving_.test_and_set()) return;
  pollfd p{watch_fd_, POLLIN, 0};
  if (::poll(&p, 1, 0) > 0 && service_) service_();
  serving_.clear();
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
    if (watch_fd_ >= 0 && fds[1].revents != 0) service_watched();
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
    if (ownership_.wanted()) std::this_thread::yield();
    ownership_.take();
    const Instant now = monotonic_now();
    const bool any = poll_engine(now);
    give_up();
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
  ownership_.take();
  if (port_->arm(queue_)) {
    port_->disarm(queue_);
    give_up();
    return false;
  }
  armed_ = true;
  deadline = engine_->next_deadline().ns();
  sleep_deadline_ = deadline;
  sleeping_ = true;
  give_up();
  int timeout = -1;
  if (deadline != Instant::never().ns()) {
    const std::int64_t left = deadline - monotonic_now().ns();
    timeout =
        left <= 0 ? 0 : static_cast<int>(std::min<std::int64_t>((left + 999999) / 1000000, 60000));
  }
  sleeps_.fetch_add(1, std::memory_order_relaxed);
  poll_descriptors(timeout, true);
  ownership_.take();
  sleeping_ = false;
  if (armed_) {
    port_->disarm(queue_);
    armed_ = false;
  }
  give_up();
  return true;
}

}  // namespace urnic::engine
