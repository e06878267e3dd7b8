// Drives an engine in real time (D8): the one place where the engine meets a clock and a thread.
//
// Whoever has the ownership drives: the application inside its polls (app_poll), and a thread of
// ours that sleeps on the port's descriptors and the next timer while no poll is going on. A poll
// leaves the port armed for that sleeper, so that what arrives is served by one wake-up whatever
// the application does next. Only while it polls all the time (PollingHabit) is the port not armed:
// the thread then looks now and then whether it still does. An idle engine uses no CPU (E-39).
// Posting never waits: it transmits inline when the engine is free, and otherwise leaves a doorbell
// (ring). The protocol between poll and sleeper: docs/progress.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/mpsc_queue.h"
#include "device/absence.h"
#include "device/event_queue.h"
#include "device/gathering.h"
#include "device/ownership.h"
#include "device/poll_wait.h"
#include "device/polling_habit.h"
#include "device/posting_habit.h"
#include "device/seat.h"
#include "device/watched_descriptors.h"
#include "engine/engine.h"
#include "urnic/status.h"

namespace urnic::device {

using engine::Engine;

// What every call on a device says in a forked child.
Error inherited_error();

enum class Progress : std::uint8_t {
  Auto,    // application and background thread, as needed
  Poll,    // the application alone; nothing moves while it does not poll
  Thread,  // the background thread alone
};

struct DriverOptions {
  Progress progress = Progress::Auto;
  Duration spin;     // how long the thread looks before it sleeps
  Duration lookout;  // how long a thread of the application does in its place, at most
  Duration doze;     // how long a poll in vain sleeps on a core that others need; 0: it keeps it
};

class Driver {
 public:
  Driver(const DriverOptions&, Engine* engine, port::Port* port, unsigned queue);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Extra descriptor the thread watches; `service` runs without ownership when it is readable.
  // Before start().
  void watch(int fd, std::function<void()> service) { watched_.watch(fd, std::move(service)); }
  // Errors: no descriptor to be woken by, no thread.
  Result<void> start();

  // In a child forked since: the engine belongs to the parent, whose thread may have been in the
  // middle of a burst. Nothing here touches it any more (D11).
  bool inherited() const;

  // Run `f(now)` as owner; waits for the current burst of another thread. Inherited: f is not run,
  // the result is an error where it can be one.
  template <class F>
  auto own(F&& f) -> decltype(f(Instant())) {
    if (inherited()) return refused<decltype(f(Instant()))>();
    const Owner owner(this);
    return tried(std::forward<F>(f));
  }
  // Work was posted to `qp`: done now if the engine is free and nothing is gained by waiting for
  // more (gathering.h), else by its owner before anybody could sleep. Never waits. Any thread.
  void ring(verbs::QueuePair& qp);
  // Own, as above, when no doorbell of `qp` is left: it may go afterwards.
  template <class F>
  auto own_last(verbs::QueuePair& qp, F&& f) -> decltype(f(Instant())) {
    if (inherited()) return refused<decltype(f(Instant()))>();
    const Owner owner(this);
    while (qp.rung.load()) {
      answer_doorbells();  // not found at once only while another thread is ringing
      if (qp.rung.load()) std::this_thread::yield();
    }
    return tried(std::forward<F>(f));
  }
  // What CompletionQueue::poll does when it found nothing: one burst, unless another thread drives.
  bool app_poll();
  // The application is about to sleep, whatever it did before: from now on arrivals are the
  // thread's, but for what the one poll between arming a completion queue and sleeping finds.
  void hand_over();
  // The application sleeps until `fd` is readable, or something was served that may have made it
  // so, or `most` has passed (kForEver: it never does): it sits in our thread's place meanwhile, if
  // it is one that waits again and again (seat.h). False: a signal ended it.
  bool wait(int fd, Duration most);
  std::uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }
  bool has_thread() const { return options_.progress != Progress::Poll; }

 private:
  class Owner {
   public:
    explicit Owner(Driver* d) : d_(d) {
      d_->ownership_.take();
      d_->send_gathered();  // what is done now was asked for behind it
    }
    ~Owner() { d_->leave(); }
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;

