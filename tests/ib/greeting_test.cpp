#include "ib/greeting.h"

#include <gtest/gtest.h>

namespace urnic::ib {
namespace {

QpAttributes attributes() {
  QpAttributes qp;
  qp.dest_qp = 0x77;
  qp.sq_psn = Psn(5);
  qp.rq_psn = Psn(9);
  return qp;
}

// proves: S-7
TEST(Greeting, SendsAtMostThreeHellos) {
  Greeting g;
  EXPECT_TRUE(g.due().is_never());
  Instant now = Instant::from_ns(1000);
  g.begin(now);
  int asked = 0;
  Hello hello;
  for (; asked < 10; ++asked) {
    if (!g.wanted()) {
      if (g.due().is_never()) break;
      now = g.due();
      g.on_time(now);
    }
    ASSERT_TRUE(g.wanted());
    const PacketHeader h = g.next(attributes(), true, &hello);
    EXPECT_EQ(h.bth.opcode, kHelloOpcode);
    EXPECT_EQ(h.bth.dest_qp, 0x77u);
    EXPECT_EQ(h.bth.psn, Psn(5));
    EXPECT_TRUE(hello.selective && hello.answer && hello.parts);
    EXPECT_FALSE(g.wanted());
  }
  EXPECT_EQ(asked, Greeting::kTimes);
  EXPECT_EQ(now, Instant::from_ns(1000) + Duration::ms(110));
}

// proves: S-7
TEST(Greeting, StopsWhenThePeerIsHeardAndAnswersAHelloThatAsks) {
  Greeting g;
  Hello hello;
  g.begin(Instant::from_ns(0));
  g.next(attributes(), true, &hello);
  g.heard({true, false});
  EXPECT_TRUE(g.due().is_never());
  EXPECT_FALSE(g.wanted());
  for (int i = 0; i < 3; ++i) {
    g.heard({true, true});
    ASSERT_TRUE(g.wanted());
    EXPECT_EQ(g.next(attributes(), false, &hello).bth.psn, Psn(9));
    EXPECT_FALSE(hello.answer);
    EXPECT_FALSE(g.wanted());
  }
}

// proves: S-7
TEST(Greeting, AHelloWithoutAFirstPsnIsNotFromThePeer) {
  PacketHeader h;
  for (const std::uint32_t psn : {0u, 5u, 9u}) {
    h.bth.psn = Psn(psn);
    EXPECT_EQ(Greeting::is_of_peer(h, attributes(), true), psn != 0) << psn;
    EXPECT_EQ(Greeting::is_of_peer(h, attributes(), false), psn == 9) << psn;
  }
}

}  // namespace
}  // namespace urnic::ib
