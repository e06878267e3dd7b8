// exit() and fork() in a signal handler that has interrupted a thread anywhere inside our calls.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "dropin/roce_process.h"
#include "dropin/tables_lock.h"

namespace {

using urnic::dropin::TablesLock;

TEST(TablesLock, AForkByItsOwnerDoesNotDeadlock) {
  TablesLock lock;
  lock.lock();
  lock.before_fork();
  lock.after_fork();
  lock.unlock();
  lock.lock();  // it is free again
  lock.unlock();
}

TEST(TablesLock, NoOtherThreadHoldsItDuringAFork) {
  TablesLock lock;
  std::atomic<bool> had{false};
  lock.before_fork();
  std::thread other([&] {
    const std::lock_guard guard(lock);
    had = true;
  });
  usleep(20'000);
  EXPECT_FALSE(had);
  lock.after_fork();
  other.join();
  EXPECT_TRUE(had);
}

using ExitTest = roce::RoceTest;

// The handler nearly always interrupts a poll, because the program does nothing else.
TEST_F(ExitTest, ExitInAHandlerThatInterruptsAPollEndsTheProcess) {
  if (!within()) return;
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  signal(SIGALRM, [](int) {
    signal(SIGALRM, SIG_DFL);  // so that the alarm ends a process that hangs
    alarm(60);
    exit(0);
  });
  itimerval after{};
  after.it_value.tv_usec = 50'000;
  setitimer(ITIMER_REAL, &after, nullptr);
  ibv_wc wc;
  for (;;) ibv_poll_cq(cq, 1, &wc);
}

}  // namespace
