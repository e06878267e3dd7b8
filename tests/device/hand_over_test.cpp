// Which thread serves arrivals: the application inside its polls, otherwise a sleeping thread that
// the port wakes.
#include <poll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "device/observed_driver.h"

namespace urnic::device {
namespace {

struct HandOver : ObservedDriver {};

TEST_F(HandOver, APollLeavesThePortArmedForTheSleeper) {
  drive();
  ASSERT_TRUE(soon([&] { return seen.armed.load(); }));
  for (int i = 0; i < 50; ++i) {
    arrive();
    driver->app_poll();
    // At once if the application was first, otherwise when the thread, which was awake, sleeps
    // again.
    ASSERT_TRUE(soon([&] { return seen.armed && seen.frames >= unsigned(i) + 1; })) << i;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

// A single poll now and then does not affect the sleeper: the thread does not even have to wake. No
// timer of the interface wakes it either, which would find the port not armed for a moment.
TEST_F(HandOver, ASinglePollDoesNotWakeTheSleeper) {
  drive();
  ASSERT_TRUE(sleeps_for_long());
  const std::uint64_t sleeps = driver->sleeps();
  for (int i = 0; i < 100; ++i) {
    driver->app_poll();
    EXPECT_TRUE(seen.armed);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  EXPECT_EQ(driver->sleeps(), sleeps);
}

struct Elsewhere {
  const char* name;
  void (*spend)(HandOver&, unsigned frames);  // until `frames` frames have arrived
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

// verbs: arm, poll once more, sleep. That poll does not make the application the driver again.
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

TEST_F(HandOver, AnnouncingASleepIsEnough) {
  if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  drive();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(poll_until_watched());
    driver->hand_over();
    EXPECT_TRUE(soon([&] { return seen.armed.load(); }));
    driver->app_poll();
  }
}

// Not disturbed: an arrival while the application polls all the time wakes no other thread. Only
// rounds count in which it polled all the time, including the two rounds before: after a pause the
// habit counts again only at the end of a whole window (PollingHabit::kWindow, as long as a round),
// which may be in the second round after the pause. On a busy machine such rounds are rare, and in
// some the thread wakes because of an earlier pause: it also does in rounds without arrivals.
TEST_F(HandOver, ArrivalsWakeNoThreadWhileTheApplicationPollsAllTheTime) {
  if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  drive();
  ASSERT_TRUE(poll_until_watched());
  constexpr int kEnough = 100;
  struct {
    int judged = 0, woken = 0;
    double share() const { return static_cast<double>(woken) / judged; }
  } quiet, busy;
  int steady_rounds = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(40);
  for (int i = 0; std::min(quiet.judged, busy.judged) < kEnough; ++i) {
    if (std::chrono::steady_clock::now() > end) break;
    const std::uint64_t sleeps = driver->sleeps();
    if (i % 2 == 0) arrive();
    const bool polled = poll_for(std::chrono::milliseconds(1));
    steady_rounds = polled ? steady_rounds + 1 : 0;
    if (steady_rounds <= 2) continue;
    auto& rounds = i % 2 == 0 ? busy : quiet;
    ++rounds.judged;
    rounds.woken += driver->sleeps() != sleeps ? 1 : 0;
  }
  if (std::min(quiet.judged, busy.judged) < kEnough / 2) {
    GTEST_SKIP() << busy.judged << " rounds in which it polled all the time";
  }
  EXPECT_LE(busy.share(), quiet.share() + 1.0 / 3) << busy.judged << " and " << quiet.judged;
}

// The polls postpone the alarm by which the thread detects their end; the thread does not, because
// it would have to wake for that.
// proves: E-51
TEST_F(HandOver, PollsPostponeTheThreadsAlarm) {
  if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  const int wake = dup(0), timer = dup(0);  // the numbers that the driver's descriptors will get
  close(wake);
  close(timer);
  drive();
  ASSERT_TRUE(poll_until_watched());
  const auto left = [&] {
    itimerspec t{};
    EXPECT_EQ(timerfd_gettime(timer, &t), 0);
    return t.it_value.tv_nsec;
  };
  // The thread sets the alarm each time before it sleeps, and this test may see late what it did
  // between two checks. So the third setting within one sleep is not the thread's.
  std::uint64_t sleep = driver->sleeps();
  std::int64_t before = left();
  int set = 0;
  const auto end = std::chrono::steady_clock::now() + test::kSoon;
  while (set < 3 && std::chrono::steady_clock::now() < end) {
    driver->app_poll();
    const std::int64_t now = left();
    if (now > before) ++set;
    const std::uint64_t sleeps = driver->sleeps();
    if (sleeps != sleep) set = 0;
    sleep = sleeps;
    before = now;
  }
#ifdef __SANITIZE_ADDRESS__
  if (set < 3) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
#endif
  EXPECT_EQ(set, 3);
}

// proves: E-51
TEST_F(HandOver, APollThatReceivedLeavesThePortArmed) {
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
TEST_F(HandOver, TheSleeperIsWokenForAnEarlierDeadline) {
  seen.deaf = true;
  drive();
  ASSERT_TRUE(sleeps_for_long());
  EXPECT_TRUE(only_a_deadline());
  EXPECT_TRUE(soon([&] { return hooks.events != 0; })) << "connecting timed out, and nobody saw";
  driver.reset();
}

// A program that announces a sleep before each poll does not poll all the time, however fast it is.
// This only counts in rounds where it would otherwise be known to, which a busy machine sometimes
// prevents.
// proves: E-51
TEST_F(HandOver, AnApplicationThatAnnouncesSleepsDoesNotCountAsPolling) {
  if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  seen.deaf = true;
  drive();
  ASSERT_TRUE(sleeps_for_long());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(40);
  for (int fast = 0, steady_rounds = 0; fast < 50 && std::chrono::steady_clock::now() < end;) {
    bool armed = true;
    const bool polled = poll_for(std::chrono::milliseconds(1), [&] {
      armed = armed && seen.armed;
      driver->hand_over();
    });
    ASSERT_TRUE(armed);
    steady_rounds = polled ? steady_rounds + 1 : 0;
    fast += steady_rounds > 2 ? 1 : 0;
  }
}

// The value of an eventfd that was written and not read.
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

// The thread is held in its nap, so that it cannot find out by itself. It may be elsewhere, and the
// application may be preempted: then try again.
// proves: E-51
TEST_F(HandOver, AWatchingThreadIsWokenWhenTheApplicationAnnouncesASleep) {
  if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<int> held{0}, released{0};
  const int wake_fd = dup(0);  // the number that the driver's descriptor will get
  close(wake_fd);
  driver = std::make_unique<Driver>(DriverOptions{}, engine.get(), &port, 0);
  driver->watched().watch(ends[0], [&] {
    char c;
    EXPECT_EQ(read(ends[0], &c, 1), 1);
    const int round = ++held;
    while (released < round) std::this_thread::sleep_for(std::chrono::microseconds(100));
  });
  ASSERT_TRUE(driver->start().ok());
  bool woken = false;
  const auto end = std::chrono::steady_clock::now() + test::kSoon;
  for (int round = 1; !woken && std::chrono::steady_clock::now() < end; ++round) {
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
}  // namespace urnic::device
