// The addresses that an rsocket accepts and shows.
#include <netinet/in.h>

#include "rsockets/ends.h"

namespace ends {
namespace {

// proves: DI-18
TEST(RsocketAddresses, AnIpv6WildcardAcceptsIpv4AndShowsItMapped) {
  const int listener = rsocket(AF_INET6, SOCK_STREAM, 0), client = rsocket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in6 a{};
  a.sin6_family = AF_INET6;
  socklen_t length = sizeof a;
  ASSERT_EQ(rbind(listener, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
  ASSERT_EQ(rlisten(listener, 1), 0);
  ASSERT_EQ(rgetsockname(listener, reinterpret_cast<sockaddr*>(&a), &length), 0);
  EXPECT_EQ(a.sin6_family, AF_INET6);
  auto to = loopback(ntohs(a.sin6_port));
  ASSERT_EQ(rconnect(client, any(to), sizeof to), 0);
  length = sizeof a;
  const int server = raccept(listener, reinterpret_cast<sockaddr*>(&a), &length);
  ASSERT_GE(server, 0);
  EXPECT_EQ(a.sin6_family, AF_INET6);
  EXPECT_TRUE(IN6_IS_ADDR_V4MAPPED(&a.sin6_addr));
  for (const int fd : {client, server, listener}) EXPECT_EQ(rclose(fd), 0);
}

}  // namespace
}  // namespace ends
