#include "cli/lan/wire_phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace urnic::cli {
namespace {

using testing::HasSubstr;

TEST(WirePhases, LimitsBySizeTimeAndSignal) {
  auto p = parse_phases(" corrupt=0.001@64M ; loss=0.01:3@1.5s;clean@signal; reseg=0.5 ");
  ASSERT_TRUE(p.ok()) << p.error();
  ASSERT_EQ(p->size(), 4u);
  EXPECT_EQ((*p)[0].bytes, 64u << 20);
  EXPECT_DOUBLE_EQ((*p)[0].plan.corrupt, 0.001);
  EXPECT_EQ((*p)[1].milliseconds, 1500u);
  EXPECT_EQ((*p)[1].plan.loss_burst, 3u);
  EXPECT_TRUE((*p)[2].until_signal);
  EXPECT_TRUE((*p)[2].plan.idle());
  EXPECT_EQ((*p)[3].bytes, 0u);
  EXPECT_EQ((*p)[3].text, "reseg=0.5");
}

TEST(WirePhases, MinutesAndMebibytesAreDistinguished) {
  EXPECT_EQ(parse_phases("clean@2m; clean")->front().milliseconds, 120'000u);
  EXPECT_EQ(parse_phases("clean@2M; clean")->front().bytes, 2u << 20);
}

TEST(WirePhases, InvalidPhasesGiveTheReason) {
  EXPECT_THAT(parse_phases("").error(), HasSubstr("no phase"));
  EXPECT_THAT(parse_phases(" ; ").error(), HasSubstr("no phase"));
  EXPECT_THAT(parse_phases("clean; clean").error(), HasSubstr("never ends"));
  EXPECT_THAT(parse_phases("clean@").error(), HasSubstr("like 64M"));
  EXPECT_THAT(parse_phases("clean@0M").error(), HasSubstr("like 64M"));
  EXPECT_THAT(parse_phases("clean@soon").error(), HasSubstr("'soon'"));
  EXPECT_THAT(parse_phases("losss=1@5s").error(), HasSubstr("losss"));
}

}  // namespace
}  // namespace urnic::cli
