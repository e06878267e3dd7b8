// A bulk transfer over a line of 500 Mbit/s in virtual time, for each loss rate and round trip,
// with and without SACK. It must reach most of what the line and the response function of the
// congestion control allow.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/tcp/bottleneck.h"

namespace urnic::tcp::test {
namespace {

struct Cell {
  double loss;
  std::int64_t rtt_us;
  bool sack;
};

// Expected Mbit/s with a Reno window (Mathis et al. 1997), below the line rate; CUBIC is not slower
// (RFC 9438 4.3). Without loss: the line rate, less a round trip for each doubling of the window
// until it fills the path, one for the handshake and one for the last ACK.
double expected(const Cell& c, double bytes) {
  const double line = 480;
  if (c.loss == 0) {
    const double path = line / 8 * static_cast<double>(c.rtt_us) / 1448;  // segments
    const double rounds = 2 + std::max(0.0, std::log2(path / 10));
    return bytes * 8 / (bytes * 8 / line + rounds * static_cast<double>(c.rtt_us));
  }
  const double rtt = static_cast<double>(c.rtt_us) / 1e6;
  return std::min(line, std::sqrt(1.5) * 1448 * 8 / rtt / std::sqrt(c.loss) / 1e6);
}

class Goodput : public testing::TestWithParam<Cell> {};

TEST_P(Goodput, ReachesWhatLineAndLossAllow) {
  const Cell c = GetParam();
  std::vector<double> rates;
  // About thirty losses, or time enough to fill the path.
  const double bytes = c.loss > 0 ? std::min(1448 * 30 / c.loss, 1.2e7) : 2e7;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Bottleneck b;
    b.loss = c.loss;
    b.rtt = Duration::us(c.rtt_us);
    b.seed = seed;
    b.options.tcp.sack = c.sack;
    const Moved m = move(b, static_cast<std::uint64_t>(bytes));
    rates.push_back(m.mbit);
    if (c.loss == 0) {
      EXPECT_LE(m.overflowed, 8u) << "slow start knows when the path is full";
    }
  }
  std::sort(rates.begin(), rates.end());
  RecordProperty("percent_of_expected", static_cast<int>(100 * rates[1] / expected(c, bytes)));
  EXPECT_GE(rates[1], 0.9 * expected(c, bytes));
}

std::vector<Cell> cells() {
  std::vector<Cell> all;
  for (const bool sack : {true, false}) {
    for (const double loss : {0.0, 0.001, 0.01}) {
      for (const std::int64_t rtt : {100, 1000, 10000, 50000}) {
        if (loss == 0.001 && rtt == 50000) continue;  // thirty losses take minutes of virtual time
        all.push_back({loss, rtt, sack});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Tcp, Goodput, testing::ValuesIn(cells()), [](const auto& p) {
  return std::string(p.param.sack ? "Sack" : "NoSack") + "Loss" +
         std::to_string(static_cast<int>(p.param.loss * 10000)) + "In10000Rtt" +
         std::to_string(p.param.rtt_us) + "us";
});

// RFC 6582 3.2, RFC 6675 5: many holes in one window do not cause a timeout, except where a timeout
// is faster.
TEST(GoodputHoles, AreRepairedWithoutATimeout) {
  for (const bool sack : {true, false}) {
    for (const unsigned holes : {1u, 2u, 3u, 16u, 256u}) {
      SCOPED_TRACE(std::to_string(holes) + (sack ? " holes, SACK" : " holes"));
      Bottleneck b;
      b.rtt = Duration::ms(10);
      b.options.tcp.sack = sack;
      for (unsigned i = 0; i < holes; ++i) b.holes.insert(2000 + 2 * i);
      const Moved m = move(b, 30'000'000);
      if (!sack && holes > 16) {
        // At one hole per round trip, recovery would take longer than a timeout, and slow start is
        // faster (76 Mbit/s without it).
        EXPECT_GE(m.mbit, 150)
            << "RFC 6582 3.2 step 5: only the first partial ACK restarts the timer";
        continue;
      }
      EXPECT_EQ(m.retransmissions, holes);
      EXPECT_LT(m.longest_silence, Duration::ms(100)) << "a timeout takes 200 ms";
    }
  }
}

// With half of a window lost and no SACK, one hole per round trip would take four seconds.
TEST(GoodputHoles, HalfAWindowIsRepairedByOneTimeout_RFC6582_3_2) {
  Bottleneck b;
  b.rtt = Duration::ms(10);
  b.options.tcp.sack = false;
  const std::uint64_t bytes = 30'000'000;
  const double whole = move(b, bytes).mbit;
  for (unsigned i = 0; i < 400; ++i) b.holes.insert(3000 + i);
  const Moved m = move(b, bytes);
  const double more = static_cast<double>(bytes) * 8 / 1e6 * (1 / m.mbit - 1 / whole);
  EXPECT_LT(more, 1.0) << "seconds more than without the holes";
  EXPECT_GE(m.retransmissions, 400u);
  EXPECT_LT(m.retransmissions, 1000u);
}

}  // namespace
}  // namespace urnic::tcp::test
