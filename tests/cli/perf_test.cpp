#include <gtest/gtest.h>

#include <random>

#include "cli/perf/perf_flow.h"
#include "cli/perf/perf_message.h"
#include "cli/perf/perf_result.h"

namespace urnic::cli {
namespace {

PerfMessage sample(PerfKind kind) {
  PerfMessage m;
  m.kind = kind;
  switch (kind) {
    case PerfKind::Hello:
    case PerfKind::Welcome:
      m.connections = 4;
      m.session = 7;
      m.rkey = 0xabcdef01;
      m.buffer = std::uint64_t{1} << 33;
      m.address = 0x7f0012345678;
      break;
    case PerfKind::Run:
      m.run.op = PerfOp::Send;
      m.run.test = PerfTest::Latency;
      m.run.bidirectional = m.run.verify = true;
      m.run.size = 4097;
      m.run.iterations = 12345678901;
      m.run.duration_ms = 1000;
      m.run.depth = 77;
      m.run.cq_moderation = 8;
      m.run.post_list = 5;
      m.run.inline_size = 220;
      m.run.warm_up = 9;
      m.run.seed = 0x123456789abcdef0;
      m.run.interval_ms = 500;
      m.run.limit = std::uint64_t{3} << 34;
      break;
    case PerfKind::Progress:
    case PerfKind::Done:
    case PerfKind::Report:
      m.messages = 1;
      m.nanoseconds = 2;
      m.errors = 3;
      m.bytes_fast = 4;
      m.bytes_slow = 5;
      m.downgrades = 6;
      m.upgrades = 7;
      m.recoveries = 8;
      m.retransmits = 9;
      m.peak = 10;
      m.latency = {11, 12, 13, 14, 15, 16, 17, 18, 19};
      break;
    case PerfKind::Ready:
      break;
    case PerfKind::Error:
      m.text = "no memory for that";
      break;
  }
  return m;
}

std::array<std::uint8_t, kPerfMessage> encoded(const PerfMessage& m) {
  std::array<std::uint8_t, kPerfMessage> out{};
  encode(m, out);
  return out;
}

TEST(PerfMessage, EveryKindSurvivesEncodingAndDecoding) {
  for (int k = 1; k <= static_cast<int>(PerfKind::Progress); ++k) {
    const PerfMessage m = sample(static_cast<PerfKind>(k));
    auto back = decode_perf(encoded(m));
    ASSERT_TRUE(back.ok()) << k << ": " << back.error();
    EXPECT_EQ(*back, m) << k;
  }
}

TEST(PerfMessage, InvalidMessagesAreRefused) {
  auto bytes = encoded(sample(PerfKind::Run));
  EXPECT_FALSE(decode_perf({bytes.data(), bytes.size() - 1}).ok());
  bytes[4] = 9;
  EXPECT_NE(decode_perf(bytes).error().find("version"), std::string::npos);
  const auto refused = [](auto change) {
    PerfMessage m = sample(PerfKind::Run);
    change(m.run);
    return !decode_perf(encoded(m)).ok();
  };
  EXPECT_FALSE(refused([](PerfRun&) {}));
  EXPECT_TRUE(refused([](PerfRun& r) { r.size = 0; }));
  EXPECT_TRUE(refused([](PerfRun& r) { r.size = 1u << 31; }));
  EXPECT_TRUE(refused([](PerfRun& r) { r.depth = 0; }));
  EXPECT_TRUE(refused([](PerfRun& r) { r.cq_moderation = 0; }));
  EXPECT_TRUE(refused([](PerfRun& r) { r.post_list = r.depth + 1; }));
  EXPECT_TRUE(refused([](PerfRun& r) { r.iterations = r.duration_ms = 0; }));
  EXPECT_TRUE(refused([](PerfRun& r) { r.op = static_cast<PerfOp>(3); }));
  EXPECT_TRUE(refused([](PerfRun& r) { r.interval_ms = 99; }));
  const auto reverse = [](auto change) {
    PerfMessage m = sample(PerfKind::Run);
    m.run.reverse = true;
    m.run.bidirectional = m.run.verify = false;
    m.run.test = PerfTest::Bandwidth;
    change(m.run);
    const auto back = decode_perf(encoded(m));
    return back.ok() && back->run == m.run;
  };
  EXPECT_TRUE(reverse([](PerfRun&) {}));
  EXPECT_FALSE(reverse([](PerfRun& r) { r.bidirectional = true; }));
  EXPECT_FALSE(reverse([](PerfRun& r) { r.verify = true; }));
  EXPECT_FALSE(reverse([](PerfRun& r) { r.test = PerfTest::Latency; }));
}

TEST(PerfMessage, RandomBytesNeverDoHarm) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 rng(seed);
  for (int i = 0; i < 100000; ++i) {
    auto bytes = encoded(sample(static_cast<PerfKind>(1 + rng() % 8)));
    for (unsigned n = rng() % 5; n > 0; --n) bytes[rng() % 210] = static_cast<std::uint8_t>(rng());
    (void)decode_perf(bytes);
    (void)decode_greeting({bytes.data(), rng() % 20});
  }
}

TEST(PerfMessage, AGreetingSurvivesEncodingAndDecoding) {
  auto g = decode_greeting(encode(PerfGreeting{false, 3, 9}));
  ASSERT_TRUE(g.ok());
  EXPECT_FALSE(g->control);
  EXPECT_EQ(g->session, 3u);
  EXPECT_EQ(g->index, 9u);
  EXPECT_TRUE(decode_greeting(encode(PerfGreeting{}))->control);
  EXPECT_FALSE(decode_greeting({}).ok());
}

TEST(PerfResult, ALatencyIsSentInNanoseconds) {
  const LatencySummary l{1.5, 900, 2, 3.25, 4, 5, 6, 7, 8.001};
  const LatencySummary back = from_nanoseconds(to_nanoseconds(l));
  EXPECT_DOUBLE_EQ(back.min, 1.5);
  EXPECT_DOUBLE_EQ(back.max, 900);
  EXPECT_DOUBLE_EQ(back.average, 3.25);
  EXPECT_DOUBLE_EQ(back.p999, 8.001);
}

TEST(IntervalMeter, CutsAtItsIntervalsAndKeepsTheRemainder) {
  IntervalMeter meter(500);
  EXPECT_FALSE(meter.at(0.49, 100));
  const auto first = meter.at(0.51, 110);
  ASSERT_TRUE(first);
  EXPECT_DOUBLE_EQ(first->from, 0);
  EXPECT_DOUBLE_EQ(first->to, 0.51);
  EXPECT_EQ(first->messages, 110u);
  EXPECT_FALSE(meter.at(1.0, 150));
  const auto idle = meter.at(1.1, 110);
  ASSERT_TRUE(idle) << "one in which nothing went is told as well";
  EXPECT_EQ(idle->messages, 0u);
  EXPECT_FALSE(meter.rest(1.12, 120)) << "too short to say something";
  const auto rest = meter.rest(1.3, 130);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->messages, 20u);
  EXPECT_FALSE(IntervalMeter(0).at(100, 5));
  EXPECT_FALSE(IntervalMeter(0).rest(100, 5));
}

