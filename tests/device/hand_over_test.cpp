// Who serves what arrives: the application inside its polls, else a sleeping thread that the port
// wakes. The port here tells whether it is armed, so that nothing depends on how long things take.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "device/driver.h"
#include "device/polling_habit.h"
#include "port/adapter.h"
#include "port/memory_port.h"
#include "urnic/config.h"

namespace urnic::engine {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSlowPolls = true;  // some take longer than what counts as back to back
#else
constexpr bool kSlowPolls = false;
#endif

struct NoHooks : Hooks {
  void on_cm_event(CmEvent) override { ++events; }
  void on_completion(verbs::CompletionQueue*) override {}
  std::atomic<unsigned> events{0};
};

// What an observed port saw; outlives it.
struct Seen {
  // Like memif a port that is not armed any more once something was received, when that was before
  // the sender looked: nobody is woken by what arrives.
  bool deaf = false;
  std::atomic<bool> armed{false};
  std::atomic<unsigned> frames{0};
  std::atomic<unsigned> sleeper_frames{0};  // received by another thread than `application`
  std::uint64_t polls = 0;                  // bursts of `application`, which alone looks
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
    // Before `frames`, which is what the application waits for.
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
    seen_->armed = !work;
    return work ? 1 : 0;
  }
  void disarm(unsigned q) {
    inner_.disarm(q);
    seen_->armed = false;
  }

 private:
  port::Port inner_;
  Seen* seen_;
};

constexpr urnic_port_ops kObserved = port::Adapter<ObservedPort>::table("mem");

template <class F>
bool soon(F&& f) {
  for (int i = 0; i < 20000; ++i) {
    if (f()) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return false;
}

struct HandOver : testing::Test {
  HandOver() {
    auto [a, b] = port::make_memory_pair();
    seen.application = std::this_thread::get_id();
    port = port::Port(&kObserved, port::as_handle(new ObservedPort(std::move(a), &seen)));
    peer = std::move(b);
    engine = std::make_unique<Engine>(options_from(Config(), "mem"), &port, 0, &hooks);
  }
  void drive(Progress progress = Progress::Auto) {
    DriverOptions options;
    options.progress = progress;
    driver = std::make_unique<Driver>(options, engine.get(), &port, 0);
    ASSERT_TRUE(driver->start().ok());
  }
  // A frame for nobody, which the engine takes and drops.
  void arrive() {
    port::Frame f;
    ASSERT_EQ(peer.tx_reserve(0, 60, &f, 1), 1u);
    std::memset(f.data[0], 0, 60);
    f.len[0] = 60;
    peer.tx_commit(0, &f, 1);
  }
  // Whether it was polling all the time, by the rule of PollingHabit and with something to spare:
  // on a busy machine the application is put aside, or its polls take long, or find for a while
  // that the thread has the engine and has been put aside with it.
  bool poll_for(std::chrono::milliseconds how_long) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::nanoseconds pause(PollingHabit::kPause.count_ns()),
        back_to_back(PollingHabit::kBackToBack.count_ns());
    auto longest = Clock::duration::zero(), inside = Clock::duration::zero();
    const auto begin = Clock::now();
    auto last = begin;
    for (const auto end = begin + how_long; last < end;) {
      const std::uint64_t polls = seen.polls;
      driver->app_poll();
      const auto now = Clock::now();
      if (seen.polls == polls && now < end) continue;
      longest = std::max(longest, now - last);
      if (now - last <= back_to_back) inside += now - last;
      last = now;
    }
    return longest < pause && inside >= (last - begin) * 3 / 4;
  }
  // Until the port is not armed: the application is known to poll all the time.
  bool poll_until_watched() {
    for (int i = 0; i < 10000; ++i) {
      poll_for(std::chrono::milliseconds(2));
      if (!seen.armed) return true;
    }
    return false;
  }
  // The thread sleeps, and no timer of the engine's own wakes it in the time of a test.
  bool sleeps_for_long() {
    return soon([&] {
      return driver->own([&](Instant now) {
        return seen.armed && engine->next_deadline() > now + Duration::s(100);
      });
    });
  }
  NoHooks hooks;
  Seen seen;
  port::Port port, peer;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Driver> driver;
};

