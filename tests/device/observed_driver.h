// A driver and its engine on a port that records whether it is armed, and by which thread, so that
// tests do not depend on timing.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "device/driver.h"
#include "device/engine_options.h"
#include "device/polling_habit.h"
#include "port/adapter.h"
#include "port/memory_port.h"
#include "tests/support/soon.h"
#include "urnic/config.h"

namespace urnic::device {

using engine::Options;
using verbs::CmEvent;
using verbs::Hooks;

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kInstrumented = true;
#else
inline constexpr bool kInstrumented = false;
#endif

struct EventHooks : Hooks {
  void on_cm_event(CmEvent) override {
    told = std::this_thread::get_id();
    ++events;
  }
  void on_completion(verbs::CompletionQueue*) override {}
  std::atomic<unsigned> events{0};
  std::atomic<std::thread::id> told;  // the thread that reported the last one
};

// The observations of a port; outlives it.
struct Seen {
  // Like a memif port whose arming ended because a frame was received before the sender checked: an
  // arrival then wakes no thread.
  bool deaf = false;
  std::atomic<bool> armed{false};
  std::atomic<bool> by_application{false};  // the last arming was by the application
  std::atomic<unsigned> application_arms{0}, application_disarms{0};
  std::atomic<unsigned> frames{0};
  std::atomic<unsigned> sleeper_frames{0};  // received by threads other than `application`
  std::uint64_t polls = 0;                  // bursts of `application`; only that thread reads it
  std::thread::id application;
};

class ObservedPort {
 public:
  ObservedPort(port::Port inner, Seen* seen) : inner_(std::move(inner)), seen_(seen) {}
  static Outcome<std::unique_ptr<ObservedPort>, std::string> make(port::Args&) {
    return fail(std::string("not opened by name"));
  }
  void info(port::Info* i) const { *i = inner_.info(); }
  void stats(port::Stats* s) const { *s = inner_.stats(); }
  unsigned rx_burst(unsigned q, port::Frame* f, unsigned n) {
    const unsigned got = inner_.rx_burst(q, f, n);
    if (std::this_thread::get_id() == seen_->application) ++seen_->polls;
    if (got != 0 && seen_->deaf) seen_->armed = false;
    // Before `frames`, for which the application waits.
    if (std::this_thread::get_id() != seen_->application) seen_->sleeper_frames += got;
    seen_->frames += got;
    return got;
  }
  void rx_release(unsigned q, const port::Frame* f, unsigned n) { inner_.rx_release(q, f, n); }
  unsigned tx_reserve(unsigned q, std::uint32_t len, port::Frame* f, unsigned n) {
    return inner_.tx_reserve(q, len, f, n);
  }
  void tx_commit(unsigned q, port::Frame* f, unsigned n) { inner_.tx_commit(q, f, n); }
  unsigned wait_fds(unsigned q, int* fds, unsigned max) {
    return seen_->deaf ? 0 : inner_.wait_fds(q, fds, max);
  }
  int arm(unsigned q) {
    const bool work = inner_.arm(q);
    seen_->by_application = std::this_thread::get_id() == seen_->application;
    if (seen_->by_application) ++seen_->application_arms;
    seen_->armed = !work;
    return work ? 1 : 0;
  }
  void disarm(unsigned q) {
    inner_.disarm(q);
    if (std::this_thread::get_id() == seen_->application) ++seen_->application_disarms;
    seen_->armed = false;
  }

 private:
  port::Port inner_;
  Seen* seen_;
};

inline constexpr urnic_port_ops kObserved = port::Adapter<ObservedPort>::table("mem");

using test::soon;

struct ObservedDriver : ::testing::Test {
  ObservedDriver() {
    auto [a, b] = port::make_memory_pair();
    seen.application = std::this_thread::get_id();
    port = port::Port(&kObserved, port::as_handle(new ObservedPort(std::move(a), &seen)));
    peer = std::move(b);
    engine = std::make_unique<Engine>(device::options_from(Config(), "mem"), &port, 0, &hooks);
  }
  void drive(Progress progress = Progress::Auto) {
    DriverOptions options;
    options.progress = progress;
    options.lookout = lookout;
    options.doze = doze;
    driver = std::make_unique<Driver>(options, engine.get(), &port, 0);
    ASSERT_TRUE(driver->start().ok());
  }
  // A frame for no one, which the engine takes and drops.
  void arrive() {
    port::Frame f;
    ASSERT_EQ(peer.tx_reserve(0, 60, &f, 1), 1u);
    std::memset(f.data[0], 0, 60);
    f.len[0] = 60;
    peer.tx_commit(0, &f, 1);
  }
  // Polls for this long; true if it polled all the time, by the rule of PollingHabit with a margin.
  // On a busy machine the application is preempted, or its polls take long, or find for a while
  // that a preempted thread owns the engine.
  bool poll_for(std::chrono::milliseconds how_long) {
    return poll_for(how_long, [] {});
  }
  // `first` is called before each poll.
  template <class F>
  bool poll_for(std::chrono::milliseconds how_long, F&& first) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::nanoseconds pause(PollingHabit::kPause.count_ns()),
        back_to_back(PollingHabit::kBackToBack.count_ns());
    auto longest = Clock::duration::zero(), inside = Clock::duration::zero();
    const auto begin = Clock::now();
    auto last = begin;
    for (const auto end = begin + how_long; last < end;) {
      const std::uint64_t polls = seen.polls;
      first();
      driver->app_poll();
      const auto now = Clock::now();
      if (seen.polls == polls && now < end) continue;
      longest = std::max(longest, now - last);
      if (now - last <= back_to_back) inside += now - last;
      last = now;
    }
    return longest < pause && inside >= (last - begin) * 3 / 4;
  }
  // Polls until the port is not armed, because the application is known to poll all the time.
  bool poll_until_watched() {
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + test::kSoon; Clock::now() < end;) {
      poll_for(std::chrono::milliseconds(2));
      if (!seen.armed) return true;
    }
    return false;
  }
  // Waits until the thread sleeps, and no timer of the engine wakes it during a test.
  bool sleeps_for_long() {
    return soon([&] {
      return driver->own([&](Instant now) {
        return seen.armed && engine->next_deadline() > now + Duration::s(100);
      });
    });
  }
  // Gives the engine only a deadline, in 20 ms, after which there is an event.
  bool only_a_deadline() {
    return driver->own([&](Instant now) {
      iwarp::ConnectParams params = engine->iwarp().default_params();
      params.timeout = Duration::ms(20);
      verbs::QueuePair* qp = engine->iwarp_control().create_qp({}, &cq, &cq);
      EXPECT_TRUE(engine->iwarp().connect(*qp, *SocketAddress::parse("10.77.0.99:7"), params, now));
      while (engine->poll(now)) {
      }
      return !engine->has_more_to_send() && !engine->waits_for_room();
    });
  }
  verbs::CompletionQueue cq{256};  // of the queue pairs created here
  Duration lookout, doze;          // of the driver
  EventHooks hooks;
  Seen seen;
  port::Port port, peer;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Driver> driver;
};

}  // namespace urnic::device
