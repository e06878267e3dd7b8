// Two RC queue pairs with work for each other over a faulty wire (two_ends.h): each message arrives
// once, in order and correct. A failure prints its seed; URNIC_TEST_SEED=n runs only that one.
#include "ib/two_ends.h"

#include <cstdlib>

namespace urnic::ib::test {
namespace {

using two_ends::Case;
using two_ends::TwoEnds;

// Events in all cases together.
struct Met {
  std::uint64_t lost = 0, doubled = 0, overtaken = 0, timeouts = 0, sequence_naks = 0,
                implied_naks = 0, rnr_naks = 0, duplicates = 0, probes = 0, probe_losses = 0,
                held = 0, parked = 0, downgrades = 0, upgrades = 0, sacks = 0, alone = 0,
                needless = 0, lies = 0, ahead = 0, missing = 0, placed = 0;
};

void run_case(const Case& c, Met* met) {
  const auto ends = std::make_unique<TwoEnds>(c);
  EXPECT_EQ(ends->run(), "") << "seed " << c.seed << " at " << ends->now().ns() << " ns";
  met->lost += ends->wire().lost;
  met->doubled += ends->wire().doubled;
  met->overtaken += ends->wire().overtaken;
  for (int i = 0; i < 2; ++i) {
    const RequesterCounters& n = ends->counters(i);
    met->timeouts += n.timeouts;
    met->sequence_naks += n.sequence_naks;
    met->implied_naks += n.implied_naks;
    met->rnr_naks += n.rnr_naks;
    met->duplicates += n.duplicates;
    met->probes += n.probes;
    met->probe_losses += n.probe_losses;
    met->sacks += n.sacks;
    met->alone += n.alone;
    met->needless += n.needless;
    met->lies += n.sacks_invalid;
    met->ahead += n.ahead;
    met->missing += n.missing;
    const ResponderCounters& r = ends->served(i);
    met->held += r.held;
    met->placed += r.placed;
    met->parked += r.parked;
    met->downgrades += r.downgrades;
    met->upgrades += r.upgrades;
  }
}

// Runs all seeds, or the requested one and then returns false.
template <class MakeCase>
bool run_seeds(MakeCase&& make, std::uint64_t seeds, Met* met) {
  if (const char* one = std::getenv("URNIC_TEST_SEED"); one != nullptr) {
    run_case(make(std::strtoull(one, nullptr, 10)), met);
    return false;
  }
  for (std::uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    run_case(make(seed), met);
  }
  return true;
}
std::uint64_t all_seeds() {
  return std::getenv("URNIC_TEST_LONG") != nullptr ? 10'000 : 200;
}

// proves: IB-76
TEST(TwoEndedSimulation, EveryMessageArrivesOnceInOrderAndIntact) {
  Met met;
  const std::uint64_t seeds = all_seeds();
  if (!run_seeds([](std::uint64_t seed) { return Case(seed); }, seeds, &met)) return;
  for (const std::uint64_t n :
       {met.lost, met.doubled, met.overtaken, met.timeouts, met.sequence_naks, met.implied_naks,
        met.rnr_naks, met.duplicates}) {
    EXPECT_GE(n, seeds) << "each kind of fault and of repair, often";
  }
}

// proves: S-5
TEST(TwoEndedSimulation, EveryMessageArrivesOnceInOrderAndIntactWithProbes) {
  Met met;
  const std::uint64_t seeds = all_seeds();
  // The transport timer is long, as programs set it, so probes do the recovery.
  const auto make = [](std::uint64_t seed) {
    Case c(seed);
    c.with_probe();
    return c;
  };
  if (!run_seeds(make, seeds, &met)) return;
  for (const std::uint64_t n : {met.lost, met.doubled, met.overtaken, met.sequence_naks,
                                met.implied_naks, met.rnr_naks, met.duplicates, met.probes}) {
    EXPECT_GE(n, seeds) << "each kind of fault and of repair, often";
  }
  EXPECT_GT(met.probe_losses, 0u);
  EXPECT_LT(met.timeouts, met.probes / 10) << "probes come before the transport timer";
}

// proves: S-2, S-12
TEST(TwoEndedSimulation, EveryMessageArrivesOnceInOrderAndIntactInAnyMixture) {
  Met met;
  const std::uint64_t seeds = all_seeds();
  const auto make = [](std::uint64_t seed) {
    Case c(seed);
    c.with_store();
    return c;
  };
  if (!run_seeds(make, seeds, &met)) return;
  for (const std::uint64_t n : {met.lost, met.doubled, met.overtaken, met.timeouts,
                                met.sequence_naks, met.ahead, met.missing, met.rnr_naks,
                                met.duplicates, met.probes, met.held, met.parked, met.downgrades}) {
    EXPECT_GE(n, seeds) << "each kind of fault and of repair, often";
  }
  EXPECT_GE(met.upgrades, seeds / 2);
}

// proves: S-6, S-2, S-12
TEST(TwoEndedSimulation, EveryMessageArrivesOnceInOrderAndIntactWithSelectiveRepeat) {
  Met met;
  const std::uint64_t seeds = all_seeds();
  const auto make = [](std::uint64_t seed) {
    Case c(seed);
    c.with_store().with_selective();
    return c;
  };
  if (!run_seeds(make, seeds, &met)) return;
  for (const std::uint64_t n : {met.lost, met.doubled, met.overtaken, met.rnr_naks, met.duplicates,
                                met.probes, met.held, met.parked, met.sacks, met.alone}) {
    EXPECT_GE(n, seeds) << "each kind of fault and of repair, often";
  }
  EXPECT_GT(met.downgrades, seeds / 10);
  EXPECT_GT(met.needless, seeds / 10);
  EXPECT_GT(met.placed, seeds / 2);
  EXPECT_GT(met.missing, seeds);
  EXPECT_EQ(met.lies, 0u);
}

// proves: IB-165
TEST(TwoEndedSimulation, EveryMessageArrivesOnceInOrderAndIntactOverXrc) {
  Met met;
  const std::uint64_t seeds = all_seeds();
  const auto make = [](std::uint64_t seed) {
    Case c(seed);
    if (seed % 2 == 0) c.with_store();
    if (seed % 4 == 0) c.with_selective();
    return c.with_xrc();
  };
  if (!run_seeds(make, seeds, &met)) return;
  for (const std::uint64_t n : {met.lost, met.doubled, met.overtaken, met.timeouts,
                                met.sequence_naks, met.rnr_naks, met.duplicates, met.held}) {
    EXPECT_GE(n, seeds) << "each kind of fault and of repair, often";
  }
  EXPECT_GT(met.sacks, seeds);
  EXPECT_GT(met.alone, seeds / 4);
  EXPECT_GT(met.downgrades, seeds / 10);
  EXPECT_EQ(met.parked, 0u) << "a shared queue has no waiting";
  EXPECT_EQ(met.placed, 0u) << "whose memory it is, is asked in its turn";
}

}  // namespace
}  // namespace urnic::ib::test
