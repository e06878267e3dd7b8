#include "cli/sim/sim_text.h"

#include <gmock/gmock.h>

namespace urnic::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// The output for `events` different events.
std::string shown(unsigned events, std::uint64_t left_out = 0) {
  sim::RunResult run;
  run.events_left_out = left_out;
  for (unsigned i = 0; i < events; ++i) {
    run.events.push_back({Duration::us(i), "event", "number " + std::to_string(i) + "."});
  }
  return sim_text({}, {{"", {run}}});
}

TEST(SimText, ATimelineIsLimitedAndReportsOmittedLines) {
  EXPECT_THAT(shown(40), HasSubstr("(number 38.)"));
  EXPECT_THAT(shown(40), Not(HasSubstr("more (--json")));
  const std::string cut = shown(50, 7);
  EXPECT_THAT(cut, HasSubstr("(number 37.)"));
  EXPECT_THAT(cut, Not(HasSubstr("(number 38.)")));
  EXPECT_THAT(cut, HasSubstr("... 18 more (--json has all)"));
  EXPECT_THAT(cut, HasSubstr("(number 49.)")) << "how it ended is always there";
}

}  // namespace
}  // namespace urnic::cli
