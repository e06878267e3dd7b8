// An application thread that waits again and again takes our thread's place meanwhile.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "device/event_queue.h"
#include "device/seat.h"
#include "device/seated.h"

namespace urnic::device {
namespace {

Instant at(std::int64_t us) {
  return Instant() + Duration::us(us);
}
bool readable(int fd, int within_ms = 0) {
  pollfd p{fd, POLLIN, 0};
  return poll(&p, 1, within_ms) == 1;
}

TEST(Seat, IsKeptForAMomentAndThenTakenBack) {
  Seat seat;
  EXPECT_FALSE(seat.lent());
  EXPECT_FALSE(seat.take_back(at(1)));
  ASSERT_TRUE(seat.sit(at(999)));
  EXPECT_FALSE(seat.sit(at(999))) << "somebody sits there";
  EXPECT_TRUE(seat.lent());
  EXPECT_FALSE(seat.take_back(at(1'000'000))) << "somebody sits there";
  seat.rise(at(1000));
  EXPECT_TRUE(seat.lent());
  EXPECT_FALSE(seat.take_back(at(1000) + Seat::kKept - Duration::ns(1)));
  EXPECT_TRUE(seat.lent());
  EXPECT_TRUE(readable(seat.timer(), 60000));
  EXPECT_TRUE(seat.take_back(at(1000) + Seat::kKept));
  EXPECT_FALSE(seat.lent());
  EXPECT_FALSE(readable(seat.timer(), 1));
}

// proves: E-51
TEST(Seat, TheAlarmDoesNotFireDuringALongSit) {
  Seat seat;
  ASSERT_TRUE(seat.sit(at(1000)));
  seat.rise(at(1000) + Seat::kSoon);
  ASSERT_TRUE(seat.sit(at(1060)));
  EXPECT_FALSE(readable(seat.timer(), 5)) << "stopped, for it would go off as well";
  seat.rise(at(1070));  // a short sit
  ASSERT_TRUE(seat.sit(at(1080)));
  EXPECT_TRUE(readable(seat.timer(), 60000)) << "left alone";
  EXPECT_FALSE(seat.take_back(at(1080) + Seat::kKept));
  EXPECT_FALSE(readable(seat.timer(), 5)) << "once";
  EXPECT_TRUE(seat.lent());
  seat.rise(at(1300));
  EXPECT_TRUE(readable(seat.timer(), 60000)) << "set anew";
}

// proves: E-51
TEST_F(Seated, AThreadThatWaitsAgainAndAgainServesItself) {
  drive();
  expect_served_by_itself();
}

// Our thread handles a signal that it gets during the sit once, as soon as it has a core.
TEST_F(Seated, OurThreadSleepsWhileTheSeatIsTaken) {
  drive();
  ASSERT_TRUE(sleeps_for_long());  // no timer of the interface will fire
  bool settled = false;
  ASSERT_TRUE(wait_seated([&] {
    settled = soon([&] {
      const std::uint64_t before = driver->sleeps();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return driver->sleeps() == before;
    });
    arrive();
  }));
  EXPECT_TRUE(settled);
}

// proves: E-51
TEST_F(Seated, OurThreadTakesOverWhenTheApplicationDoesNotComeBack) {
  drive();
  for (unsigned i = 1; i <= 5; ++i) {
    ASSERT_TRUE(wait_seated([&] { arrive(); }));
    const unsigned others = seen.sleeper_frames;
    arrive();
    ASSERT_TRUE(soon([&] { return seen.frames == 2 * i; }));
    EXPECT_EQ(seen.sleeper_frames, others + 1);
  }
}

// The port has not woken our thread; the thread that left the seat has, before the port did.
// proves: E-51
TEST_F(Seated, OurThreadTakesOverAlsoAfterASitWithoutAnArrival) {
  drive();
  ASSERT_TRUE(sleeps_for_long());
  ASSERT_TRUE(wait_seated([&] { quiet.signal(); }));
  EXPECT_EQ(seen.frames, 0u);
  arrive();
  EXPECT_TRUE(soon([&] { return seen.frames == 1; }));
}

// proves: E-51
TEST_F(Seated, TheSeatedThreadIsWokenForAnEarlierDeadline) {
  drive();
  ASSERT_TRUE(sleeps_for_long());
  const auto begin = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point asked;
  ASSERT_TRUE(wait_seated([&] {
    asked = std::chrono::steady_clock::now();
    EXPECT_TRUE(only_a_deadline());
  }));
  EXPECT_LT(std::chrono::steady_clock::now() - asked, kNotWoken / 2)
      << "since " << std::chrono::duration<double>(asked - begin).count() << " s";
  EXPECT_TRUE(soon([&] { return hooks.events != 0; }));
  // It is reported once.
  const auto told = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) driver->wait(quiet.get(), Duration::ms(3));
  EXPECT_GE(std::chrono::steady_clock::now() - told, std::chrono::milliseconds(20));
  driver.reset();
}

// proves: E-51
TEST_F(Seated, ServesTimersAsItServesArrivals) {
  drive();
  bool itself = false;
  // On a busy machine it may come back too late to be given the seat: then try again.
  const auto end = std::chrono::steady_clock::now() + test::kSoon;
  while (!itself && std::chrono::steady_clock::now() < end) {
    EXPECT_TRUE(only_a_deadline());
    const unsigned events = hooks.events;
    while (hooks.events == events && std::chrono::steady_clock::now() < end) {
      driver->wait(quiet.get(), Duration::ms(5));
    }
    itself = hooks.events != events && hooks.told.load() == seen.application;
  }
  EXPECT_TRUE(itself);
  driver.reset();
}

TEST_F(Seated, ADescriptorATimeOutAndASignalEndTheWait) {
  drive();
  bool slept = false;
  ASSERT_TRUE(wait_seated([&] { quiet.signal(); }, &slept));
  EXPECT_TRUE(slept);
  quiet.clear();

  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(driver->wait(quiet.get(), Duration::ms(3)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));

  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  const pthread_t self = pthread_self();
  ASSERT_TRUE(wait_seated([&] { pthread_kill(self, SIGUSR1); }, &slept));
  EXPECT_FALSE(slept);
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(Seated, ACancelledThreadLeavesTheSeat) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a cancelled thread's stack";
#endif
  drive();
  std::thread waiter([&] {
    seen.application = std::this_thread::get_id();
    for (;;) {
      driver->wait(ready.get(), Duration());
      waits = true;
      driver->wait(quiet.get(), Duration::ms(200));
    }
  });
  ASSERT_TRUE(seated_within(test::kSoon));
  pthread_cancel(waiter.native_handle());
  waiter.join();
  seen.application = std::this_thread::get_id();
  arrive();
  EXPECT_TRUE(soon([&] { return seen.frames == 1; }));
}

TEST_F(Seated, AThreadThatFindsTheSeatTakenWaitsBesideIt) {
  drive();
  EventFd event;
  ASSERT_TRUE(wait_seated([&] {
    std::thread tells([&] { event.signal(); });
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(driver->wait(event.get(), Duration::s(kNotWoken.count())));
    EXPECT_TRUE(seen.armed && seen.by_application);
    tells.join();
    arrive();
  }));
  EXPECT_TRUE(soon([&] { return seen.frames == 1; }));
}

TEST_F(Seated, ArrivalsAreServedWhileAnotherThreadPolls) {
  if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  drive();
  std::atomic<bool> stop{false};
  std::thread waiter([&] {
    while (!stop) driver->wait(quiet.get(), Duration::ms(1));
  });
  for (unsigned i = 1; i <= 5; ++i) {
    ASSERT_TRUE(poll_until_watched());
    arrive();
    EXPECT_TRUE(soon([&] { return seen.frames == i; }));
  }
  stop = true;
  waiter.join();
}

}  // namespace
}  // namespace urnic::device
