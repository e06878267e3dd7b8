// exit() and fork() in a signal handler that has interrupted a thread anywhere inside our calls.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "dropin/meeting.h"
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

class CaptureTest : public own_process::Test {
 protected:
  static void exchange_and_exit() {
    const std::string file = testing::TempDir() + "/urnic-capture-" + std::to_string(getpid());
    setenv("URNIC_CAPTURE", file.c_str(), 1);
    ibv_context* const context = ibv_open_device(ibv_get_device_list(nullptr)[0]);
    unlink(file.c_str());
    ibv_pd* const pd = ibv_alloc_pd(context);
    meeting::End a, b;
    a.make(context, pd);
    b.make(context, pd);
    meeting::ready(a, b);
    meeting::ready(b, a);
    const rlimit small{2000, 2000};
    setrlimit(RLIMIT_FSIZE, &small);
    for (std::uint64_t i = 0; i < 100; ++i) {
      EXPECT_EQ(b.receive(i), 0);
      EXPECT_EQ(a.send(i), 0);
      EXPECT_EQ(a.next().status, IBV_WC_SUCCESS) << "the traffic goes on";
      EXPECT_EQ(b.next().status, IBV_WC_SUCCESS);
    }
    exit(HasFailure() ? 1 : 0);
  }
};

// The device is opened only by the process that ends.
TEST_F(CaptureTest, AProgramWhoseCaptureIsIncompleteSaysSoWhenItEnds) {
  if (!within()) return;
  EXPECT_EXIT(exchange_and_exit(), testing::ExitedWithCode(0),
              "urnic: capture file .*File too large; [0-9]+ frames are missing");
}

}  // namespace
