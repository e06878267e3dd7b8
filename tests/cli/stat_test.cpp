// The output of `urnic stat` for an engine's counters, in each format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/stat_client.h"

namespace urnic::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

EngineStats sample() {
  EngineStats s;
  s.name = "urnic \"target\"";
  s.pid = 4711;
  s.port.spec = "memif:socket=/tmp/x";
  s.port.link_up = true;
  s.port.rx_frames = 1234567;
  s.ended.iwarp.bytes_fast = 600;
  ConnectionStats c;
  c.local = "10.77.0.1:18515";
  c.peer = "10.77.0.2:4";
  c.state = "established";
  c.iwarp.slow_reason = "downgraded";
  c.iwarp.bytes_fast = 300;
  c.iwarp.bytes_slow = 100;
  c.iwarp.downgrades = 2;
  c.iwarp.reasons[1] = 9;
  s.connections = {c};
  return s;
}

TEST(StatText, TheTableSumsOpenAndEndedConnections) {
  const std::string text = stat_table(sample());
  EXPECT_THAT(text, HasSubstr("1 234 567"));
  EXPECT_THAT(text, HasSubstr("90.00 % of 1000 B on the FAST path"));
  EXPECT_THAT(text, HasSubstr("2 downgrades"));
  EXPECT_THAT(text, HasSubstr("SLOW: downgraded"));
  EXPECT_THAT(text, HasSubstr("75.00 %"));
  EXPECT_THAT(text, HasSubstr(std::string(reason_label(1)) + " 9"));
}

TEST(StatText, RoceCongestionHasARowIfThereWereSignals) {
  EngineStats s = sample();
  EXPECT_THAT(stat_table(s), Not(HasSubstr("window reduced")));
  RoceStats& r = s.ended.roce;
  r.window_reductions = 3;
  r.cnps_received = 4;
  r.cnps_ignored = 1;
  r.cnps_sent = 5;
  r.ce_marks_received = 6;
  const std::string said =
      "window reduced 3 times; CNPs 4 in (1 ignored), 5 out; 6 packets received with a CE mark";
  EXPECT_THAT(stat_table(s), HasSubstr("RoCE congestion"));
  EXPECT_THAT(stat_table(s), HasSubstr(said));
  // Each alone is sufficient.
  for (std::uint64_t RoceStats::*one : {&RoceStats::window_reductions, &RoceStats::cnps_received,
                                        &RoceStats::cnps_sent, &RoceStats::ce_marks_received}) {
    EngineStats t = sample();
    t.ended.roce.*one = 1;
    EXPECT_THAT(stat_table(t), HasSubstr("window reduced"));
  }
}

// proves: E-48
TEST(StatText, EveryCounterIsShownInEveryForm) {
  EngineStats none = sample();
  none.ended.verbs.payload_placed = 1000;  // the copied bytes are shown relative to it
  const auto expect_shown = [&](const char* name, const std::string& metric, const EngineStats& s) {
    EXPECT_NE(stat_table(s), stat_table(none)) << name;
    EXPECT_THAT(stats_to_json(s), HasSubstr("\"" + std::string(name) + "\": 987654321")) << name;
    EXPECT_THAT(stat_prometheus({s}), HasSubstr("\nurnic_" + metric + "{")) << name;
    EXPECT_THAT(stat_prometheus({s}), HasSubstr("} 987654321\n")) << name;
  };
  for (const auto& c : connection_counters()) {
    EngineStats s = none;
    c.of(s.ended) = 0;
    c.of(s.connections[0]) = 987654321;
    expect_shown(c.name, std::string(c.name) + "_total", s);
  }
  for (const auto& c : engine_counters()) {
    EngineStats s = none;
    c.of(s) = 987654321;
    expect_shown(c.name, std::string(c.name) + "_total", s);
  }
  for (const auto& c : engine_gauges()) {
    EngineStats s = none;
    c.of(s) = 987654321;
    expect_shown(c.name, c.name, s);
  }
}

TEST(StatText, PrometheusNamesEachMetricOnceAndEscapesLabels) {
  const std::string text = stat_prometheus({sample(), sample()});
  EXPECT_THAT(text,
              HasSubstr("urnic_rx_frames_total{pid=\"4711\",name=\"urnic \\\"target\\\"\",port="
                        "\"memif:socket=/tmp/x\"} 1234567\n"));
  EXPECT_THAT(text, HasSubstr("urnic_connections{"));
  std::size_t types = 0;
  for (std::size_t at = 0;
       (at = text.find("# TYPE urnic_bytes_fast_total", at)) != std::string::npos; ++at)
    ++types;
  EXPECT_EQ(types, 1u);
  EXPECT_THAT(text, HasSubstr("} 900\n"));
}

}  // namespace
}  // namespace urnic::cli
