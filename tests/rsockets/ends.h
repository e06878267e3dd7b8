// Two connected rsockets in one process, over the kernel's TCP on loopback.
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rsocket.h>

#include <cstdint>

namespace ends {

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  a.sin_port = htons(port);
  return a;
}

inline sockaddr* any(sockaddr_in& a) {
  return reinterpret_cast<sockaddr*>(&a);
}

inline std::uint16_t port_of(int fd) {
  sockaddr_in a{};
  socklen_t length = sizeof a;
  EXPECT_EQ(rgetsockname(fd, any(a), &length), 0);
  EXPECT_EQ(length, sizeof a);
  return ntohs(a.sin_port);
}

// Waits until one of `events` is ready, and returns which.
inline short wait(int fd, short events, int ms = 20'000) {
  pollfd p{fd, events, 0};
  return rpoll(&p, 1, ms) == 1 ? p.revents : short{0};
}

inline void make_non_blocking(int fd) {
  ASSERT_EQ(rfcntl(fd, F_SETFL, rfcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

class EndsTest : public testing::Test {
 protected:
  // The accepted end inherits the settings of `listener`.
  void SetUp() override {
    listener = rsocket(AF_INET, SOCK_STREAM, 0);
    client = rsocket(AF_INET, SOCK_STREAM, 0);
    ASSERT_GE(listener, 0);
    ASSERT_GE(client, 0);
    auto a = loopback(0);
    ASSERT_EQ(rbind(listener, any(a), sizeof a), 0);
    ASSERT_EQ(rlisten(listener, 5), 0);
    port = port_of(listener);
    ASSERT_NE(port, 0);
  }
  void connect() {
    auto a = loopback(port);
    ASSERT_EQ(rconnect(client, any(a), sizeof a), 0);
    server = raccept(listener, nullptr, nullptr);
    ASSERT_GE(server, 0);
  }
  void set(int level, int name, int value) {
    for (const int fd : {listener, client}) {
      ASSERT_EQ(rsetsockopt(fd, level, name, &value, sizeof value), 0) << name;
    }
  }
  void TearDown() override {
    for (int* fd : {&client, &server, &listener}) end(*fd);
  }
  static void end(int& fd) {
    if (fd >= 0) {
      EXPECT_EQ(rclose(fd), 0);
    }
    fd = -1;
  }

  int listener = -1, client = -1, server = -1;
  std::uint16_t port = 0;
};

}  // namespace ends
