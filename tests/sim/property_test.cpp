// Seeded whole runs over faulty wires check the properties of the engine's contract. A failure
// prints its seed; URNIC_TEST_SEED=<n> replays only that one (URNIC_TEST_CAPTURE=<file> writes the
// left engine's frames as pcapng); URNIC_TEST_SOAK runs 10 000 seeds. Every connection that ended
// is listed with the reason; the next seed is the next connection.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include "tests/support/workload.h"

namespace urnic::test {
namespace {

using fault::FaultKind;

struct Totals {
  std::array<std::uint64_t, 4> fast_by_policy{}, slow_by_policy{};
  fault::FaultCounters injected;
  std::array<std::uint64_t, kReasonCount> reasons{};
  std::uint64_t downgrades = 0, upgrades = 0, recoveries = 0, terminated = 0, holes = 0, slow = 0;
  std::uint64_t segments = 0;
  std::map<std::string, std::uint64_t> ends;  // why connections ended

  void end(std::uint64_t seed, const std::string& what, const std::string& why) {
    ++terminated;
    ++ends[what + why];
    std::printf("  seed %llu: %s%s\n", static_cast<unsigned long long>(seed), what.c_str(),
                why.c_str());
  }
  void print(std::uint64_t runs) const {
    const auto n = [](std::uint64_t v) { return static_cast<unsigned long long>(v); };
    std::printf(
        "%llu runs, %llu segments in, %llu ended by Terminate; %llu downgrades, %llu upgrades, "
        "%llu recovery attempts, %llu holes\n",
        n(runs), n(segments), n(terminated), n(downgrades), n(upgrades), n(recoveries), n(holes));
    for (const auto& [why, count] : ends) std::printf("  %llu x %s\n", n(count), why.c_str());
  }
};

std::string fault_text(Rng& rng, std::uint64_t kind) {
  const auto p = [&](double lo, double hi) {
    return std::to_string(lo + (hi - lo) * static_cast<double>(rng.below(1000)) / 1000);
  };
  switch (kind) {
    case 0:
      return "";
    case 1:
      return "loss=" + p(0.005, 0.05);
    case 2:
      return "reorder=" + p(0.01, 0.1) + ":" + std::to_string(rng.between(1, 6));
    case 3:
      return "dup=" + p(0.01, 0.1);
    case 4:
      return "corrupt=" + p(0.005, 0.04) + ",skip_handshake=on";
    case 5:
      return "badsum=" + p(0.005, 0.05);
    case 6:
      return "reseg=" + p(0.02, 0.95);
    case 7:
      return "loss=" + p(0, 0.03) + ",reorder=" + p(0, 0.05) + ":2,dup=" + p(0, 0.03) +
             ",reseg=" + p(0, 0.2) + ",badsum=" + p(0, 0.02);
    case 8:
      return "loss=" + p(0, 0.02) + ",reorder=" + p(0, 0.05) + ":3,corrupt=" + p(0, 0.02) +
             ",reseg=" + p(0, 0.1) + ",skip_handshake=on";
    default:
      return "delay=" + std::to_string(rng.between(10, 5000)) +
             "us,jitter=" + std::to_string(rng.between(0, 2000)) +
             "us,rate=" + std::to_string(rng.between(20, 1000)) + "mbit,loss=" + p(0, 0.01);
  }
}

void vary(Rng& rng, bool corrupting, engine::Options* o) {
  o->context.initiated_as =
      rng.chance(0.85) ? fastpath::ConnectionType::Fast : fastpath::ConnectionType::Slow;
  o->context.variant =
      rng.chance(0.5) ? fastpath::InLogicVariant::Fig9 : fastpath::InLogicVariant::Fig10;
  const std::uint32_t attempts[] = {1, 3, 32, 32};
  o->context.max_recovery_attempts = attempts[rng.below(4)];
  if (mpa::has_markers(o->mpa.policy)) {
    o->context.variant = fastpath::InLogicVariant::Fig3;
    // Fig 3 only. A corrupted length may then wait for bytes that are never sent.
    if (!corrupting && rng.chance(0.3)) o->context.max_recovery_attempts = 0;
  }
  // Without E-8, a peer whose segments are always re-cut is starved by 32 back-offs.
  o->context.max_cut_frames = o->context.max_recovery_attempts == 32 ? 2 : 0;
  o->context.max_same_segment = o->context.max_recovery_attempts == 32 || rng.chance(0.5) ? 4 : 0;
  const std::uint32_t upgrade[] = {1, 8, 64};
  o->context.upgrade_after = upgrade[rng.below(3)];
  o->context.immediate_dup_ack = rng.chance(0.7);
  o->out_of_order =
      rng.chance(0.8) ? engine::Options::OutOfOrder::Place : engine::Options::OutOfOrder::Store;
  o->tcp.sack = rng.chance(0.6);
  o->tcp.timestamps = rng.chance(0.7);
  // Without SACK and timestamps, a peer that drops unparsable segments leaves only the timer. The
  // runs must show that they end, not how long a back-off of RFC 6298 may grow.
  o->tcp.rto_max = Duration::s(4);
  const std::uint32_t holes[] = {1, 3, 256};
  o->tcp.hole_limit = holes[rng.below(3)];
  o->tcp.ack_policy = rng.chance(0.7) ? tcp::AckPolicy::PerBurst : tcp::AckPolicy::EverySecond;
}

// The framing of a run: each policy in both directions, and markers in one direction only.
void choose_policies(std::uint64_t seed, engine::Options* left, engine::Options* right) {
  using mpa::Policy;
  constexpr Policy kPairs[][2] = {{Policy::NoMarkers, Policy::NoMarkers},
                                  {Policy::Markers, Policy::Markers},
                                  {Policy::AbsoluteMarkers, Policy::AbsoluteMarkers},
                                  {Policy::ModifiedLength, Policy::ModifiedLength},
                                  {Policy::NoMarkers, Policy::NoMarkers},
                                  {Policy::Markers, Policy::NoMarkers},
                                  {Policy::NoMarkers, Policy::Markers}};
  // Seven and the ten kinds of faults have no common divisor, so all pairs occur.
  const auto& chosen = kPairs[seed % 7];
  left->mpa.policy = chosen[0];
  right->mpa.policy = chosen[1];
}

// One whole run. Empty if every property holds.
std::string run_seed(std::uint64_t seed, Totals* totals) {
  Rng rng(seed * 1000003 + 17);
  sim::PairOptions o;
  o.seed = seed;
  const std::uint32_t mtus[] = {576, 1500, 1500, 9000};
  o.mtu = mtus[rng.below(4)];
  choose_policies(seed, &o.left, &o.right);
  const std::uint64_t kind = seed % 10;
  const bool corrupting = kind == 4 || kind == 8;
  vary(rng, corrupting, &o.left);
  vary(rng, corrupting, &o.right);
  o.faults_left = fault_text(rng, kind);
  o.faults_right = fault_text(rng, kind);

  if (const char* file = std::getenv("URNIC_TEST_CAPTURE")) o.capture = file;
  sim::Pair pair(o);
  auto* left = pair.left().make_qp(64, 64);
  auto* right = pair.right().make_qp(64, 64);
  if (!pair.connect(*left, *right)) {
    // On a connection initiated SLOW, even a corrupted ready-to-receive message ends it.
    const bool slow = o.left.context.initiated_as == fastpath::ConnectionType::Slow ||
                      o.right.context.initiated_as == fastpath::ConnectionType::Slow;
    if (!corrupting || !slow) return "the connection was not established";
    totals->end(seed, "during set-up: ", "corruption met an end that was initiated SLOW (R-29)");
    return "";
  }
  WorkloadOptions w;
  w.seed = seed;
  w.messages = rng.between(10, 50);
  w.limit = Duration::s(6000);  // an engine that drops unparsable segments waits for timers
  w.receive_depth = 64;         // receives are posted before the Sends arrive
  Workload work(pair, *left, *right, w);  // its memory stays registered until the end
  std::string bad = work.run();
  {
    const ConnectionStats a = pair.left().engine().iwarp().qp_stats(*left);
    const ConnectionStats b = pair.right().engine().iwarp().qp_stats(*right);
    if (work.ended()) {
      // A stream may only end because of data that was acknowledged before its CRC check (SLOW), or
      // because of a Send without a receive on SLOW.
      const bool slow_seen =
          a.iwarp.bytes_slow + b.iwarp.bytes_slow + a.iwarp.downgrades + b.iwarp.downgrades != 0;
      if (!slow_seen) bad += "a stream ended without ever being SLOW: " + work.failures();
      // Here receives are always posted in time, so only corruption can end a stream.
      if (!corrupting) bad += "a stream ended although nothing was corrupted: " + work.failures();
      totals->end(seed, work.failures(),
                  a.iwarp.downgrades + b.iwarp.downgrades != 0
                      ? "corruption met an end that was SLOW after a downgrade (R-29)"
                      : "corruption met an end that was initiated SLOW (R-29)");
    } else if (corrupting && bad.empty()) {
      pair.run_for(Duration::s(1));
    }
    for (std::size_t i = 0; i < kReasonCount; ++i)
      totals->reasons[i] += a.iwarp.reasons[i] + b.iwarp.reasons[i];
    totals->segments += a.iwarp.tcp.segments_in + b.iwarp.tcp.segments_in;
    totals->downgrades += a.iwarp.downgrades + b.iwarp.downgrades;
    totals->upgrades += a.iwarp.upgrades + b.iwarp.upgrades;
    totals->recoveries += a.iwarp.recovery_attempts + b.iwarp.recovery_attempts;
    totals->holes += a.iwarp.holes_opened + b.iwarp.holes_opened;
    totals->slow += a.iwarp.bytes_slow + b.iwarp.bytes_slow;
    for (const ConnectionStats* c : {&a, &b}) {
      const auto policy = mpa::policy_by_name(c->iwarp.mpa.framing);
      if (!policy) continue;
      totals->fast_by_policy[static_cast<std::size_t>(*policy)] += c->iwarp.bytes_fast;
      totals->slow_by_policy[static_cast<std::size_t>(*policy)] += c->iwarp.bytes_slow;
    }
  }
  totals->injected += pair.injected_left();
  totals->injected += pair.injected_right();
  // An orderly end if the stream still exists; afterwards no resources may be left.
  pair.set_faults_left("");
  pair.set_faults_right("");
  pair.left().engine().iwarp().disconnect(*left, pair.now());
  pair.run_for(Duration::s(200));
  if (pair.left().engine().iwarp().state().connections.size() +
          pair.right().engine().iwarp().state().connections.size() !=
      0) {
    bad += "a connection is left; ";
  }
  if (pair.left().engine().iwarp().state().pool.in_use() +
          pair.right().engine().iwarp().state().pool.in_use() !=
      0) {
    bad += "reassembly memory is left; ";
  }
  return bad;
}

std::uint64_t seeds() {
  // Every pair of policies with every kind of fault, four times.
  return std::getenv("URNIC_TEST_SOAK") != nullptr ? 10000 : 280;
}

TEST(Property, SentBytesArriveOnceInOrderOverEveryKindOfFault) {
  Totals totals;
  std::uint64_t first = 1, last = seeds();
  if (const char* one = std::getenv("URNIC_TEST_SEED")) {
    first = last = std::strtoull(one, nullptr, 10);
  }
  int failures = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const std::string bad = run_seed(seed, &totals);
    if (!bad.empty()) {
      ADD_FAILURE() << "seed " << seed << ": " << bad;
      if (++failures == 5) break;
    }
  }
  totals.print(last - first + 1);
  if (first == last || failures != 0) return;
  for (const FaultKind k :
       {FaultKind::Loss, FaultKind::Duplicate, FaultKind::Reorder, FaultKind::Corrupt,
        FaultKind::BadSum, FaultKind::Cut, FaultKind::Join}) {
    EXPECT_GT(totals.injected.of(k), 0u) << fault::fault_kind_name(k);
  }
  for (std::size_t i = 0; i < kReasonCount; ++i) {
    // A seam off a frame boundary needs a special payload; see tests/fastpath.
    if (i == static_cast<std::size_t>(fastpath::Reason::Seam)) continue;
    // The same holds for a good CRC with a wrong marker.
    if (i == static_cast<std::size_t>(fastpath::Reason::MarkerElsewhere)) continue;
    EXPECT_GT(totals.reasons[i], 0u) << reason_label(i);
  }
  for (std::size_t p = 0; p < 4; ++p) {
    EXPECT_GT(totals.fast_by_policy[p], 0u) << mpa::policy_name(static_cast<mpa::Policy>(p));
    EXPECT_GT(totals.slow_by_policy[p], 0u) << mpa::policy_name(static_cast<mpa::Policy>(p));
  }
  EXPECT_GT(totals.downgrades, 0u);
  EXPECT_GT(totals.upgrades, 0u);
  EXPECT_GT(totals.recoveries, 0u);
  EXPECT_GT(totals.holes, 0u);
  RecordProperty("terminated", static_cast<int>(totals.terminated));
}

TEST(Property, SameSeedSameFrames) {
  const auto run = [](std::string* trace) {
    sim::PairOptions o;
    o.seed = 4;
    o.faults_left = "loss=0.02,reorder=0.05:3,reseg=0.2";
    sim::Pair pair(o);
    auto* left = pair.left().make_qp(64, 64);
    auto* right = pair.right().make_qp(64, 64);
    ASSERT_TRUE(pair.connect(*left, *right));
    WorkloadOptions w;
    w.seed = 4;
    Workload work(pair, *left, *right, w);
    EXPECT_EQ(work.run(), "");
    std::ostringstream out;
    for (const auto& r : pair.fault_log()) {
      out << r.time.ns() << ' ' << static_cast<int>(r.kind) << ' ' << r.seq << ' ' << r.length
          << '\n';
    }
    out << pair.now().ns() << ' ' << pair.left().engine().counters().rx_frames << ' '
        << pair.right().engine().counters().rx_bytes;
    *trace = out.str();
  };
  std::string a, b;
  run(&a);
  run(&b);
  EXPECT_EQ(a, b);
  EXPECT_GT(a.size(), 100u);
}

}  // namespace
}  // namespace urnic::test
