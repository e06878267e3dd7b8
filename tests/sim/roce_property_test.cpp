// Seeded whole runs of RoCE over faulty wires, engine to engine: all kinds of requests, FAST and
// SLOW queue pairs, all ways of handling loss, all kinds of faults. A failure prints its seed;
// URNIC_TEST_SEED=<n> replays only that one; URNIC_TEST_SOAK runs 10 000.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "base/rng.h"
#include "sim/experiment.h"

namespace urnic::sim {
namespace {

std::string probability(Rng& rng, double most) {
  return std::to_string(most * static_cast<double>(rng.below(1000)) / 1000);
}

std::string faults(Rng& rng, std::uint64_t kind) {
  const std::string line = "delay=" + std::to_string(rng.between(1, 300)) +
                           "us,rate=" + std::to_string(rng.between(1, 10)) + "gbit";
  switch (kind) {
    case 0:
      return line;
    case 1:
      return line + ",loss=" + probability(rng, 0.05);
    case 2:
      return line + ",dup=" + probability(rng, 0.1);
    case 3:
      return line + ",reorder=" + probability(rng, 0.02) + ":" + std::to_string(rng.between(1, 8));
    case 4:
      return line + ",corrupt=" + probability(rng, 0.05);
    case 5:
      return line + ",loss=" + probability(rng, 0.01) + ":" + std::to_string(rng.between(2, 6));
    default:
      return line + ",jitter=" + std::to_string(rng.between(0, 100)) +
             "us,loss=" + probability(rng, 0.03) + ",dup=" + probability(rng, 0.03) +
             ",reorder=" + probability(rng, 0.01) + ":4,corrupt=" + probability(rng, 0.02);
  }
}

void vary(Rng& rng, engine::Options* o) {
  ib::LossRules& loss = o->roce.loss;
  o->speaks_roce = true;
  o->roce.probe = rng.chance(0.6);
  o->roce.tell_credits = rng.chance(0.7);
  o->roce.send.obey_credits = rng.chance(0.7);
  o->roce.send.window = static_cast<std::uint32_t>(rng.between(4, 256));
  o->roce.send.ack_every = static_cast<std::uint32_t>(rng.between(1, 64));
  loss.type = rng.chance(0.75) ? ib::ConnectionType::Fast : ib::ConnectionType::Slow;
  loss.out_of_order = rng.chance(0.9) ? ib::OutOfOrder::Store : ib::OutOfOrder::Drop;
  constexpr std::uint32_t kStores[] = {2, 8, 64, 512};
  loss.store_packets = kStores[rng.below(4)];
  loss.max_recovery_attempts = rng.chance(0.7) ? 32 : static_cast<std::uint32_t>(rng.below(4));
  loss.upgrade_after = static_cast<std::uint32_t>(rng.between(1, 100));
  constexpr std::uint32_t kParks[] = {0, 2, 64};
  loss.rnr_park = kParks[rng.below(3)];
  loss.rnr_park_time = Duration::us(static_cast<std::int64_t>(rng.between(50, 5000)));
}

// Chooses the congestion control: mostly the default. It has its own random numbers, so that the
// rest of a seed does not change.
void congest(Setup* s, std::uint64_t seed) {
  Rng rng(seed * 7919 + 3);
  for (engine::Options* o : {&s->left, &s->right}) {
    o->roce.send.congestion = rng.chance(0.6)   ? ib::CongestionRule::Window
                              : rng.chance(0.5) ? ib::CongestionRule::Dcqcn
                                                : ib::CongestionRule::Off;
  }
  for (std::string* plan : {&s->phases[0].to_right, &s->phases[0].to_left}) {
    if (!rng.chance(0.4)) continue;
    *plan += plan->find("rate=") == plan->npos ? ",rate=1gbit,mark=20us" : ",mark=20us";
  }
}

Setup setup_of(std::uint64_t seed) {
  Rng rng(seed * 1000003 + 29);
  Setup s;
  constexpr std::uint32_t kMtus[] = {576, 1500, 1500, 9000};
  s.mtu = kMtus[rng.below(4)];
  vary(rng, &s.left);
  vary(rng, &s.right);
  Phase& phase = s.phases.emplace_back();
  phase.to_right = faults(rng, seed % 7);
  phase.to_left = faults(rng, seed % 7);
  s.roce.on = true;
  s.roce.ack_timeout = static_cast<std::uint8_t>(rng.between(10, 14));
  s.roce.min_rnr_timer = static_cast<std::uint8_t>(rng.between(1, 12));
  s.roce.depth = static_cast<std::uint8_t>(rng.between(1, 16));
  constexpr Op kOps[] = {Op::Write, Op::Send, Op::Read, Op::Atomic};
  s.work.op = kOps[seed / 7 % 4];
  if (s.work.op == Op::Send && rng.chance(0.3)) {
    s.roce.service = verbs::Service::Uc;
  } else {
    s.roce.by_cm = rng.chance(0.3);
    s.faults_at_setup = s.roce.by_cm && rng.chance(0.5);
  }
  s.work.sizes.clear();
  for (int i = 0; i < 5; ++i) {
    constexpr std::uint32_t kMost[] = {64, 3000, 30000};
    s.work.sizes.push_back(static_cast<std::uint32_t>(rng.between(0, kMost[rng.below(3)])));
  }
  s.work.count = static_cast<std::uint32_t>(rng.between(10, 60));
  s.work.depth = static_cast<std::uint32_t>(rng.between(1, 32));
  s.work.receives = static_cast<std::uint32_t>(rng.between(1, 64));
  if (rng.chance(0.5))
    s.work.receives_gap = Duration::us(static_cast<std::int64_t>(rng.below(200)));
  congest(&s, seed);
  return s;
}

struct Met {
  fault::FaultCounters wire;
  std::uint64_t held = 0, parked = 0, duplicates = 0, downgrades = 0, upgrades = 0, probes = 0,
                timeouts = 0, rnr = 0, bad_icrc = 0, lost = 0, cnps = 0, cuts = 0;
  std::set<std::string> rules;
};

// Empty if every property holds.
std::string run_seed(std::uint64_t seed, Met* met) {
  const auto setup = setup_of(seed);
  const RunResult r = run_once(setup, Duration::s(600), seed, false);
  met->wire += r.to_right;
  met->wire += r.to_left;
  met->held += r.receiver.roce.requests_held;
  met->parked += r.receiver.roce.requests_parked;
  met->duplicates += r.receiver.roce.requests_duplicate;
  met->downgrades += r.receiver.roce.roce_downgrades;
  met->upgrades += r.receiver.roce.roce_upgrades;
  met->probes += r.sender.roce.probes_sent;
  met->timeouts += r.sender.roce.response_timeouts;
  met->rnr += r.roce.rnr_waits;
  met->bad_icrc += r.roce.bad_icrc;
  met->lost += r.receiver.roce.messages_lost;
  met->cnps += r.sender.roce.cnps_received;
  met->cuts += r.sender.roce.window_reductions;
  met->rules.insert(r.rules_seen.begin(), r.rules_seen.end());
  std::string bad;
  // By the specification, a sender gives up after seven retries without progress: that may happen
  // on bad wires.
  const bool gave_up = r.end == "left: no response to any retransmission";
  if (!r.complete && !gave_up) bad += r.end + "; ";
  if (r.complete && r.failed != 0) bad += "requests failed; ";
  if (r.wrong_bytes != 0) bad += std::to_string(r.wrong_bytes) + " bytes wrong; ";
  if (r.roce.from_right.naks_told_twice != 0) bad += "a gap was told twice; ";
  if (r.roce.sent_in_waits != 0) bad += "something left within an RNR wait; ";
  if (setup.roce.service == verbs::Service::Rc && r.complete && r.messages != setup.work.count) {
    bad += "messages are missing; ";
  }
  return bad;
}

TEST(RoceProperty, MessagesArriveOnceInOrderAndIntactOverAllFaults) {
  std::uint64_t first = 1, last = std::getenv("URNIC_TEST_SOAK") != nullptr ? 10000 : 280;
  if (const char* one = std::getenv("URNIC_TEST_SEED"))
    first = last = std::strtoull(one, nullptr, 10);
  Met met;
  int failures = 0;
  for (std::uint64_t seed = first; seed <= last && failures < 5; ++seed) {
    const std::string bad = run_seed(seed, &met);
    if (bad.empty()) continue;
    ADD_FAILURE() << "seed " << seed << ": " << bad;
    ++failures;
  }
  std::printf("%llu runs of RoCE, %llu packets lost, %llu damaged, %llu kept, %llu downgrades\n",
              static_cast<unsigned long long>(last - first + 1),
              static_cast<unsigned long long>(met.wire.of(fault::FaultKind::Loss)),
              static_cast<unsigned long long>(met.bad_icrc),
              static_cast<unsigned long long>(met.held),
              static_cast<unsigned long long>(met.downgrades));
  if (first == last || failures != 0) return;
  using fault::FaultKind;
  for (const FaultKind k :
       {FaultKind::Loss, FaultKind::Duplicate, FaultKind::Reorder, FaultKind::Corrupt}) {
    EXPECT_GT(met.wire.of(k), 100u) << fault::fault_kind_name(k);
  }
  for (const std::uint64_t n :
       {met.held, met.parked, met.duplicates, met.downgrades, met.upgrades, met.probes,
        met.timeouts, met.rnr, met.bad_icrc, met.lost, met.cnps, met.cuts}) {
    EXPECT_GT(n, 0u);
  }
  for (const char* rule :
       {"S-1", "S-3", "S-4", "S-5", "S-8", "S-9", "S-10", "S-12", "IB-42", "IB-43", "IB-45",
        "IB-51", "IB-54", "IB-56", "IB-64", "IB-76", "IB-139"}) {
    EXPECT_EQ(met.rules.count(rule), 1u) << rule;
  }
}

}  // namespace
}  // namespace urnic::sim
