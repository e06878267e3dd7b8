// The state that the kernel shows for a program's descriptor.
#include "rsockets/mirror.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace urnic::rsockets {
namespace {

short seen(int fd) {
  pollfd p{fd, POLLIN | POLLOUT | POLLRDHUP, 0};
  poll(&p, 1, 0);
  return p.revents;
}

struct MirrorTest : testing::Test {
  void SetUp() override { ASSERT_EQ(mirror.open(), 0); }
  Mirror mirror;
};

// proves: DI-15
TEST_F(MirrorTest, InputAndOutputAreShownIndependently) {
  EXPECT_EQ(seen(mirror.fd()), POLLOUT);
  mirror.show_input(true);
  mirror.show_input(true);
  EXPECT_EQ(seen(mirror.fd()), POLLIN | POLLOUT);
  mirror.show_output(false);
  EXPECT_EQ(seen(mirror.fd()), POLLIN);
  mirror.show_input(false);
  EXPECT_EQ(seen(mirror.fd()), 0);
  mirror.show_output(true);
  EXPECT_EQ(seen(mirror.fd()), POLLOUT);
}

// proves: DI-15
TEST_F(MirrorTest, TheEndOfInputIsReadableForEver) {
  mirror.show_end_of_input();
  EXPECT_EQ(seen(mirror.fd()), POLLIN | POLLOUT | POLLRDHUP);
  mirror.show_input(false);
  EXPECT_EQ(seen(mirror.fd()), POLLIN | POLLOUT | POLLRDHUP);
}

// proves: DI-15
TEST_F(MirrorTest, AHangUpWakesAThreadThatWaitsToSend) {
  mirror.show_output(false);
  mirror.show_hang_up();
  EXPECT_EQ(seen(mirror.fd()), POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
}

TEST_F(MirrorTest, EveryChangeIsAnEdgeOfEpoll) {
  const int ep = epoll_create1(EPOLL_CLOEXEC);
  epoll_event e{};
  e.events = EPOLLIN | EPOLLOUT | EPOLLET;
  ASSERT_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, mirror.fd(), &e), 0);
  EXPECT_EQ(epoll_wait(ep, &e, 1, 0), 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(epoll_wait(ep, &e, 1, 0), 0);
    mirror.show_input(true);
    ASSERT_EQ(epoll_wait(ep, &e, 1, 0), 1);
    EXPECT_NE(e.events & EPOLLIN, 0u);
    mirror.show_input(false);
    mirror.show_output(false);
    mirror.show_output(true);
    ASSERT_EQ(epoll_wait(ep, &e, 1, 0), 1);
    EXPECT_NE(e.events & EPOLLOUT, 0u);
  }
  close(ep);
}

}  // namespace
}  // namespace urnic::rsockets