TEST(LatencySamples, KeepsSamplesUpToTheLimitOnly) {
  constexpr std::uint64_t kMost = LatencySamples::kMostSamples;
  LatencySamples s;
  s.reserve(~std::uint64_t{0});  // the largest value of -n
  for (std::uint64_t i = 0; i < kMost; ++i) s.add(static_cast<std::int64_t>(i));
  for (int i = 0; i < 3; ++i) s.add(7);
  ASSERT_EQ(s.all().size(), kMost);
  EXPECT_EQ(s.all().back(), kMost - 1);
  EXPECT_EQ(s.all().capacity(), kMost);
  LatencySamples next;  // of the next measurement
  next.add(std::int64_t{1} << 40);
  EXPECT_EQ(next.all(), std::vector<std::uint32_t>{UINT32_MAX});
}

TEST(PerfResult, PercentilesAreSamplesByRank) {
  std::vector<std::uint32_t> samples;
  for (std::uint32_t i = 1000; i >= 1; --i) samples.push_back(i * 1000);
  const LatencySummary s = summarise(&samples);
  EXPECT_DOUBLE_EQ(s.min, 1);
  EXPECT_DOUBLE_EQ(s.max, 1000);
  EXPECT_DOUBLE_EQ(s.typical, 500);
  EXPECT_DOUBLE_EQ(s.p90, 900);
  EXPECT_DOUBLE_EQ(s.p99, 990);
  EXPECT_DOUBLE_EQ(s.p999, 999);
  EXPECT_DOUBLE_EQ(s.average, 500.5);
  EXPECT_NEAR(s.deviation, 288.675, 0.001);
  std::vector<std::uint32_t> one = {7000};
  EXPECT_DOUBLE_EQ(summarise(&one).p999, 7);
  std::vector<std::uint32_t> none;
  EXPECT_DOUBLE_EQ(summarise(&none).p99, 0);
}

TEST(PerfResult, HasTheColumnsOfPerftest) {
  EXPECT_EQ(perf_heading(PerfTest::Bandwidth, false),
            " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]");
  EXPECT_NE(perf_heading(PerfTest::Bandwidth, true).find("BW average[Gb/sec]"), std::string::npos);
  EXPECT_NE(perf_heading(PerfTest::Latency, false).find("99.9% percentile[usec]"),
            std::string::npos);
  PerfResult r;
  r.messages = 5000;
  r.peak_rate = 2000.0 * (1 << 20);
  r.average_rate = 1000.0 * (1 << 20);
  r.message_rate = 16000;
  EXPECT_EQ(perf_line(r, false),
            " 65536      5000             2000.00            1000.00              0.016000");
  EXPECT_NE(perf_line(r, true).find("8.39"), std::string::npos);
}

TEST(PerfPattern, IsTheSameFromAnyOffsetAndDiffersByPosition) {
  std::vector<std::uint8_t> whole(4096), part(1001);
  fill_pattern(42, 0, whole);
  fill_pattern(42, 333, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 333));
  EXPECT_TRUE(matches_pattern(42, 333, part));
  EXPECT_FALSE(matches_pattern(42, 334, part));
  EXPECT_FALSE(matches_pattern(43, 333, part));
  part[1000] ^= 1;
  EXPECT_FALSE(matches_pattern(42, 333, part));
}

TEST(PerfLayout, AreasDoNotOverlap) {
  const PerfLayout l{3, 1 << 20};
  EXPECT_GE(l.data(0), l.credit(2) + 64);
  EXPECT_EQ(l.data(1) - l.data(0), 1u << 20);
  EXPECT_EQ(l.size(), l.data(2) + (1 << 20));
  PerfRun r;
  r.size = 65;
  EXPECT_EQ(perf_stride(r), 128u);
  EXPECT_EQ(perf_slots(r, 1024), 8u);
  EXPECT_EQ(perf_slots(r, 64), 1u);
}

}  // namespace
}  // namespace urnic::cli
