// Drives an engine in real time (D8): only here the engine meets a clock and a thread.
//
// The owner drives: the application inside its polls (app_poll), or our own thread, which sleeps on
// the port's descriptors and the next timer while no poll is in progress. A poll leaves the port
// armed for the sleeping thread, so that one wake-up serves an arrival whatever the application
// does next. Only while the application polls all the time (PollingHabit) is the port not armed:
// then the thread checks now and then whether it still does. An idle engine uses no CPU (E-39).
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
#include "device/absence.h"
#include "device/doorbells.h"
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

// The error of every call on a device in a forked child.
Error inherited_error();

enum class Progress : std::uint8_t {
  Auto,    // application and background thread, as needed
  Poll,    // only the application; nothing moves while it does not poll
  Thread,  // only the background thread
};

struct DriverOptions {
  Progress progress = Progress::Auto;
  Duration spin;     // how long our thread polls before it sleeps
  Duration lookout;  // how long an application thread in its place polls, at most
  // how long a poll without result sleeps on a core that other threads need; 0: it does not sleep
  Duration doze;
};

class Driver {
 public:
  static constexpr std::int32_t kNice = -10;  // of its thread, where the right is there
  Driver(const DriverOptions&, Engine* engine, port::Port* port, unsigned queue);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // The descriptors that the thread watches besides the port. Add to them before start().
  WatchedDescriptors& watched() { return watched_; }
  // Errors: no descriptor for waking up, no thread.
  Result<void> start();

  // True in a child forked since: the engine belongs to the parent, whose thread may have been in
  // the middle of a burst. The child does not touch the engine any more (D11).
  bool inherited() const;

  // Runs `f(now)` as owner; waits for the current burst of another thread. In a forked child f is
  // not run, and the result is an error if its type allows one.
  template <class F>
  auto own(F&& f) -> decltype(f(Instant())) {
    if (inherited()) return refused<decltype(f(Instant()))>();
    const Owner owner(this);
    return tried(std::forward<F>(f));
  }
  // Reports that work was posted to `qp`. It is handled now if the engine is free and waiting for
  // more posts has no benefit (gathering.h), otherwise by the owner before any thread could sleep.
  // Never waits. Any thread.
  void ring(verbs::QueuePair& qp, verbs::Posted what);
  // Like own(), but runs when no doorbell of `qp` is left: `qp` may be destroyed afterwards.
  template <class F>
  auto own_last(verbs::QueuePair& qp, F&& f) -> decltype(f(Instant())) {
    if (inherited()) return refused<decltype(f(Instant()))>();
    const Owner owner(this);
    while (qp.rung.load() != 0) {
      answer_doorbells();  // finds none only while another thread is ringing
      if (qp.rung.load() != 0) std::this_thread::yield();
    }
    return tried(std::forward<F>(f));
  }
  // Runs one burst, unless another thread drives. CompletionQueue::poll calls it when it found
  // nothing.
  bool app_poll();
  // The application is about to sleep, whatever it did before: from now on our thread serves
  // arrivals, except those found by the one poll between arming a completion queue and sleeping.
  void hand_over();
  // The application sleeps until `fd` is readable, or something was served that may have made it
  // readable, or `most` has passed (kForEver: without limit). An application that waits again and
  // again takes the place of our thread meanwhile (seat.h). False: a signal ended the sleep.
  bool wait(int fd, Duration most);
  std::uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }
  bool has_thread() const { return options_.progress != Progress::Poll; }

 private:
  class Owner {
   public:
    explicit Owner(Driver* d) : d_(d) {
      d_->ownership_.take();
      d_->send_gathered();  // requests posted earlier go first
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
  bool serve_arrivals(Instant now);
  // `*time` is the start of the burst; if the burst takes noticeable time, it is set to the end.
  bool poll_and_rearm(Instant* time, bool* rouse);
  // The core of the polling application (driver_core.cpp).
  class Core {
   public:
    explicit Core(Driver* driver) : d_(driver) {}
    PollWait::Core after(bool any, Instant now);
    Instant leave(PollWait::Core how, Instant now);

   private:
    bool doze(Instant now);
    Driver* d_;
  };
  void answer(verbs::QueuePair& qp, std::uint8_t posted, Instant now);
  bool answer_or_defer(verbs::QueuePair& qp, verbs::Posted what, Instant now);
  bool gathers(verbs::QueuePair& qp, Instant now);
  void send_gathered();
  bool serve_between_posts(Instant now);
  bool watch_from_now_on();
  void answer_doorbells();
  bool sleeps_too_long() const;
  bool rouse_for_work();
  void leave(bool rouse = false);

  // The place where an application thread waits.
  enum class Place : std::uint8_t {
    Beside,  // another thread is on the port
    Seated,  // asleep on the port, and woken by the bell
    Served,  // not waiting: there was work, which is done
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
  const std::uint64_t forks_;  // number of forks in this process' ancestry at construction
  Ownership ownership_;
  Doorbells doorbells_;
  EventFd wake_;
  WatchedDescriptors watched_;
  std::thread thread_;
  std::atomic<bool> stop_{false};

  // State of the thread, or of the application thread in its place. Written under ownership;
  // hand_over() reads it without.
  enum class Sleeper : std::uint8_t {
    Awake,     // or woken: it takes the ownership before it sleeps, and sees the present state then
    OnPort,    // asleep on the port, which is armed, until asleep_.until
    Watching,  // asleep until the application, which polls or posts all the time, stops
  };
  std::atomic<Sleeper> sleeper_{Sleeper::Awake};
  std::atomic<bool> announced_{false};      // the application is about to sleep
  std::atomic<std::int64_t> last_seen_{0};  // last poll or post of the application; ns
  std::atomic<std::uint64_t> sleeps_{0};
  // Needs the ownership.
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
  } caller_;  // behaviour of the application
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
