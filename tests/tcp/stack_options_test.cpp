#include "tcp/stack_options.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tcp/stack.h"

namespace urnic::tcp {
namespace {

constexpr int kOptions = static_cast<int>(Option::SynCookies) + 1;

TEST(StackOptions, EveryOptionHasANameAndIsStored) {
  std::set<std::string> names;
  for (int i = 0; i < kOptions; ++i) {
    const auto o = static_cast<Option>(i);
    const std::string name(option_name(o));
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(option_from_name(name), o);
    // Each option is independent: setting one changes no other.
    EndpointOptions e;
    const std::int64_t before = get_option(e, o);
    const std::int64_t value = before < 0    ? 0
                               : before == 0 ? (set_option(e, o, 1000) ? 1000 : 1)
                                             : before - 1;
    ASSERT_TRUE(set_option(e, o, value)) << name;
    EXPECT_EQ(get_option(e, o), value) << name;
    const EndpointOptions fresh;
    for (int k = 0; k < kOptions; ++k) {
      const auto other = static_cast<Option>(k);
      if (k == i) continue;
      EXPECT_EQ(get_option(e, other), get_option(fresh, other)) << name << option_name(other);
    }
  }
}

TEST(StackOptions, UnknownOptionsAndValuesAreRefused) {
  EndpointOptions e;
  EXPECT_FALSE(set_option(e, static_cast<Option>(200), 1));
  EXPECT_FALSE(option_from_name("no-such-thing").has_value());
  EXPECT_EQ(option_name(static_cast<Option>(200)), "unknown");
  const std::pair<Option, std::int64_t> bad[] = {
      {Option::Sack, 2},          {Option::WindowShift, 15}, {Option::Mtu, 100},
      {Option::Mtu, 65536},       {Option::RtoMin, 0},       {Option::AckPolicy, 3},
      {Option::Ecn, 3},           {Option::Linger, 1},       {Option::CongestionControl, 4},
      {Option::ReceiveBuffer, 0}, {Option::SendBuffer, -1},  {Option::UserTimeout, -1}};
  for (const auto& [o, v] : bad) EXPECT_FALSE(set_option(e, o, v)) << option_name(o) << v;
}

TEST(StackOptions, SomeAreFixedWhenTheConnectionOpens) {
  EXPECT_FALSE(changeable_when_open(Option::Sack));
  EXPECT_FALSE(changeable_when_open(Option::Mtu));
  EXPECT_TRUE(changeable_when_open(Option::Nagle));
  EXPECT_TRUE(changeable_when_open(Option::ReceiveBuffer));
  StackConfig c;
  c.addresses = {IpAddress::v4(10, 0, 0, 1)};
  Stack s(c);
  const Endpoint e = s.open();
  const Instant now = Instant::from_ns(0);
  EXPECT_EQ(s.set_option(e, Option::Sack, 0, now), Status::Ok);
  EXPECT_EQ(s.option(e, Option::Sack), 0);
  s.connect(e, {IpAddress::v4(10, 0, 0, 2), 80}, now);
  EXPECT_EQ(s.set_option(e, Option::Sack, 1, now), Status::Invalid);
  EXPECT_EQ(s.set_option(e, Option::Nagle, 1, now), Status::Ok);
  EXPECT_EQ(s.option(e, Option::Nagle), 1);
  EXPECT_FALSE(s.option(e, static_cast<Option>(99)).has_value());
  EXPECT_EQ(s.set_option(e, static_cast<Option>(99), 1, now), Status::Invalid);
  EXPECT_EQ(s.set_default(static_cast<Option>(99), 1), Status::Invalid);
}

}  // namespace
}  // namespace urnic::tcp
