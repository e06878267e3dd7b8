#include "device/driver.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string>
#include <system_error>

#include "base/spinlock.h"
#include "device/forked.h"
#include "device/nap.h"

namespace urnic::device {
namespace {

// How long arrivals may wait while a thread posts without a pause.
constexpr Duration kMostUnserved = Duration::us(200);
constexpr std::int64_t kInside = std::numeric_limits<std::int64_t>::max();  // a poll is in progress

// The thread does what the kernel does in interrupts for its own TCP, so it should run when it is
// woken, also on the core of a program that spins on memory and would keep it for milliseconds. It
// asks for a higher priority, which needs a right (RLIMIT_NICE), and for a short slice, because
// Linux (6.12 on) runs a woken thread with a short slice before one that has run for long. Kernels
// that refuse or ignore this do no harm.
void ask_to_run_when_woken() {
  struct Attributes {  // of sched_setattr(2), version 0
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } a{};
  static_assert(sizeof a == 48);
  if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) != 0) return;
  if (a.policy != SCHED_OTHER && a.policy != SCHED_BATCH) return;
  a.runtime = 100'000;  // ns
  const std::int32_t own = a.nice;
  a.nice = std::min(own, Driver::kNice);
  if (syscall(SYS_sched_setattr, 0, &a, 0) == 0) return;
  a.nice = own;
  syscall(SYS_sched_setattr, 0, &a, 0);
}

// Number of forks between the first device of the process family and this process.
std::atomic<std::uint64_t> forks{0};

std::uint64_t count_forks() {
  [[maybe_unused]] static const int once = pthread_atfork(nullptr, nullptr, [] {
    forks.fetch_add(1, std::memory_order_relaxed);
    let_private_descriptors_go();
  });
  return forks.load(std::memory_order_relaxed);
}

}  // namespace

Error inherited_error() {
  return {Errc::closed,
          "the device belongs to the parent process: open the device again after fork"};
}

Driver::Driver(const DriverOptions& options, Engine* engine, port::Port* port, unsigned queue)
    : options_(options),
      engine_(engine),
      port_(port),
      queue_(queue),
      forks_(count_forks()),
      seat_(options.lookout) {}

bool Driver::inherited() const {
  return forks.load(std::memory_order_relaxed) != forks_;
}

Driver::~Driver() {
  if (inherited()) {  // the child has no such thread, and its descriptors are closed already
    if (thread_.joinable()) thread_.detach();
    return;
  }
  stop_ = true;
  wake_.signal();
  if (thread_.joinable()) thread_.join();
}

Result<void> Driver::start() {
  if (wake_.get() < 0 || absence_.fd() < 0) {
    return Error{Errc::no_descriptors,
                 "cannot create the engine: no file descriptor left (see ulimit -n)"};
  }
  if (options_.progress == Progress::Poll) return {};
  // Signals belong to the caller: block them in our thread.
  sigset_t all, old;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS}) sigdelset(&all, fault);  // needed for guarded accesses
  pthread_sigmask(SIG_SETMASK, &all, &old);
  const char* wrong = nullptr;
  Errc code = Errc::unavailable;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& e) {
    wrong = e.code() == std::errc::resource_unavailable_try_again
                ? "the limit of threads is reached (see ulimit -u)"
                : "the system refused it";
  } catch (const std::bad_alloc&) {
    wrong = "out of memory";
    code = Errc::no_memory;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (wrong != nullptr) {
    return Error{code, std::string("cannot start the thread of the engine: ") + wrong};
  }
  return {};
}

