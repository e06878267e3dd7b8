// Reports of address changes, in a separate network namespace without other changes.
#include "kernel_tcp/address_news.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "support/quiet_fork.h"

namespace urnic::kernel_tcp {
namespace {

// 0, or the number of an error; 255 if no namespace can be created.
int watch_loopback_come_up() {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return 255;
  AddressNews news;
  if (news.fd() < 0 || news.error() != 0) return 1;
  if (news.take()) return 2;
  const Socket s(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq r{};
  strcpy(r.ifr_name, "lo");
  r.ifr_flags = IFF_UP;
  if (ioctl(s.fd(), SIOCSIFFLAGS, &r) != 0) return 255;
  pollfd p{news.fd(), POLLIN, 0};
  if (poll(&p, 1, 20000) != 1) return 3;
  if (!news.take()) return 4;
  return news.take() ? 5 : 0;  // all messages have been read
}

TEST(AddressNews, AnInterfaceComingUpIsReported) {
  const pid_t child = test::quiet_fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(watch_loopback_come_up());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 255) GTEST_SKIP() << "no network namespace of its own";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace urnic::kernel_tcp
