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

#include "device/forked.h"
#include "device/nap.h"

namespace urnic::device {
namespace {

// How long what arrives may lie while a thread posts without a pause.
constexpr Duration kMostUnserved = Duration::us(200);
constexpr std::int64_t kInside = std::numeric_limits<std::int64_t>::max();  // a poll goes on

// A woken thread goes before one that has run for long if the slice it asks for is short (Linux
// 6.12 on; others refuse, or know of none, which does no harm). Without it a program that spins on
// memory would keep the core for milliseconds.
void ask_for_short_slice() {
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
  syscall(SYS_sched_setattr, 0, &a, 0);
}

// Forks between the first device of the family and this process.
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
  if (inherited()) {  // the thread is not there, and its descriptors are closed with the others
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
  // The caller's signals are the caller's: none is delivered to our thread.
  sigset_t all, old;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS}) sigdelset(&all, fault);  // guarded accesses
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

// Without memory a burst ends early: what it had not come to is lost as on the wire, and TCP sends
// it again.
bool Driver::poll_engine(Instant now, bool comes_back) {
  last_burst_ = now;
  try {
    return engine_->poll(now, comes_back);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Driver::transmit_now(verbs::QueuePair& qp, Instant now) {
  try {
    engine_->work_posted(qp, now);
  } catch (const std::bad_alloc&) {
    // What was posted stays posted; the next burst takes it up.
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

// The application's burst. Behind it the sleeper is as it must be: awake, or asleep on a port that
// wakes it, or watching an application that polls all the time. `rouse`: it is to be woken.
bool Driver::poll_and_rearm(Instant* time, bool* rouse) {
  const Instant now = *time;
  const std::uint64_t long_polls = engine_->counters().long_polls;
  // Who polls all the time is back before an ACK is late; else the thread, which watches, is (E-7).
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
    } else if (any && port_->arm(queue_)) {  // more came meanwhile
      any |= poll_engine(now, false);
      *rouse = port_->arm(queue_);
    }
  }
  if (*rouse) sleeper_ = Sleeper::Awake;
  return any;
}

// The thread, asleep on the port, is woken to watch an application that comes back all the time.
bool Driver::watch_from_now_on() {
  port_->disarm(queue_);
  asleep_.armed = false;
  sleeper_ = Sleeper::Awake;
  return true;
}

void Driver::hand_over() {
  if (options_.progress != Progress::Auto || inherited()) return;
  // Either we see the thread watching, or it sees this before it sleeps.
  if (announced_.exchange(true)) return;
  if (sleeper_.load() == Sleeper::Watching) wake_.signal();
}

void Driver::ring(verbs::QueuePair& qp) {
  if (inherited()) return;
  if (ownership_.try_take()) {
    const Instant now = monotonic_now();
    leave(transmit_or_defer(qp, now));
    return;
  }
  leave_doorbell(qp);
  ownership_.rang();
  if (ownership_.try_take()) {  // the owner may have gone without seeing it
    answer_doorbells();
    leave();
  }
}

void Driver::leave_doorbell(verbs::QueuePair& qp) {
  if (!qp.rung.exchange(true)) doorbells_.push(&qp);
}

// The doorbell of the application's thread, which has the engine. True: wake the sleeper.
bool Driver::transmit_or_defer(verbs::QueuePair& qp, Instant now) {
  caller_.habit.post(now);
  if (options_.progress == Progress::Auto && engine_->over_kernel_tcp()) {
    caller_.posting.post(now);
    last_seen_.store(now.ns(), std::memory_order_relaxed);
    if (sleeper_.load(std::memory_order_relaxed) == Sleeper::Watching) absence_.seen(now);
  }
  if (gathers(qp, now)) {
    leave_doorbell(qp);
    return false;
  }
  send_gathered();
  transmit_now(qp, now);
  caller_.gathering.sent();
  if (caller_.posting.streams() && sleeper_.load(std::memory_order_relaxed) == Sleeper::OnPort) {
    return watch_from_now_on();
  }
  return serve_between_posts(now);
}

// Whether a doorbell may wait for those behind it.
bool Driver::gathers(verbs::QueuePair& qp, Instant now) {
  if (!engine_->over_kernel_tcp() || !caller_.comes_back() ||
      sleeper_.load(std::memory_order_relaxed) != Sleeper::Watching) {
    return false;
  }
  if (qp.state != verbs::QpState::Rts || qp.starved.load(std::memory_order_relaxed)) return false;
  const std::uint32_t tail = qp.sq.tail(), waiting = tail - qp.sq.started();
  return waiting != 0 && caller_.gathering.keeps(waiting, qp.sq.wqe(tail - 1).length, now);
}

void Driver::send_gathered() {
  if (caller_.gathering.any()) answer_doorbells();
}

// A thread that posts without a pause has the engine nearly all the time, and perhaps the core too:
// the one whose turn it is to serve arrivals may wait for milliseconds. True: wake the sleeper.
bool Driver::serve_between_posts(Instant now) {
  if (now - last_burst_ < kMostUnserved) return false;
  const bool any = poll_engine(now, false);
  if (sleeper_.load(std::memory_order_relaxed) != Sleeper::OnPort) return false;
  if (!any || !port_->arm(queue_)) return false;
  sleeper_ = Sleeper::Awake;  // more came meanwhile
  return true;
}

void Driver::answer_doorbells() {
  ownership_.answer();
  const Instant now = monotonic_now();
  while (verbs::QueuePair* qp = doorbells_.pop()) {
    qp->rung.exchange(false);  // first: what is posted from now on rings again
    transmit_now(*qp, now);
  }
  caller_.gathering.sent();
}

// The thread sleeps on the port past something that has come up since.
bool Driver::sleeps_too_long() const {
  if (engine_->has_more_to_send()) return true;
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

// End of an ownership, which may have given the engine something to do later. Nobody is left
// behind: who rang meanwhile is answered, and the sleeper knows.
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
  ask_for_short_slice();
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
    const bool any = poll_engine(now, false);
    leave();
    watched_.serve_when_due(now);
    if (any) {
      idle_since = now;
    } else if (now - idle_since < options_.spin) {
      __builtin_ia32_pause();
    } else {
      sleep_until_work();
      idle_since = monotonic_now();
    }
  }
}

// Under ownership. What it did a while ago is forgotten.
bool Driver::application_drives(Instant now) {
  if (options_.progress != Progress::Auto || !caller_.comes_back()) return false;
  if (announced_.load()) return false;
  if (now.ns() - last_seen_.load(std::memory_order_relaxed) < PollingHabit::kPause.count_ns()) {
    return true;
  }
  caller_.forget();
  return false;
}

// Until the application no longer polls all the time. It may have been kept from putting the alarm
// off in time: then it is watched anew.
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

// Arm the port and sleep, unless there is work already.
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

// Whoever is to sleep on the port: all is noted that could come up before it must wake. False:
// there is work. Under ownership, as wake_up(), which is the other end of it.
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