TEST_F(HandOver, APollLeavesThePortArmedForTheSleeper) {
  drive();
  ASSERT_TRUE(soon([&] { return seen.armed.load(); }));
  for (int i = 0; i < 50; ++i) {
    arrive();
    driver->app_poll();
    // At once if the application was first, else when the thread, which it met, sleeps again.
    ASSERT_TRUE(soon([&] { return seen.armed && seen.frames >= unsigned(i) + 1; })) << i;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

// One poll now and then takes nothing away from the sleeper: not even the thread has to wake.
TEST_F(HandOver, ASinglePollDoesNotWakeTheSleeper) {
  drive();
  ASSERT_TRUE(soon([&] { return seen.armed.load(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::uint64_t sleeps = driver->sleeps();
  for (int i = 0; i < 100; ++i) {
    driver->app_poll();
    EXPECT_TRUE(seen.armed);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  EXPECT_LE(driver->sleeps(), sleeps + 2);  // for the interface's own timers
}

struct Elsewhere {
  const char* name;
  void (*spend)(HandOver&, unsigned frames);  // until that many have arrived
};

void in_poll(HandOver& t, unsigned frames) {
  while (t.seen.frames < frames) ::poll(nullptr, 0, 1);
}
void on_memory(HandOver& t, unsigned frames) {
  while (t.seen.frames.load(std::memory_order_relaxed) < frames) {
  }
}
void in_a_socket(HandOver& t, unsigned frames) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  std::thread other([&] {
    EXPECT_TRUE(soon([&] { return t.seen.frames >= frames; }));
    EXPECT_EQ(write(ends[1], "x", 1), 1);
  });
  char c;
  EXPECT_EQ(read(ends[0], &c, 1), 1);
  other.join();
  close(ends[0]);
  close(ends[1]);
}
void computing(HandOver& t, unsigned frames) {
  volatile double x = 1;
  while (t.seen.frames < frames) {
    for (int i = 0; i < 100000; ++i) x = x * 1.0000001;
  }
}

struct WhateverItDoes : HandOver, testing::WithParamInterface<Elsewhere> {};

TEST_P(WhateverItDoes, ArrivalsAreServedWithoutIt) {
  drive();
  unsigned frames = 0;
  for (int round = 0; round < 20; ++round) {
    if (round % 4 == 3 && !kInstrumented) {  // from either state
      ASSERT_TRUE(poll_until_watched());
    }
    driver->app_poll();
    const unsigned before = seen.sleeper_frames;
    arrive();
    GetParam().spend(*this, ++frames);
    EXPECT_GT(seen.sleeper_frames, before);
  }
}

INSTANTIATE_TEST_SUITE_P(All, WhateverItDoes,
                         testing::Values(Elsewhere{"SleepsInPoll", in_poll},
                                         Elsewhere{"SpinsOnMemory", on_memory},
                                         Elsewhere{"BlocksInASocket", in_a_socket},
                                         Elsewhere{"Computes", computing}),
                         [](const auto& i) { return std::string(i.param.name); });

// verbs: arm, poll once more, sleep. That poll takes nothing back.
TEST_F(HandOver, ThePollBetweenArmAndSleepHandsOver) {
  if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  drive();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(poll_until_watched());
    driver->hand_over();
    driver->app_poll();
    EXPECT_TRUE(soon([&] { return seen.armed.load(); }));
  }
}

TEST_F(HandOver, SayingThatItSleepsIsEnough) {
  if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  drive();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(poll_until_watched());
    driver->hand_over();
    EXPECT_TRUE(soon([&] { return seen.armed.load(); }));
    driver->app_poll();
  }
}

// Not disturbed: what arrives while the application polls all the time wakes nobody. Judged where
// it did poll all the time, in this round and the two before: after a pause it is believed again
// only at the end of a whole window (PollingHabit::kWindow, as long as a round), which may lie in
// the second round behind the pause.
TEST_F(HandOver, WhoPollsAllTheTimeIsLeftAlone) {
  if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  drive();
  ASSERT_TRUE(poll_until_watched());
  unsigned woken = 0, judged = 0, steady_rounds = 0;
  for (int i = 0; i < 5000 && judged < 100; ++i) {
    const std::uint64_t sleeps = driver->sleeps();
    arrive();
    const bool polled = poll_for(std::chrono::milliseconds(1));
    steady_rounds = polled ? steady_rounds + 1 : 0;
    if (steady_rounds > 2) {
      ++judged;
      woken += driver->sleeps() != sleeps ? 1 : 0;
    }
  }
  if (kSlowPolls && judged < 100)
    GTEST_SKIP() << judged << " rounds in which it polled all the time";
  ASSERT_EQ(judged, 100u);
  EXPECT_LE(woken, 50u);
}

// proves: E-51
TEST_F(HandOver, E51_APollThatReceivedLeavesThePortArmed) {
  seen.deaf = true;
  drive();
  ASSERT_TRUE(sleeps_for_long());
  for (unsigned i = 0; i < 20; ++i) {
    const unsigned before = seen.frames;
    arrive();
    driver->app_poll();
    ASSERT_EQ(seen.frames, before + 1);
    ASSERT_TRUE(seen.armed) << i;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

// proves: E-51
TEST_F(HandOver, E51_TheSleeperIsToldOfADeadlineBeforeTheOneItKnows) {
  seen.deaf = true;
  drive();
  ASSERT_TRUE(sleeps_for_long());
  verbs::CompletionQueue cq(16);
  const bool only_a_deadline = driver->own([&](Instant now) {
    ConnectParams params = engine->default_params();
    params.timeout = Duration::ms(20);
    verbs::QueuePair* qp = engine->create_qp({}, &cq, &cq);
    EXPECT_TRUE(engine->iwarp().connect(*qp, *SocketAddress::parse("10.77.0.99:7"), params, now));
    while (engine->poll(now)) {
    }
    return !engine->has_more_to_send() && !engine->waits_for_room();
  });
  EXPECT_TRUE(only_a_deadline);
  EXPECT_TRUE(soon([&] { return hooks.events != 0; })) << "connecting timed out, and nobody saw";
  driver.reset();
}

// Who says before each poll that it is about to sleep does not poll all the time, however fast.
// proves: E-51
TEST_F(HandOver, E51_WhoSaysThatItSleepsIsNotBelievedToPoll) {
  if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  seen.deaf = true;
  drive();
  ASSERT_TRUE(sleeps_for_long());
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + std::chrono::milliseconds(300); Clock::now() < end;) {
    for (int i = 0; i < 1000; ++i) {
      driver->hand_over();
      driver->app_poll();
    }
    ASSERT_TRUE(seen.armed);
  }
}

// What has been written to an eventfd and not been read.
std::uint64_t pending(int fd) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(fd));
  for (std::string word; info >> word;) {
    if (word == "eventfd-count:") {
      std::uint64_t n = 0;
      info >> std::hex >> n;
      return n;
    }
  }
  return 0;
}

// The thread is held in its nap, so that it cannot find out by itself. It may be met elsewhere, and
// the application may be put aside: then once more.
// proves: E-51
TEST_F(HandOver, E51_AWatchingThreadIsWokenByWhoIsAboutToSleep) {
  if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<int> held{0}, released{0};
  const int wake_fd = dup(0);  // the number that the driver's gets
  close(wake_fd);
  driver = std::make_unique<Driver>(DriverOptions{}, engine.get(), &port, 0);
  driver->watch(ends[0], [&] {
    char c;
    EXPECT_EQ(read(ends[0], &c, 1), 1);
    const int round = ++held;
    while (released < round) std::this_thread::sleep_for(std::chrono::microseconds(100));
  });
  ASSERT_TRUE(driver->start().ok());
  bool woken = false;
  for (int round = 1; round <= 100 && !woken; ++round) {
    EXPECT_TRUE(poll_until_watched());
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    while (held < round) driver->app_poll();
    const std::uint64_t before = pending(wake_fd);
    driver->hand_over();
    woken = before == 0 && pending(wake_fd) == 1;
    driver->app_poll();
    released = round;
  }
  EXPECT_TRUE(woken);
  driver.reset();
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace urnic::engine
