#include <gtest/gtest.h>

#include "port/port.h"

namespace urnic::port {
namespace {

TEST(Args, ReadsKeysAndValuesAndUsesDefaults) {
  Args a("socket=/run/u.sock, role=server ,mtu=9000");
  EXPECT_EQ(a.str("socket"), "/run/u.sock");
  EXPECT_EQ(a.str("role", "client"), "server");
  EXPECT_EQ(a.num("mtu", 1500, 68, 65521), 9000u);
  EXPECT_EQ(a.num("rsize", 8, 4, 14), 8u);
  EXPECT_TRUE(a.has("mtu"));
  EXPECT_FALSE(a.has("rsize"));
  EXPECT_EQ(a.finish(), "");
}

TEST(Args, NamesAnUnknownKeyAndTheKnownOnes) {
  Args a("sokcet=/x");
  a.str("socket");
  a.str("role");
  const std::string e = a.finish();
  EXPECT_NE(e.find("'sokcet'"), std::string::npos) << e;
  EXPECT_NE(e.find("socket, role"), std::string::npos) << e;
}

TEST(Args, RefusesARepeatedKey) {
  Args a("mtu=1500,mtu=9000");
  a.num("mtu", 0, 0, 10000);
  EXPECT_NE(a.finish().find("twice"), std::string::npos);
}

TEST(Args, RefusesItemsWithoutAKeyOrAnEqualsSign) {
  for (const char* text : {"server", "=x", " = ", "a=1,b"}) {
    Args a(text);
    a.str("a");
    EXPECT_NE(a.finish().find("key=value"), std::string::npos) << text;
  }
}

TEST(Args, RefusesNumbersThatAreNotWholeOrOutOfRange) {
  for (const char* text :
       {"n=", "n=abc", "n=12x", "n=-1", "n=1.5", "n=3", "n=101", "n=99999999999999999999999"}) {
    Args a(text);
    EXPECT_EQ(a.num("n", 7, 4, 100), 7u) << text;
    EXPECT_NE(a.finish().find("from 4 to 100"), std::string::npos) << text << ": " << a.finish();
  }
}

TEST(Args, ACommaInsideQuotesBelongsToTheValue) {
  Args a("vdev=\"net_af_packet0,iface=veth0\",q=1");
  EXPECT_EQ(a.str("vdev"), "net_af_packet0,iface=veth0");
  EXPECT_EQ(a.str("q"), "1");
  EXPECT_EQ(a.finish(), "");
}

TEST(Args, RefusesAnOpenQuote) {
  Args a("x=\"abc");
  a.str("x");
  EXPECT_NE(a.finish().find("quote"), std::string::npos);
}

TEST(Args, SwitchesAreOnOrOff) {
  Args a("a=on,b=0,c=maybe");
  EXPECT_TRUE(a.on_off("a", false));
  EXPECT_FALSE(a.on_off("b", true));
  EXPECT_TRUE(a.on_off("d", true));
  EXPECT_TRUE(a.on_off("c", true));
  EXPECT_NE(a.finish().find("on or off"), std::string::npos);
}

}  // namespace
}  // namespace urnic::port