// Without memory a burst ends early: frames that it had not processed are lost as on the wire, and
// TCP retransmits them.
bool Driver::poll_engine(Instant now, bool comes_back) {
  last_burst_ = now;
  try {
    const bool any = engine_->poll(now, comes_back);
    if (any) watched_.active();
    return any;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// A burst of the sleeper, for an application that does not poll.
bool Driver::serve_arrivals(Instant now) {
  const bool any = poll_engine(now, false);
  if (any) caller_.posting.served();
  return any;
}

void Driver::answer(verbs::QueuePair& qp, std::uint8_t posted, Instant now) {
  watched_.active();
  try {
    engine_->work_posted(qp, posted, now);
  } catch (const std::bad_alloc&) {
    // The request stays posted; the next burst sends it.
  }
}

bool Driver::app_poll() {
  if (options_.progress == Progress::Thread || inherited()) return false;
  if (!ownership_.try_take()) return false;
  const Instant now = monotonic_now();
  last_seen_.store(kInside, std::memory_order_relaxed);
  caller_.habit.begin(now);
  caller_.posting.look(now);
  if (announced_.load(std::memory_order_relaxed)) {
    announced_.store(false, std::memory_order_relaxed);
    caller_.forget();
  }
  send_gathered();
  caller_.gathering.polled();
  if (sleeper_.load(std::memory_order_relaxed) == Sleeper::Watching) absence_.seen(now);
  bool rouse = false;
  Instant ended = now;
  const bool any = poll_and_rearm(&ended, &rouse);
  Core core(this);
  const PollWait::Core how = core.after(any, now);
  leave(rouse);
  if (how != PollWait::Core::Kept) ended = core.leave(how, now);
  last_seen_.store(ended.ns(), std::memory_order_relaxed);
  if (options_.progress == Progress::Poll) watched_.serve_when_due(now);
  return any;
}

// A burst of the application. After it the sleeper is in the right state: awake, or asleep on a
// port that wakes it, or watching an application that polls all the time. `rouse`: the caller must
// wake it.
bool Driver::poll_and_rearm(Instant* time, bool* rouse) {
  const Instant now = *time;
  const std::uint64_t long_polls = engine_->counters().long_polls;
  // If the application polls all the time, it polls again before a delayed ACK is due; if it stops,
  // the watching thread sends the ACK (E-7).
  bool any = poll_engine(now, caller_.habit.steady());
  if (any && engine_->counters().long_polls != long_polls) {
    *time = monotonic_now();
    caller_.habit.end(*time);
  }
  const Sleeper sleeper = sleeper_.load(std::memory_order_relaxed);
  if (sleeper == Sleeper::Watching) *rouse = !caller_.comes_back();
  if (sleeper == Sleeper::OnPort) {
    if (caller_.habit.steady()) {
      *rouse = watch_from_now_on();
    } else if (any && port_->arm(queue_)) {  // more frames arrived meanwhile
      any |= poll_engine(now, false);
      *rouse = port_->arm(queue_);
    }
  }
  if (*rouse) sleeper_ = Sleeper::Awake;
  return any;
}

// Wakes the thread, asleep on the port, to watch an application that polls or posts all the time.
bool Driver::watch_from_now_on() {
  port_->disarm(queue_);
  asleep_.armed = false;
  sleeper_ = Sleeper::Awake;
  return true;
}

void Driver::hand_over() {
  if (options_.progress != Progress::Auto || inherited()) return;
  // Either we see that the thread is watching, or the thread sees this flag before it sleeps.
  if (announced_.exchange(true)) return;
  if (sleeper_.load() == Sleeper::Watching) wake_.signal();
}

// Bytes that the newest request sends. A Read or an atomic sends only its own few.
static std::uint32_t bytes_of_newest(const verbs::QueuePair& qp) {
  const verbs::SendWqe& w = qp.sq.wqe(qp.sq.tail() - 1);
  return verbs::awaits_response(w.op) ? 0 : w.length;
}

// Most posts of a stream: a doorbell of the queue pair that is kept for later ones covers the new
// request too. Some posts check the number and the age of the requests kept instead.
static bool joins_kept(const verbs::QueuePair& qp) {
  if (qp.rung.load(std::memory_order_relaxed) == 0) return false;
  return !Gathering::looks(qp.sq.tail(), bytes_of_newest(qp));
}

void Driver::ring(verbs::QueuePair& qp, verbs::Posted what) {
  if (inherited()) return;
  if (what == verbs::kPostedSends && joins_kept(qp)) {
    if (!doorbells_.leave(qp, what)) return;
  } else if (ownership_.try_take()) {
    const Instant now = monotonic_now();
    leave(answer_or_defer(qp, what, now));
    return;
  } else {
    doorbells_.leave(qp, what);
  }
  ownership_.rang();
  if (ownership_.try_take()) {  // the owner may have left without seeing the doorbell
    answer_doorbells();
    leave();
  }
}

// Handles a doorbell of the thread that owns the engine. Returns true if the sleeper must be woken.
bool Driver::answer_or_defer(verbs::QueuePair& qp, verbs::Posted what, Instant now) {
  caller_.habit.post(now);
  if (options_.progress != Progress::Thread) {
    caller_.posting.post(now);
    last_seen_.store(now.ns(), std::memory_order_relaxed);
    if (sleeper_.load(std::memory_order_relaxed) == Sleeper::Watching) absence_.seen(now);
  }
  if (what == verbs::kPostedSends && gathers(qp, now)) {
    doorbells_.leave(qp, what);
    return false;
  }
  send_gathered();
  answer(qp, what, now);
  caller_.gathering.sent(1);
  if (caller_.posting.streams() && sleeper_.load(std::memory_order_relaxed) == Sleeper::OnPort) {
    return watch_from_now_on();
  }
  return serve_between_posts(now);
}

// True if the doorbell of a Send may wait for later ones.
bool Driver::gathers(verbs::QueuePair& qp, Instant now) {
  if (!caller_.comes_back()) return false;
  if (sleeper_.load(std::memory_order_relaxed) == Sleeper::OnPort) return false;
  if (qp.state != verbs::QpState::Rts) return false;
  const std::uint32_t waiting = qp.sq.tail() - qp.sq.started();
  return waiting != 0 && caller_.gathering.keeps(waiting, bytes_of_newest(qp), now);
}

void Driver::send_gathered() {
  if (caller_.gathering.any()) answer_doorbells();
}

// A thread that posts without a pause owns the engine nearly all the time, and perhaps the core:
// our thread may wait for milliseconds to serve arrivals. Returns true if the sleeper must be
// woken.
bool Driver::serve_between_posts(Instant now) {
  if (now - last_burst_ < kMostUnserved) return false;
  const bool any = poll_engine(now, false);
  if (sleeper_.load(std::memory_order_relaxed) != Sleeper::OnPort) return false;
  if (!any || !port_->arm(queue_)) return false;
  sleeper_ = Sleeper::Awake;  // more frames arrived meanwhile
  return true;
}

void Driver::answer_doorbells() {
  ownership_.answer();
  const Instant now = monotonic_now();
  std::uint8_t posted = 0;
  std::uint32_t requests = 0;
  while (verbs::QueuePair* const qp = doorbells_.take(&posted)) {
    requests += qp->sq.tail() - qp->sq.started();
    answer(*qp, posted, now);
  }
  caller_.gathering.sent(requests);
}

// True if the thread sleeps on the port although new work is due earlier.
bool Driver::sleeps_too_long() const {
  if (engine_->has_more_to_send() || caller_.gathering.any()) return true;
  if (engine_->waits_for_room() && !asleep_.for_room) return true;
  return engine_->next_deadline() < asleep_.until;
}

bool Driver::rouse_for_work() {
  if (sleeper_.load(std::memory_order_relaxed) != Sleeper::OnPort || !sleeps_too_long()) {
    return false;
  }
  sleeper_ = Sleeper::Awake;
  return true;
}

// Releases the ownership. If the engine has something to do later than the sleeper knew, the
// sleeper is woken; doorbells that rang meanwhile are answered.
void Driver::leave(bool rouse) {
  rouse |= rouse_for_work();
  EventFd* whose = &bell();
  while (ownership_.give_up() && ownership_.try_take()) {
    answer_doorbells();
    rouse |= rouse_for_work();
    whose = &bell();
  }
  if (rouse) whose->signal();
}

// ---- the thread

void Driver::run() {
  pthread_setname_np(pthread_self(), "urnic");
  ask_to_run_when_woken();
  Instant idle_since = monotonic_now();
  while (!stop_) {
    if (ownership_.wanted()) std::this_thread::yield();
    ownership_.take();
    const Instant now = monotonic_now();
    send_gathered();
    if (seat_.lent()) {
      leave();
      be_relieved();
      continue;
    }
    if (application_drives(now)) {
      sleeper_ = Sleeper::Watching;
      leave();
      watch_application();
      continue;
    }
    const bool any = serve_arrivals(now);
    leave();
    watched_.serve_when_due(now);
    if (any) {
      idle_since = now;
    } else if (now - idle_since < options_.spin) {
      cpu_relax();
    } else {
      sleep_until_work();
      idle_since = monotonic_now();
    }
  }
}

// Needs the ownership. Activity that is too old does not count.
bool Driver::application_drives(Instant now) {
  if (options_.progress != Progress::Auto || !caller_.comes_back()) return false;
  if (announced_.load()) return false;
  if (now.ns() - last_seen_.load(std::memory_order_relaxed) < PollingHabit::kPause.count_ns()) {
    return true;
  }
  caller_.forget();
  return false;
}

// Watches until the application no longer polls all the time. If the alarm fires although the
// application is still active, because it could not postpone the alarm in time, the watch starts
// again.
void Driver::watch_application() {
  while (!stop_ && sleeper_.load() == Sleeper::Watching && !announced_.load() &&
         monotonic_now().ns() - last_seen_.load(std::memory_order_relaxed) <
             PollingHabit::kPause.count_ns()) {
    ownership_.take();
    absence_.begin(monotonic_now());
    leave();
    sleep(kForEver, On::Absence);
    sleeps_.fetch_add(1, std::memory_order_relaxed);
  }
  ownership_.take();
  if (!seat_.lent()) sleeper_ = Sleeper::Awake;
  leave();
}

// Arms the port and sleeps, unless there is work already.
void Driver::sleep_until_work() {
  ownership_.take();
  if (seat_.lent() || !fall_asleep()) {
    leave();
    return;
  }
  const Instant until = asleep_.until;
  leave();
  sleeps_.fetch_add(1, std::memory_order_relaxed);
  sleep(left_until(until), On::Port);
  ownership_.take();
  if (!seat_.lent()) wake_up();
  leave();
}

// Prepares to sleep on the port: records the conditions under which the sleeper must be woken.
// Returns false if there is work. Needs the ownership; wake_up() is the counterpart.
bool Driver::fall_asleep() {
  asleep_.armed = !port_->arm(queue_);
  if (!asleep_.armed) {
    port_->disarm(queue_);
    return false;
  }
  asleep_.for_room = engine_->waits_for_room();
  asleep_.until = engine_->next_deadline();
  sleeper_ = Sleeper::OnPort;
  return true;
}

void Driver::wake_up() {
  sleeper_ = Sleeper::Awake;
  if (asleep_.armed) port_->disarm(queue_);
  asleep_.armed = false;
}

unsigned Driver::port_descriptors(pollfd* fds, unsigned room) {
  int port_fds[kMaxFds];
  const unsigned n = port_->wait_fds(queue_, port_fds, std::min(kMaxFds, room));
  for (unsigned i = 0; i < n; ++i) fds[i] = {port_fds[i], POLLIN, 0};
  return n;
}

void Driver::sleep(Duration most, On what) {
  pollfd fds[kMaxFds + 2 + WatchedDescriptors::kMost];
  unsigned n = 0;
  fds[n++] = {wake_.get(), POLLIN, 0};
  n += watched_.add_to(fds + n);
  if (what == On::Absence) fds[n++] = {absence_.fd(), POLLIN, 0};
  if (what == On::Port) n += port_descriptors(fds + n, kMaxFds);
  if (::ppoll(fds, n, Nap(most).get(), nullptr) <= 0) return;
  if (fds[0].revents != 0) wake_.clear();
  watched_.serve();
}

}  // namespace urnic::device
