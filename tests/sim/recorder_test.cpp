// The recording of a run is bounded, however long the run is.
#include "sim/recorder.h"

#include <gtest/gtest.h>

namespace urnic::sim {
namespace {

constexpr std::string_view kColumns[] = {"time", "sum", "peak"};
constexpr std::size_t kEvents = 300, kSamples = 200;

TEST(Recorder, EventsAreLimitedAndFurtherOnesAreCounted) {
  Instant clock;
  for (int run = 0; run < 2; ++run) {
    Recorder r(clock, kColumns, 2, true);
    for (std::size_t i = 0; i < kEvents; ++i) r.note("kept", "", i);
    EXPECT_EQ(r.events_left_out, 0u);
    for (int i = 0; i < 7; ++i) r.note("too many", "");
    ASSERT_EQ(r.events.size(), kEvents);
    EXPECT_EQ(r.events.back().count, kEvents - 1) << "the first ones stay";
    EXPECT_EQ(r.events_left_out, 7u);
  }
}

TEST(Recorder, ThinnedSamplesCoverTheWholeRunAndKeepThePeak) {
  Instant clock;
  Recorder r(clock, kColumns, 2, true);
  std::size_t most = 0;
  for (std::uint64_t us = 0; us < 100'000; ++us) {
    r.put(1, us);
    r.put(2, us == 777 ? 4711 : 5);
    r.step();
    most = std::max(most, r.samples.size());
    clock = clock + Duration::us(1);
  }
  r.finish();
  EXPECT_EQ(most, kSamples) << "it is driven to the limit, and not beyond";
  EXPECT_GE(r.samples.size(), kSamples / 4);
  EXPECT_EQ(r.samples.front()[0], 0);
  EXPECT_EQ(r.samples.back()[0], Duration::us(100'000).count_ns());
  EXPECT_EQ(r.samples.back()[1], 99'999);
  std::int64_t before = -1, peak = 0;
  for (const Sample& s : r.samples) {
    EXPECT_GT(s[0], before);
    before = s[0];
    peak = std::max(peak, s[2]);
  }
  EXPECT_EQ(peak, 4711) << "what was thinned out has left its peak";
}

}  // namespace
}  // namespace urnic::sim
