// Forged SYNs: the listener's table of half-open connections is bounded, and real connections still
// open (RFC 4987).
#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/support/hand_peer.h"

namespace urnic::test {
namespace {

TEST(Listener, ASynFloodIsAnsweredByCookies_RFC4987_3_6) {
  HandPeer p;
  p.flood = 50;
  ASSERT_TRUE(p.up());
  const EngineStats s = p.engine_stats();
  EXPECT_EQ(s.iwarp.cookies_sent, 47u);  // for all of the flood except the backlog of four, and for
                                         // ours
  EXPECT_EQ(s.iwarp.cookies_taken, 1u);
  EXPECT_EQ(s.connections_opened, 5u) << "nothing is kept for the others";
  EXPECT_TRUE(p.fast());
  Rng rng(3);
  const auto data = testing::random_bytes(rng, 300);
  p.send(0, p.write(64, data));
  EXPECT_EQ(p.at(64, 300), data);
}

TEST(Listener, WithRoomNoCookieIsSent_RFC4987_3_6) {
  HandPeer p;
  p.flood = 3;
  ASSERT_TRUE(p.up());
  EXPECT_EQ(p.engine_stats().iwarp.cookies_sent, 0u);
}

TEST(Listener, AForgedAnswerOpensNothing_RFC4987_3_6) {
  HandPeer p;
  p.flood = 50;
  ASSERT_TRUE(p.up());
  Cut forged;
  forged.source_port = 20000;
  const auto got = p.burst({forged});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_TRUE(got[0].seg.has(tcp::kRst));
  EXPECT_EQ(p.engine_stats().iwarp.cookies_taken, 1u);
}

}  // namespace
}  // namespace urnic::test
