// Peers that connect over the kernel's TCP and send nothing: the oldest of them makes room for a
// new connection (docs/decisions/silent-peers.md).
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <vector>

#include "iwarp/stream_ends.h"
#include "port/fd.h"
#include "tests/support/soon.h"

namespace urnic::test {
namespace {

constexpr int kBacklog = 4;

// proves: E-50
TEST(SilentSockets, TheOldestOfAFullBacklogMakesRoom) {
  using namespace stream_test;
  Device server = open(), client = open();
  auto listener = server.listen(0, kBacklog);
  ASSERT_TRUE(listener.ok());
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(listener->port());
  std::vector<port::Fd> silent;
  // Each from its own address: there are four times as many places as one address may have.
  for (int i = 0; i < 4 * kBacklog; ++i) {
    silent.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + static_cast<unsigned>(i));
    ASSERT_EQ(bind(silent.back().get(), reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
    ASSERT_EQ(connect(silent.back().get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ASSERT_TRUE(soon([&] { return server.stats().connections.size() == 4 * kBacklog; }));
  End s(server, 64), c(client, 64);
  const auto from = std::chrono::steady_clock::now();
  ASSERT_TRUE(c.qp.connect_start("127.0.0.1:" + std::to_string(listener->port())).ok());
  auto request = listener->next(60000);
  ASSERT_TRUE(request.ok()) << request.error().message;
  // Silent peers have 10 s (iwarp::Options::startup_timeout), then all of them make room.
  EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::seconds(8));
  EXPECT_TRUE(request->accept(s.qp).ok());
  // The first of them was closed.
  char byte;
  EXPECT_LE(recv(silent.front().get(), &byte, 1, MSG_DONTWAIT), 0);
  EXPECT_NE(errno, EAGAIN);
  errno = 0;
  EXPECT_EQ(recv(silent.back().get(), &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
}  // namespace urnic::test
