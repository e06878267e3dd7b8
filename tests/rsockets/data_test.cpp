// Data over a connection of rsockets.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "rsockets/ends.h"
#include "support/soon.h"

namespace ends {
namespace {

using DataTest = EndsTest;

std::vector<char> pattern(std::size_t n) {
  std::vector<char> v(n);
  std::uint32_t x = 1;
  for (char& c : v) c = static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  return v;
}

// Sends in a thread of its own, then shuts down writing.
std::thread sends(int fd, const std::vector<char>& all) {
  return std::thread([fd, &all] {
    EXPECT_EQ(rsend(fd, all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
    EXPECT_EQ(rshutdown(fd, SHUT_WR), 0);
  });
}

std::vector<char> received(int fd, std::size_t part) {
  std::vector<char> all, in(part);
  ssize_t n;
  while ((n = rrecv(fd, in.data(), in.size(), 0)) > 0)
    all.insert(all.end(), in.begin(), in.begin() + n);
  EXPECT_EQ(n, 0) << errno;
  return all;
}

TEST_F(DataTest, AStreamArrivesWholeAndInOrderBothWaysAtOnce) {
  connect();
  const auto there = pattern(5'000'000), back = pattern(3'000'001);
  auto one = sends(client, there), two = sends(server, back);
  std::vector<char> got;
  std::thread three([&] { got = received(client, 7777); });
  EXPECT_TRUE(received(server, 65536) == there);
  for (auto* t : {&one, &two, &three}) t->join();
  EXPECT_TRUE(got == back);
}

TEST_F(DataTest, AStreamWorksWithSmallBuffersAndQueues) {
  set(SOL_SOCKET, SO_SNDBUF, 1);
  set(SOL_SOCKET, SO_RCVBUF, 1);
  set(SOL_RDMA, RDMA_SQSIZE, 1);
  set(SOL_RDMA, RDMA_RQSIZE, 1);
  connect();
  const auto all = pattern(300'000);
  auto sender = sends(client, all);
  EXPECT_TRUE(received(server, 100) == all);
  sender.join();
}

TEST_F(DataTest, AStreamWorksWithoutInlineData) {
  set(SOL_RDMA, RDMA_INLINE, 0);
  connect();
  const auto all = pattern(10'000);
  std::thread sender([&] {
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(rsend(client, &all[i], 1, 0), 1);
    rshutdown(client, SHUT_WR);
  });
  EXPECT_TRUE(received(server, 100) == all);
  sender.join();
}

// proves: DI-15, DI-16
TEST_F(DataTest, ANonBlockingReadFailsAndIsWokenByData) {
  connect();
  make_non_blocking(server);
  char in[16];
  EXPECT_EQ(rrecv(server, in, sizeof in, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(rrecv(client, in, sizeof in, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(wait(server, POLLIN, 50), 0);
  ASSERT_EQ(rsend(client, "word", 4, 0), 4);
  EXPECT_EQ(wait(server, POLLIN), POLLIN);
  pollfd kernels{server, POLLIN, 0};
  EXPECT_EQ(poll(&kernels, 1, 0), 1) << "the kernel says so as well";
  EXPECT_EQ(rrecv(server, in, sizeof in, MSG_PEEK), 4);
  EXPECT_EQ(rrecv(server, in, sizeof in, 0), 4);
  EXPECT_EQ(std::memcmp(in, "word", 4), 0);
  EXPECT_EQ(poll(&kernels, 1, 0), 0);
}

// proves: DI-15
TEST_F(DataTest, ANonBlockingSendStopsAtAPeerThatDoesNotReadAndIsWokenWhenItReads) {
  connect();
  make_non_blocking(client);
  const auto all = pattern(100'000);
  std::size_t sent = 0;
  ssize_t n;
  int rounds = 0;
  // Data in flight makes room again for a while: repeat until there has been no room for longer
  // than a thread waits for a processor.
  do {
    while ((n = rsend(client, all.data(), all.size(), 0)) > 0) sent += static_cast<std::size_t>(n);
    EXPECT_EQ(errno, EAGAIN);
  } while (++rounds < 100 && wait(client, POLLOUT, 500) != 0);
  EXPECT_LT(rounds, 100) << "it can be written to, and cannot";
  EXPECT_LE(sent, std::size_t{1} << 18) << "what its own and the peer's buffer hold";
  pollfd kernels{client, POLLOUT, 0};
  EXPECT_EQ(poll(&kernels, 1, 0), 0);
  std::vector<char> in(sent);
  EXPECT_EQ(rrecv(server, in.data(), in.size(), MSG_WAITALL), static_cast<ssize_t>(sent));
  // Only the kernel wakes the wait, as in an event loop: no call of the library is made.
  EXPECT_EQ(poll(&kernels, 1, urnic::test::kSoonMs), 1);
  EXPECT_EQ(wait(client, POLLOUT), POLLOUT);
}

// proves: DI-16
TEST_F(DataTest, PartsAreGatheredAndScattered) {
  connect();
  char a[] = "one, ", b[] = "two, ", c[] = "three";
  const iovec from[] = {{a, 5}, {nullptr, 0}, {b, 5}, {c, 5}};
  EXPECT_EQ(rwritev(client, from, 4), 15);
  char x[7] = {}, y[9] = {};
  const iovec into[] = {{x, 6}, {y, 8}};
  EXPECT_EQ(rreadv(server, into, 2), 14);
  EXPECT_STREQ(x, "one, t");
  EXPECT_STREQ(y, "wo, thre");
  EXPECT_EQ(rread(server, x, 7), 1);
  msghdr m{};
  m.msg_iov = const_cast<iovec*>(from);
  m.msg_iovlen = 1;
  EXPECT_EQ(rsendmsg(server, &m, MSG_NOSIGNAL), 5);
  msghdr in{};
  in.msg_iov = const_cast<iovec*>(into);
  in.msg_iovlen = 2;
  EXPECT_EQ(rrecvmsg(client, &in, 0), 5);
  EXPECT_EQ(rwrite(server, "z", 1), 1);
  sockaddr_in who{};
  socklen_t length = sizeof who;
  EXPECT_EQ(rrecvfrom(client, x, 1, 0, any(who), &length), 1);
  EXPECT_EQ(ntohs(who.sin_port), port);
}

// proves: DI-16
TEST_F(DataTest, WaitAllWaitsForAllBytes) {
  connect();
  std::thread sender([this] {
    EXPECT_EQ(rsend(client, "half", 4, 0), 4);
    usleep(50'000);
    EXPECT_EQ(rsend(client, "more", 4, 0), 4);
  });
  char in[9] = {};
  EXPECT_EQ(rrecv(server, in, 8, MSG_WAITALL), 8);
  EXPECT_STREQ(in, "halfmore");
  sender.join();
}

// proves: DI-16
TEST_F(DataTest, ASendReportsTheBytesThatFitted) {
  connect();
  make_non_blocking(client);
  const auto all = pattern(4'000'000);
  const ssize_t sent = rsend(client, all.data(), all.size(), 0);
  ASSERT_GT(sent, 0);
  ASSERT_LT(sent, static_cast<ssize_t>(all.size()));
  ASSERT_EQ(rshutdown(client, SHUT_WR), 0);
  const auto got = received(server, 65536);
  ASSERT_EQ(static_cast<ssize_t>(got.size()), sent);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), all.begin()));
}

// proves: DI-16
TEST_F(DataTest, ABlockedSendEndsWithItsTimeOut) {
  connect();
  const timeval t{0, 50'000};
  ASSERT_EQ(rsetsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t), 0);
  const auto all = pattern(1'000'000);
  const ssize_t sent = rsend(client, all.data(), all.size(), 0);
  EXPECT_GT(sent, 0);
  EXPECT_LT(sent, static_cast<ssize_t>(all.size()));
  EXPECT_EQ(rsend(client, all.data(), all.size(), 0), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(DataTest, ATimeOutEndsAWait) {
  connect();
  const timeval t{0, 50'000};
  ASSERT_EQ(rsetsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t), 0);
  char in;
  EXPECT_EQ(rrecv(server, &in, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
}

// proves: DI-15
TEST_F(DataTest, SelectSeesWhatPollSees) {
  connect();
  fd_set in, out;
  FD_ZERO(&in);
  FD_ZERO(&out);
  FD_SET(server, &in);
  FD_SET(server, &out);
  timeval t{0, 0};
  EXPECT_EQ(rselect(server + 1, &in, &out, nullptr, &t), 1);
  EXPECT_FALSE(FD_ISSET(server, &in));
  ASSERT_EQ(rsend(client, "x", 1, 0), 1);
  FD_SET(server, &in);
  t.tv_sec = 10;
  EXPECT_EQ(rselect(server + 1, &in, nullptr, nullptr, &t), 1);
}

// proves: DI-19
TEST_F(DataTest, MappedBuffersAreWrittenByTheirOffsets) {
  set(SOL_RDMA, RDMA_IOMAPSIZE, 2);
  connect();
  std::vector<char> mapped(200'000), other(64);
  EXPECT_EQ(riomap(server, mapped.data(), mapped.size(), PROT_WRITE, 0, 4096), 4096);
  EXPECT_EQ(riomap(server, other.data(), other.size(), PROT_WRITE, 0, 0), 0);
  EXPECT_EQ(riomap(server, other.data(), 1, PROT_WRITE, 0, 1 << 30), -1);
  EXPECT_EQ(errno, ENOMEM) << "the peer has room for two";
  const auto all = pattern(mapped.size());
  EXPECT_EQ(riowrite(client, all.data(), 10, 4096, 0), static_cast<std::size_t>(-1));
  EXPECT_EQ(errno, EINVAL) << "it has not been told";
  ASSERT_EQ(rsend(server, "m", 1, 0), 1);
  char in;
  ASSERT_EQ(rrecv(client, &in, 1, 0), 1);
  EXPECT_EQ(riowrite(client, all.data(), all.size(), 4096, 0), all.size());
  EXPECT_EQ(riowrite(client, "in the other", 12, 5, 0), 12u);
  ASSERT_EQ(rsend(client, "d", 1, 0), 1);
  ASSERT_EQ(rrecv(server, &in, 1, 0), 1) << "which comes behind what was written";
  EXPECT_TRUE(mapped == all);
  EXPECT_STREQ(other.data() + 5, "in the other");
  EXPECT_EQ(riounmap(server, mapped.data(), mapped.size()), 0);
  EXPECT_EQ(riounmap(server, mapped.data(), mapped.size()), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace ends