   private:
    Driver* d_;
  };
  template <class R>
  static R refused() {
    if constexpr (std::is_constructible_v<R, Error>) {
      return R(inherited_error());
    } else {
      return R{};
    }
  }
  template <class F>
  static auto tried(F&& f) -> decltype(f(Instant())) {
    try {
      return f(monotonic_now());
    } catch (const std::bad_alloc&) {
      using R = decltype(f(Instant()));
      if constexpr (std::is_constructible_v<R, Error>) {
        return R(Error{Errc::no_memory, "out of memory"});
      } else {
        return R{};
      }
    }
  }
  bool poll_engine(Instant now, bool comes_back);
  // `*time` is when it begins, and then, if that is some time later, when what it did was done.
  bool poll_and_rearm(Instant* time, bool* rouse);
  // The core of who polls (driver_core.cpp).
  class Core {
   public:
    explicit Core(Driver* driver) : d_(driver) {}
    PollWait::Core after(bool any, Instant now);
    Instant leave(PollWait::Core how, Instant now);

   private:
    bool doze(Instant now);
    Driver* d_;
  };
  void transmit_now(verbs::QueuePair& qp, Instant now);
  void leave_doorbell(verbs::QueuePair& qp);
  bool transmit_or_defer(verbs::QueuePair& qp, Instant now);
  bool gathers(verbs::QueuePair& qp, Instant now);
  void send_gathered();
  bool serve_between_posts(Instant now);
  bool watch_from_now_on();
  void answer_doorbells();
  bool sleeps_too_long() const;
  bool rouse_for_work();
  void leave(bool rouse = false);

  // Where a thread of the application waits.
  enum class Place : std::uint8_t {
    Beside,  // the port is another's
    Seated,  // asleep on the port, and woken by the bell
    Served,  // nowhere: there was work, which is done
  };
  class Sitting;
  Place sit_down(Instant* until);
  Place choose_place(Instant now);
  void be_relieved();
  EventFd& bell() { return seat_.lent() ? seat_.bell() : wake_; }

  void run();
  bool application_drives(Instant now);
  void watch_application();
  void sleep_until_work();
  bool fall_asleep();
  void wake_up();
  unsigned port_descriptors(struct pollfd* fds, unsigned room);
  enum class On : std::uint8_t { Port, Absence };
  void sleep(Duration most, On what);
  static constexpr unsigned kMaxFds = 16;

  DriverOptions options_;
  Engine* engine_;
  port::Port* port_;
  unsigned queue_;
  const std::uint64_t forks_;  // of this process' ancestry when we began
  Ownership ownership_;
  MpscQueue<verbs::QueuePair> doorbells_;
  EventFd wake_;
  WatchedDescriptors watched_;
  std::thread thread_;
  std::atomic<bool> stop_{false};

  // What the thread is doing, or who sits in its place. Written under ownership; read without by
  // hand_over().
  enum class Sleeper : std::uint8_t {
    Awake,     // or woken: it takes the ownership before it sleeps, and sees what is then
    OnPort,    // asleep on the port, which is armed, until asleep_.until
    Watching,  // asleep until the application, which polls or posts all the time, stays away
  };
  std::atomic<Sleeper> sleeper_{Sleeper::Awake};
  std::atomic<bool> announced_{false};      // the application is about to sleep
  std::atomic<std::int64_t> last_seen_{0};  // the application, polling or posting; ns
  std::atomic<std::uint64_t> sleeps_{0};
  // Under ownership.
  struct Caller {
    PollingHabit habit;
    PollWait wait;
    PostingHabit posting;
    Gathering gathering;
    bool comes_back() const { return habit.steady() || posting.streams(); }
    void forget() {
      habit.forget();
      posting.forget();
    }
  } caller_;  // what the application does
  struct Asleep {
    Instant until;
    bool for_room = false;
    bool armed = false;
  } asleep_;
  Instant last_burst_;
  Absence absence_;
  Seat seat_;
};

}  // namespace urnic::device
