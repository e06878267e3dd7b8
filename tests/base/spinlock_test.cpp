#include "base/spinlock.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace urnic {
namespace {

TEST(Spinlock, TryLockFailsWhileHeld) {
  Spinlock lock;
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(Spinlock, ExcludesOtherThreadsAlsoWithMoreThreadsThanCores) {
  constexpr int kThreads = 6, kRounds = 20000;
  Spinlock lock;
  long counter = 0;  // protected by the lock
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        if (t % 2 == 0) {
          const std::lock_guard guard(lock);
          ++counter;
        } else {
          std::unique_lock guard(lock, std::try_to_lock);
          if (!guard.owns_lock()) guard.lock();
          ++counter;
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(counter, long{kThreads} * kRounds);
}

}  // namespace
}  // namespace urnic
