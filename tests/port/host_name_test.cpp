#include "port/host_name.h"

#include <gmock/gmock.h>

namespace urnic::port {
namespace {

using testing::HasSubstr;

const auto never = [] { return false; };

TEST(HostName, ValidNamesAreRecognized) {
  for (const char* good : {"a", "localhost", "a.b.c", "a.", "a-b", "1a", "3com.example", "a_b",
                           "10.a", "xn--bcher-kva.example"}) {
    EXPECT_TRUE(is_host_name(good)) << good;
  }
  for (const char* bad : {"", ".", "a..b", ".a", "-a", "a b", "a/b", "10", "1.2.3", "10.77.0.300",
                          "a.1", "a:b", "\xc3\xa4", "[a]", "a\n"}) {
    EXPECT_FALSE(is_host_name(bad)) << bad;
  }
  EXPECT_FALSE(is_host_name(std::string(64, 'a')));
  EXPECT_FALSE(is_host_name(std::string(254, 'a')));
}

TEST(HostName, LocalhostIsLoopback) {
  const auto found = addresses_of_host("localhost", 10'000, never);
  ASSERT_TRUE(found.ok()) << found.error();
  for (const IpAddress& ip : *found) EXPECT_TRUE(ip.is_loopback()) << ip.to_string();
}

// RFC 6761, 6.4: no name exists below `invalid`.
TEST(HostName, AnUnknownNameGivesOneLine) {
  const auto found = addresses_of_host("no-such-host.invalid", 20'000, never);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error(), HasSubstr("no-such-host.invalid"));
  EXPECT_THAT(found.error(), testing::Not(HasSubstr("\n")));
}

TEST(HostName, TheCallerNeverWaitsLongerThanItsTimeout) {
  // Before the thread can have an answer, or as soon as it has one, but never later.
  const auto none = addresses_of_host("no-such-host.invalid", 0, never);
  ASSERT_FALSE(none.ok());
  const auto stopped = addresses_of_host("no-such-host.invalid", 60'000, [] { return true; });
  ASSERT_FALSE(stopped.ok());
}

}  // namespace
}  // namespace urnic::port
