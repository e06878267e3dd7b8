#include "tcp/dctcp.h"

#include <gtest/gtest.h>

#include "tcp/congestion.h"

namespace urnic::tcp {
namespace {

// Simulates `windows` windows of 10 segments each, `marked` of them marked.
void observe(Dctcp& d, int windows, int marked) {
  for (int w = 0; w < windows; ++w) {
    for (int i = 1; i <= 10; ++i) {
      const StreamOffset una(d.window_end - (i == 10 ? 0 : 1));
      dctcp_acked(d, 1000, i <= marked, una, una + 10000);
    }
  }
}

double alpha(const Dctcp& d) {
  return static_cast<double>(d.alpha) / Dctcp::kOne;
}

Dctcp opened() {
  Dctcp d;
  dctcp_open(d);
  d.window_end = 1000;
  return d;
}

TEST(Dctcp, AlphaBeginsAtOneAndFollowsTheMarkedFraction_RFC8257_3_3) {
  Dctcp d = opened();
  EXPECT_EQ(alpha(d), 1.0);
  observe(d, 1, 0);
  EXPECT_NEAR(alpha(d), 15.0 / 16, 1e-5) << "g = 1/16";
  observe(d, 200, 3);
  EXPECT_NEAR(alpha(d), 0.3, 0.001);
  observe(d, 400, 0);
  EXPECT_EQ(alpha(d), 0.0);
  observe(d, 1, 10);
  EXPECT_NEAR(alpha(d), 1.0 / 16, 1e-5);
}

TEST(Dctcp, AMarkCutsByHalfOfAlpha_RFC8257_3_3) {
  Config config;
  config.congestion = CongestionControl::Dctcp;
  Congestion c;
  cc_open(c, config, 1000, false);
  c.cwnd = 100'000;
  cc_reduce(c, 100'000, Cut::Mark);
  EXPECT_EQ(c.ssthresh, 50'000u) << "nothing observed yet";
  c.dctcp.alpha = Dctcp::kOne / 4;
  cc_reduce(c, 100'000, Cut::Mark);
  EXPECT_EQ(c.ssthresh, 87'500u);
  cc_reduce(c, 100'000, Cut::Loss);
  EXPECT_EQ(c.ssthresh, 50'000u) << "a loss is a loss (3.5)";
}

}  // namespace
}  // namespace urnic::tcp
