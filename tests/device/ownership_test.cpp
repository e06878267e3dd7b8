// Waiting for the engine's ownership, with real threads.
#include "device/ownership.h"

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <thread>

namespace urnic::device {
namespace {

double own_cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

TEST(OwnershipTest, AWaitingThreadLeavesTheCoreToTheOwner) {
  Ownership ownership;
  ownership.take();
  double used = 0;
  bool owned = false;
  std::thread waiter([&] {
    const double before = own_cpu_ms();
    ownership.take();
    used = own_cpu_ms() - before;
    owned = Ownership::is_owner();
    EXPECT_FALSE(ownership.give_up());
  });
  while (!ownership.wanted()) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(ownership.give_up());
  waiter.join();
  EXPECT_TRUE(owned);
  EXPECT_LT(used, 100) << "ms of the 300 that it waited";
}

TEST(OwnershipTest, ManyThreadsGetItOneAfterTheOther) {
  constexpr int kThreads = 4, kRounds = 20000;
  Ownership ownership;
  int inside = 0, rounds = 0;  // the owner's
  const auto turns = [&] {
    for (int i = 0; i < kRounds; ++i) {
      ownership.take();
      EXPECT_EQ(inside++, 0);
      ++rounds;
      if (i % 64 == 0) std::this_thread::yield();  // the others wait long enough to sleep
      --inside;
      (void)ownership.give_up();
    }
  };
  std::thread threads[kThreads];
  for (std::thread& t : threads) t = std::thread(turns);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(rounds, kThreads * kRounds);
}

}  // namespace
}  // namespace urnic::device
