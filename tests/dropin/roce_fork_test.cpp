// Children of a process that uses RoCE.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "dropin/roce_process.h"
#include "support/quiet_fork.h"

namespace {

using RoceForkTest = roce::RoceTest;

bool can_open() {
  int number = 0;
  ibv_device** list = ibv_get_device_list(&number);
  return number == 1 && ibv_open_device(list[0]) != nullptr;
}

// A daemon's child: the address is free once the parent has ended, so the child can use it.
TEST_F(RoceForkTest, AChildOutlivesItsParentAndTakesItsAddress) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer knows no threads behind a fork of a process that had some";
#endif
  if (!within()) return;
  // said: by the child; parent: its other end is closed when the parent has ended
  int said[2], parent[2];
  ASSERT_EQ(pipe(said), 0);
  ASSERT_EQ(pipe(parent), 0);
  const pid_t first = urnic::test::quiet_fork();
  if (first == 0) {
    setenv("URNIC_PORT", ("udp:bind=" + urnic::test::loopback_network() + "2,mtu=5000").c_str(), 1);
    if (!can_open()) _exit(1);
    if (urnic::test::quiet_fork() != 0) _exit(0);
    close(parent[1]);
    char none = 0;
    const bool gone = read(parent[0], &none, 1) == 0;
    const char verdict = gone && can_open() ? 'y' : 'n';
    _exit(write(said[1], &verdict, 1) == 1 ? 0 : 1);
  }
  close(parent[1]);
  close(said[1]);
  int status = 0;
  ASSERT_EQ(waitpid(first, &status, 0), first);
  EXPECT_EQ(status, 0);
  char verdict = 0;
  ASSERT_EQ(read(said[0], &verdict, 1), 1);
  EXPECT_EQ(verdict, 'y');
}

}  // namespace
