// Rsockets over the network of hand_verbs.h, at moments that a walk seldom reaches: everything must
// be released.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <memory>

#include "rsockets/calls.h"
#include "rsockets/hand_network.h"
#include "rsockets/table.h"
#include "tests/support/allocator.h"

namespace urnic::rsockets {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  a.sin_port = htons(static_cast<std::uint16_t>(port));
  return a;
}

// While it exists, no descriptor can be created.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

class RsocketLeft : public ::testing::Test {
 protected:
  static constexpr int kPort = 7000;

  ~RsocketLeft() override {
    net.settle();
    EXPECT_EQ(net.left(), hand::Left());
    EXPECT_EQ(net.wrong, "");
  }
  static int make() { return urnic_rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0); }
  static int listen() {
    const int fd = make();
    sockaddr_in a = loopback(kPort);
    EXPECT_EQ(urnic_rbind(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
    EXPECT_EQ(urnic_rlisten(fd, 3), 0);
    return fd;
  }
  static int connect() {
    const int fd = make();
    sockaddr_in a = loopback(kPort);
    EXPECT_EQ(urnic_rconnect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), -1);
    EXPECT_EQ(errno, EINPROGRESS);
    return fd;
  }
  static int error_of(int fd) {
    int e = -1;
    socklen_t length = sizeof e;
    EXPECT_EQ(urnic_rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &length), 0);
    return e;
  }

  test::VirtualTime time_{7};
  hand::HandVerbs net;
};

TEST_F(RsocketLeft, AClosedListenerDropsWaitingConnectionsEvenDuringACall) {
  const int listener = listen(), first = connect();
  net.settle();
  const int second = connect();
  // The request has arrived, and the listener has no established event yet.
  net.holds_ready = true;
  net.settle();
  const auto held = Table::get().find(listener);  // like a call in another thread
  ASSERT_EQ(net.left().sockets, 5u);
  EXPECT_EQ(urnic_rclose(listener), 0);
  EXPECT_EQ(net.left().sockets, 3u) << "the two that connect, and the listener";
  net.settle();
  EXPECT_EQ(error_of(first), ECONNRESET);
  EXPECT_NE(error_of(second), 0);
  for (const int fd : {first, second}) EXPECT_EQ(urnic_rclose(fd), 0);
}

TEST_F(RsocketLeft, WithoutADescriptorARequestIsRejectedAndNothingLeaks) {
  const int listener = listen(), client = connect();
  {
    const NoDescriptors none;
    EXPECT_EQ(make(), -1);
    EXPECT_EQ(errno, EMFILE);
    net.settle();
  }
  EXPECT_EQ(error_of(client), ECONNREFUSED);
  EXPECT_EQ(net.left().sockets, 2u);
  EXPECT_EQ(net.left().ids, 2u) << "the listener's and the client's";
  EXPECT_EQ(urnic_rclose(client), 0);
  const int again = connect();
  net.settle();
  EXPECT_EQ(error_of(again), 0);
  for (const int fd : {again, listener}) EXPECT_EQ(urnic_rclose(fd), 0);
}

// If any allocation fails while a request is answered, the client gets an error and nothing leaks.
TEST_F(RsocketLeft, WithoutMemoryARequestIsRejectedAndNothingLeaks) {
  const int listener = listen();
  unsigned rejected = 0;
  for (std::uint64_t after = 0; after < 12; ++after) {
    const int client = connect();
    net.holds_ready = true;
    ASSERT_TRUE(net.move(0)) << "the request comes";
    {
      const urnic::testing::NoMemory none(after);
      net.serve();
    }
    const bool is_made = net.left().sockets == 3;
    rejected += !is_made;
    net.holds_ready = false;
    net.settle();
    EXPECT_EQ(error_of(client), is_made ? 0 : ECONNREFUSED) << after;
    EXPECT_EQ(urnic_rclose(client), 0);
    if (is_made) {
      EXPECT_EQ(urnic_rclose(urnic_raccept(listener, nullptr, nullptr)), 0);
    }
    net.settle();
    EXPECT_EQ(net.left().ids, 1u) << after;
    EXPECT_EQ(net.left().sockets, 1u) << after;
  }
  EXPECT_GE(rejected, 2u);
  EXPECT_EQ(urnic_rclose(listener), 0);
}

TEST_F(RsocketLeft, WithoutMemoryAConnectFailsAndNothingLeaks) {
  const int listener = listen();
  unsigned failed = 0;
  for (std::uint64_t after = 0; after < 30; ++after) {
    const int fd = make();
    sockaddr_in a = loopback(kPort);
    {
      const urnic::testing::NoMemory none(after);
      EXPECT_EQ(urnic_rconnect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), -1);
      EXPECT_TRUE(errno == ENOMEM || errno == EINPROGRESS) << errno;
    }
    if (errno == ENOMEM) {
      ++failed;
      EXPECT_EQ(urnic_rconnect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), -1);
      EXPECT_EQ(errno, EINVAL) << "a connection that failed is not begun again";
    }
    EXPECT_EQ(urnic_rclose(fd), 0);
    net.settle();
    for (int n; (n = urnic_raccept(listener, nullptr, nullptr)) >= 0;) urnic_rclose(n);
    net.settle();
    EXPECT_EQ(net.left().ids, 1u) << after;
    EXPECT_EQ(net.left().queues, 0u) << after;
  }
  EXPECT_GE(failed, 5u);
  EXPECT_EQ(urnic_rclose(listener), 0);
}

TEST_F(RsocketLeft, ANumberClosedOutsideOurCallsCanBeReused) {
  const int listener = listen();
  ASSERT_EQ(::close(listener), 0);
  const int next = make();
  ASSERT_EQ(next, listener);
  EXPECT_NE(fcntl(next, F_GETFD), -1) << "the one before has not closed it";
  EXPECT_EQ(net.left().ids, 0u) << "that of the one before";
  EXPECT_EQ(net.left().sockets, 1u);
  EXPECT_EQ(urnic_rclose(next), 0);
}

TEST_F(RsocketLeft, AConnectionClosedOutsideOurCallsReleasesEverything) {
  const int listener = listen(), client = connect();
  net.settle();
  std::uint8_t buffer[100];
  ASSERT_EQ(urnic_riomap(client, buffer, sizeof buffer, PROT_NONE, 0, 5), 5);
  ASSERT_EQ(::close(client), 0);
  const int next = make();
  ASSERT_EQ(next, client);
  net.settle();
  EXPECT_NE(fcntl(next, F_GETFD), -1) << "the one before has not closed it";
  const int server = urnic_raccept(listener, nullptr, nullptr);
  ASSERT_GE(server, 0);
  EXPECT_EQ(error_of(server), ECONNRESET);
  for (const int fd : {next, server, listener}) EXPECT_EQ(urnic_rclose(fd), 0);
}

}  // namespace
}  // namespace urnic::rsockets
