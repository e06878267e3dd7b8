// How connections of rsockets are set up and end, and which calls are refused.
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rsockets/ends.h"
#include "rsockets/wire.h"
#include "support/quiet_fork.h"
#include "support/soon.h"

// ThreadSanitizer does not support threads in a forked child.
#if defined(__SANITIZE_THREAD__)
#define SKIP_UNDER_TSAN() GTEST_SKIP() << "a fork beside threads"
#else
#define SKIP_UNDER_TSAN() \
  do {                    \
  } while (false)
#endif

namespace ends {
namespace {

using ConnectionTest = EndsTest;

// proves: DI-18
TEST_F(ConnectionTest, AddressesAreThoseOfBothEnds) {
  connect();
  sockaddr_in a{}, b{};
  socklen_t length = sizeof a;
  ASSERT_EQ(rgetpeername(client, any(a), &length), 0);
  EXPECT_EQ(ntohs(a.sin_port), port);
  EXPECT_EQ(ntohl(a.sin_addr.s_addr), INADDR_LOOPBACK);
  ASSERT_EQ(rgetpeername(server, any(b), &length), 0);
  EXPECT_EQ(ntohs(b.sin_port), port_of(client));
  EXPECT_EQ(rgetpeername(listener, any(b), &length), -1);
  EXPECT_EQ(errno, ENOTCONN);
}

// proves: DI-15
TEST_F(ConnectionTest, ANonBlockingConnectIsWokenByTheConnection) {
  make_non_blocking(client);
  make_non_blocking(listener);
  EXPECT_EQ(raccept(listener, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN);
  auto a = loopback(port);
  ASSERT_EQ(rconnect(client, any(a), sizeof a), -1);
  ASSERT_EQ(errno, EINPROGRESS);
  EXPECT_EQ(wait(client, POLLOUT), POLLOUT);
  int error = -1;
  socklen_t length = sizeof error;
  ASSERT_EQ(rgetsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length), 0);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(rconnect(client, any(a), sizeof a), -1);
  EXPECT_EQ(errno, EISCONN);
  EXPECT_EQ(wait(listener, POLLIN), POLLIN);
  server = raccept(listener, nullptr, nullptr);
  ASSERT_GE(server, 0);
  EXPECT_EQ(rfcntl(server, F_GETFL) & O_NONBLOCK, 0) << "it does not inherit that";
  EXPECT_EQ(wait(listener, POLLIN, 20), 0);
}

// A kernel listener that does not answer, and then ends.
// proves: DI-15
TEST_F(ConnectionTest, AnUnansweredConnectStaysInProgressUntilItFails) {
  const int silent = socket(AF_INET, SOCK_STREAM, 0);
  auto a = loopback(0);
  socklen_t length = sizeof a;
  ASSERT_EQ(bind(silent, any(a), sizeof a), 0);
  ASSERT_EQ(listen(silent, 1), 0);
  ASSERT_EQ(getsockname(silent, any(a), &length), 0);
  make_non_blocking(client);
  ASSERT_EQ(rconnect(client, any(a), sizeof a), -1);
  EXPECT_EQ(errno, EINPROGRESS);
  EXPECT_EQ(rconnect(client, any(a), sizeof a), -1);
  EXPECT_EQ(errno, EALREADY);
  EXPECT_EQ(wait(client, POLLIN | POLLOUT, 50), 0);
  char c = 0;
  EXPECT_EQ(rsend(client, &c, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(rrecv(client, &c, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  int error = -1;
  length = sizeof error;
  ASSERT_EQ(rgetsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length), 0);
  EXPECT_EQ(error, 0);
  close(silent);
  EXPECT_NE(wait(client, POLLOUT) & POLLERR, 0);
  ASSERT_EQ(rgetsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length), 0);
  EXPECT_NE(error, 0);
  ASSERT_EQ(rgetsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length), 0);
  EXPECT_EQ(error, 0) << "it is told once";
}

// proves: DI-15
TEST_F(ConnectionTest, APortWithoutAListenerIsRefused) {
  auto a = loopback(port);
  end(listener);
  EXPECT_EQ(rconnect(client, any(a), sizeof a), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  end(client);
  client = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  EXPECT_EQ(rfcntl(client, F_GETFD), FD_CLOEXEC);
  ASSERT_EQ(rconnect(client, any(a), sizeof a), -1);
  ASSERT_EQ(errno, EINPROGRESS);
  EXPECT_NE(wait(client, POLLOUT) & POLLERR, 0);
  int error = 0;
  socklen_t length = sizeof error;
  ASSERT_EQ(rgetsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length), 0);
  EXPECT_EQ(error, ECONNREFUSED);
}

TEST_F(ConnectionTest, TwentyClientsConnectAtOnceToAServerThatAcceptsLater) {
  std::vector<std::thread> clients;
  clients.reserve(20);
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back([this] {
      int fd = rsocket(AF_INET, SOCK_STREAM, 0);
      auto a = loopback(port);
      ASSERT_EQ(rconnect(fd, any(a), sizeof a), 0);
      char in = 0;
      EXPECT_EQ(rsend(fd, "q", 1, 0), 1);
      EXPECT_EQ(rrecv(fd, &in, 1, 0), 1);
      EXPECT_EQ(in, 'q');
      end(fd);
    });
  }
  for (int i = 0; i < 20; ++i) {
    int fd = raccept(listener, nullptr, nullptr);
    ASSERT_GE(fd, 0);
    char in = 0;
    EXPECT_EQ(rrecv(fd, &in, 1, 0), 1);
    EXPECT_EQ(rsend(fd, &in, 1, 0), 1);
    EXPECT_EQ(rrecv(fd, &in, 1, 0), 0);
    end(fd);
  }
  for (auto& c : clients) c.join();
}

// However small the backlog, 128 connections may wait.
TEST_F(ConnectionTest, WaitingConnectionsAreBoundedAndTheNextIsRefused) {
  constexpr std::size_t kLeast = 128;
  auto a = loopback(port);
  std::vector<int> waiting;
  for (std::size_t i = 0; i < kLeast; ++i) {
    waiting.push_back(rsocket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(rconnect(waiting.back(), any(a), sizeof a), 0) << i << ": " << strerror(errno);
  }
  // Each is established at this end; the listener may still process the last ones.
  int refused = rsocket(AF_INET, SOCK_STREAM, 0);
  for (std::size_t more = 0; rconnect(refused, any(a), sizeof a) == 0; ++more) {
    ASSERT_LT(more, kLeast) << "nobody is refused";
    waiting.push_back(std::exchange(refused, rsocket(AF_INET, SOCK_STREAM, 0)));
  }
  EXPECT_EQ(errno, ECONNREFUSED);
  end(refused);
  int accepted = raccept(listener, nullptr, nullptr);
  ASSERT_GE(accepted, 0);
  EXPECT_EQ(rconnect(client, any(a), sizeof a), 0) << "there is a place again";
  end(accepted);
  for (int& fd : waiting) end(fd);
}

// A hand-written peer: an MPA Request (RFC 6581) of an end that announces an RTR and does not send
// it.
int ask_and_fall_silent(std::uint16_t port) {
  urnic::rsockets::ConnectionData d;
  d.credits = 16;
  d.targets = {4096, 1, 2};
  d.buffer = {8192, 2, 65536};
  const auto data = urnic::rsockets::encode(d);
  std::vector<std::uint8_t> m;
  for (const char c : std::string("MPA ID Req Frame")) m.push_back(static_cast<std::uint8_t>(c));
  const auto length = static_cast<std::uint8_t>(data.size() + 4);
  // CRC and enhanced set-up, revision 2; IRD 1 (peer to peer, RTR by Send), ORD 1 (or by Write,
  // Read)
  m.insert(m.end(), {0x50, 2, 0, length, 0xc0, 1, 0xc0, 1});
  m.insert(m.end(), data.begin(), data.end());
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto a = loopback(port);
  EXPECT_EQ(::connect(fd, any(a), sizeof a), 0);
  EXPECT_EQ(::send(fd, m.data(), m.size(), MSG_NOSIGNAL), static_cast<ssize_t>(m.size()));
  return fd;
}

// True if the peer's Reply accepts; the peer then waits for the RTR.
bool is_let_in(int fd) {
  std::array<std::uint8_t, 20> reply{};
  EXPECT_EQ(::recv(fd, reply.data(), reply.size(), MSG_WAITALL), 20);
  return (reply[16] & 0x20) == 0;
}

TEST_F(ConnectionTest, UnfinishedConnectionsAreBounded) {
  constexpr std::size_t kLeast = 128;
  std::vector<int> silent;
  for (std::size_t i = 0; i < kLeast; ++i) {
    silent.push_back(ask_and_fall_silent(port));
    ASSERT_TRUE(is_let_in(silent.back())) << i;
  }
  const int refused = ask_and_fall_silent(port);
  EXPECT_FALSE(is_let_in(refused));
  ::close(refused);
  for (const int fd : silent) ::close(fd);
  EXPECT_EQ(wait(listener, POLLIN, 0), 0) << "none of them is one to accept";
  // When the listener has processed their end there is room again.
  auto a = loopback(port);
  int result = -1;
  urnic::test::soon([&] {
    end(client);
    client = rsocket(AF_INET, SOCK_STREAM, 0);
    result = rconnect(client, any(a), sizeof a);
    return result == 0 || errno != ECONNREFUSED;
  });
  EXPECT_EQ(result, 0) << std::strerror(errno);
}

// proves: DI-17
TEST_F(ConnectionTest, OneEndMaySendAfterTheOtherHasShutDownWriting) {
  connect();
  ASSERT_EQ(rsend(client, "question", 8, 0), 8);
  ASSERT_EQ(rshutdown(client, SHUT_WR), 0);
  char in[16];
  EXPECT_EQ(rrecv(server, in, 8, MSG_WAITALL), 8);
  EXPECT_EQ(rrecv(server, in, 1, 0), 0);
  EXPECT_EQ(wait(server, POLLIN | POLLOUT), POLLIN | POLLOUT);
  EXPECT_EQ(rsend(client, "x", 1, 0), -1);
  EXPECT_EQ(errno, EPIPE);
  ASSERT_EQ(rsend(server, "answer", 6, 0), 6);
  EXPECT_EQ(rrecv(client, in, 6, MSG_WAITALL), 6);
  ASSERT_EQ(rshutdown(server, SHUT_WR), 0);
  EXPECT_EQ(rrecv(client, in, 1, 0), 0);
  EXPECT_NE(wait(client, POLLIN) & POLLHUP, 0);
}

// An event loop waits in the kernel, and does not call the library until it is woken.
// proves: DI-15
TEST_F(ConnectionTest, TheKernelShowsTheHangUpOfAnEndThatShutBothDirectionsDown) {
  connect();
  ASSERT_EQ(rshutdown(client, SHUT_RDWR), 0);
  for (const int fd : {client, server}) {
    pollfd p{fd, 0, 0};
    EXPECT_EQ(poll(&p, 1, urnic::test::kSoonMs), 1);
    EXPECT_EQ(p.revents, POLLHUP);
  }
}

// proves: DI-17
TEST_F(ConnectionTest, DataSentBeforeACloseIsReadAfterIt) {
  connect();
  std::vector<char> all(100'000, 'a'), in(all.size());
  ASSERT_EQ(rsend(client, all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
  end(client);
  EXPECT_EQ(rrecv(server, in.data(), in.size(), MSG_WAITALL), static_cast<ssize_t>(in.size()));
  EXPECT_EQ(in, all);
  EXPECT_EQ(rrecv(server, in.data(), 1, 0), 0);
  EXPECT_EQ(rsend(server, in.data(), 1, 0), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_NE(wait(server, POLLIN) & POLLHUP, 0);
}

// proves: DI-17
TEST_F(ConnectionTest, CloseWithoutLingerResets) {
  connect();
  const linger none{1, 0};
  ASSERT_EQ(rsetsockopt(client, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
  end(client);
  char in;
  EXPECT_EQ(rrecv(server, &in, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(ConnectionTest, AWaitingThreadIsWokenByTheEndOfTheConnection) {
  connect();
  std::thread closes([this] {
    usleep(50'000);
    end(client);
  });
  char in;
  EXPECT_EQ(rrecv(server, &in, 1, 0), 0);
  closes.join();
}

// Runs `f` in a child with the library for itself; the child fails if `f` returns false or crashes.
template <class F>
pid_t in_child(F&& f) {
  const pid_t child = urnic::test::quiet_fork();
  if (child == 0) _exit(f() ? 0 : 1);
  return child;
}

bool went_well(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(ConnectionTest, ANewProcessConnectsAndIsServed) {
  SKIP_UNDER_TSAN();
  const pid_t child = in_child([this] {
    const int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    auto a = loopback(port);
    char in[5];
    return rconnect(fd, any(a), sizeof a) == 0 && rsend(fd, "hello", 5, 0) == 5 &&
           rrecv(fd, in, 5, MSG_WAITALL) == 5 && rclose(fd) == 0;
  });
  server = raccept(listener, nullptr, nullptr);
  ASSERT_GE(server, 0);
  char in[5];
  EXPECT_EQ(rrecv(server, in, 5, MSG_WAITALL), 5);
  EXPECT_EQ(rsend(server, in, 5, 0), 5);
  EXPECT_EQ(rrecv(server, in, 1, 0), 0);
  EXPECT_TRUE(went_well(child));
}

// proves: DI-17
TEST_F(ConnectionTest, AKilledPeerIsAnErrorAfterTheDataItHadSent) {
  SKIP_UNDER_TSAN();
  const pid_t child = in_child([this] {
    const int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    auto a = loopback(port);
    if (rconnect(fd, any(a), sizeof a) != 0 || rsend(fd, "last words", 10, 0) != 10) return false;
    for (;;) pause();
  });
  server = raccept(listener, nullptr, nullptr);
  ASSERT_GE(server, 0);
  EXPECT_EQ(wait(server, POLLIN), POLLIN);
  kill(child, SIGKILL);
  EXPECT_FALSE(went_well(child));
  char in[64];
  EXPECT_EQ(rrecv(server, in, sizeof in, 0), 10);
  EXPECT_EQ(rrecv(server, in, sizeof in, 0), -1) << "which waits for it";
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(rsend(server, in, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  const short seen = wait(server, POLLIN);
  EXPECT_EQ(seen & (POLLHUP | POLLERR), POLLHUP | POLLERR);
}

TEST_F(ConnectionTest, ASendToAKilledPeerDoesNotBlockForever) {
  SKIP_UNDER_TSAN();
  const pid_t child = in_child([this] {
    const int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    auto a = loopback(port);
    if (rconnect(fd, any(a), sizeof a) != 0) return false;
    for (;;) pause();
  });
  server = raccept(listener, nullptr, nullptr);
  ASSERT_GE(server, 0);
  std::thread kills([&] {
    usleep(100'000);
    kill(child, SIGKILL);
  });
  const std::vector<char> much(4'000'000);
  const ssize_t n = rsend(server, much.data(), much.size(), 0);
  EXPECT_LT(n, static_cast<ssize_t>(much.size())) << "it does not read";
  EXPECT_EQ(rsend(server, much.data(), 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  kills.join();
  EXPECT_FALSE(went_well(child));
}

// proves: DI-17
TEST_F(ConnectionTest, AProcessThatExitsWithoutClosingEndsItsConnectionsInOrder) {
  SKIP_UNDER_TSAN();
  const pid_t child = urnic::test::quiet_fork();
  if (child == 0) {
    const int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    auto a = loopback(port);
    if (rconnect(fd, any(a), sizeof a) == 0) rsend(fd, "bye", 3, 0);
    std::exit(0);
  }
  server = raccept(listener, nullptr, nullptr);
  char in[8];
  EXPECT_EQ(rrecv(server, in, sizeof in, 0), 3);
  EXPECT_EQ(rrecv(server, in, sizeof in, 0), 0);
  waitpid(child, nullptr, 0);
}

// A thread inside a call at that moment has the connection locked until the call ends.
TEST_F(ConnectionTest, AProcessThatExitsDuringCallsEndsItsConnectionsInOrder) {
  SKIP_UNDER_TSAN();
  for (int i = 0; i < 20; ++i) {
    const pid_t child = urnic::test::quiet_fork();
    if (child == 0) {
      const int fd = rsocket(AF_INET, SOCK_STREAM, 0);
      auto a = loopback(port);
      if (rconnect(fd, any(a), sizeof a) != 0) _exit(1);
      for (int thread = 0; thread < 3; ++thread) {
        std::thread([fd] {
          char in;
          for (;;) rrecv(fd, &in, 1, MSG_DONTWAIT);
        }).detach();
      }
      usleep(20'000);  // gives them time to run
      rsend(fd, "bye", 3, 0);
      std::exit(0);
    }
    server = raccept(listener, nullptr, nullptr);
    char in[8];
    EXPECT_EQ(rrecv(server, in, sizeof in, 0), 3);
    EXPECT_EQ(rrecv(server, in, sizeof in, 0), 0) << "end " << i << ": " << std::strerror(errno);
    EXPECT_TRUE(went_well(child));
    end(server);
  }
}

TEST_F(ConnectionTest, AChildCannotUseItsParentsConnections) {
  SKIP_UNDER_TSAN();
  connect();
  const pid_t child = in_child([this] {
    char in;
    const bool refused = rsend(client, "x", 1, 0) == -1 && errno == EOPNOTSUPP &&
                         rrecv(server, &in, 1, 0) == -1 && errno == EOPNOTSUPP;
    return refused && rclose(client) == 0 && rclose(client) == -1 && errno == EBADF;
  });
  EXPECT_TRUE(went_well(child));
  EXPECT_EQ(rsend(client, "y", 1, 0), 1) << "the child's close is its own";
  char in = 0;
  EXPECT_EQ(rrecv(server, &in, 1, 0), 1);
  EXPECT_EQ(in, 'y');
}

// proves: DI-18
TEST_F(ConnectionTest, WrongUseFails) {
  const auto fails = [](long result, int error) { return result == -1 && errno == error; };
  EXPECT_TRUE(fails(rsocket(AF_INET, SOCK_DGRAM, 0), ESOCKTNOSUPPORT)) << "datagrams need UD";
  EXPECT_TRUE(fails(rsocket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT));
  EXPECT_TRUE(fails(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT));
  char c = 0;
  for (const int none : {-1, 0, 1 << 25}) {
    EXPECT_TRUE(fails(rsend(none, &c, 1, 0), EBADF)) << none;
    EXPECT_TRUE(fails(rrecv(none, &c, 1, 0), EBADF));
    EXPECT_TRUE(fails(rclose(none), EBADF));
    EXPECT_TRUE(fails(rshutdown(none, SHUT_RD), EBADF));
    EXPECT_TRUE(fails(rfcntl(none, F_GETFL), EBADF));
    EXPECT_TRUE(fails(riounmap(none, &c, 1), EBADF));
  }
  auto a = loopback(port);
  EXPECT_TRUE(fails(rbind(client, any(a), sizeof a), EADDRINUSE));
  EXPECT_TRUE(fails(rbind(client, nullptr, 0), EINVAL));
  EXPECT_TRUE(fails(rbind(client, any(a), 4), EAFNOSUPPORT) || errno == EINVAL);
  EXPECT_TRUE(fails(rsend(client, &c, 1, 0), EPIPE)) << "it is not connected";
  EXPECT_TRUE(fails(rrecv(client, &c, 1, 0), ENOTCONN));
  EXPECT_TRUE(fails(raccept(client, nullptr, nullptr), EINVAL));
  EXPECT_TRUE(fails(rshutdown(client, SHUT_RD), ENOTCONN));
  EXPECT_TRUE(fails(riomap(client, &c, 1, PROT_WRITE, 0, -1), ENOTCONN));
  connect();
  EXPECT_TRUE(fails(rshutdown(client, 9), EINVAL));
  EXPECT_TRUE(fails(rsend(client, &c, 1, MSG_OOB), EOPNOTSUPP));
  EXPECT_TRUE(fails(rlisten(client, 1), EINVAL));
  EXPECT_TRUE(fails(riomap(client, &c, 1, PROT_READ, 0, 0), EINVAL));
  EXPECT_TRUE(fails(rsendto(client, &c, 1, 0, any(a), sizeof a), EISCONN));
  EXPECT_EQ(rsend(client, &c, 0, 0), 0);
}

// proves: DI-18
TEST_F(ConnectionTest, KnownOptionsAreStoredAndUnknownOnesAreRefused) {
  const auto get = [this](int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return rgetsockopt(client, level, name, &value, &length) == 0 ? value : -errno;
  };
  set(SOL_SOCKET, SO_SNDBUF, 100'001);
  EXPECT_EQ(get(SOL_SOCKET, SO_SNDBUF), 100'000) << "an even number";
  set(SOL_RDMA, RDMA_RQSIZE, 5);
  EXPECT_EQ(get(SOL_RDMA, RDMA_RQSIZE), 16) << "the least there is";
  set(SOL_RDMA, RDMA_IOMAPSIZE, 200);
  EXPECT_EQ(get(SOL_RDMA, RDMA_IOMAPSIZE), 128) << "as the peer can be told";
  for (const int name : {TCP_NODELAY, TCP_KEEPIDLE, TCP_KEEPCNT}) {
    set(IPPROTO_TCP, name, 1);
    EXPECT_EQ(get(IPPROTO_TCP, name), 1);
  }
  EXPECT_EQ(get(SOL_SOCKET, SO_TYPE), SOCK_STREAM);
  EXPECT_EQ(get(SOL_SOCKET, SO_DOMAIN), AF_INET);
  EXPECT_EQ(get(SOL_SOCKET, SO_ACCEPTCONN), 0);
  EXPECT_EQ(get(IPPROTO_TCP, TCP_CONGESTION), -ENOPROTOOPT);
  EXPECT_EQ(get(SOL_SOCKET, SO_MARK), -ENOPROTOOPT);
  EXPECT_EQ(get(77, 1), -ENOPROTOOPT);
  int zero = 0;
  EXPECT_EQ(rsetsockopt(client, IPPROTO_TCP, TCP_KEEPIDLE, &zero, sizeof zero), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rsetsockopt(client, SOL_SOCKET, SO_SNDBUF, &zero, 1), -1);
  EXPECT_EQ(errno, EINVAL);
  connect();
  EXPECT_EQ(rsetsockopt(client, SOL_RDMA, RDMA_SQSIZE, &zero, sizeof zero), -1);
  EXPECT_EQ(errno, EINVAL) << "the queues are made";
}

}  // namespace
}  // namespace ends
