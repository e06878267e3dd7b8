// Any order, any cut: random mixes of all RDMAP messages arrive at a whole engine in random
// permutations, duplicated, overlapping, re-cut, lost, corrupted, and with receives posted late.
// Memory, completions, invalidations and Read Responses must equal those of a receiver that got the
// same stream in order. For every framing policy and both completion methods.
//
// Everything in a run derives from its seed: a failure prints it, URNIC_TEST_SEED=<n> runs only
// that one. URNIC_TEST_SOAK places at least 10^7 segments per framing policy with all faults. Every
// stream that ended is listed with the reason; the next seed is the next connection.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/support/scrambled_session.h"

namespace urnic::test {
namespace {

class AnyOrder : public ::testing::TestWithParam<mpa::Policy> {};
INSTANTIATE_TEST_SUITE_P(Framing, AnyOrder, ::testing::ValuesIn(kPolicies), [](const auto& p) {
  std::string name(mpa::policy_name(p.param));
  std::erase(name, '-');
  return name;
});

struct Totals {
  std::uint64_t arrivals = 0, placed = 0, batches = 0, connections = 0, ended = 0, waiting = 0;
  std::uint64_t downgrades = 0, upgrades = 0, holes = 0, empty_rq = 0, partial_cqes = 0,
                wqe_writes = 0, sends = 0, reads = 0, requests = 0;
  std::map<std::string, std::uint64_t> ends;  // why streams ended
  std::array<std::uint64_t, kReasonCount> reasons{};

  void add(const Session& run, const ConnectionStats& s) {
    ++connections;
    arrivals += run.segments();
    placed += placed_of(s);
    reads += run.reads();
    downgrades += s.iwarp.downgrades;
    upgrades += s.iwarp.upgrades;
    holes += s.iwarp.holes_opened;
    empty_rq += s.iwarp.empty_rq_drops;
    partial_cqes += s.verbs.completion_shared_cqes;
    wqe_writes += s.verbs.completion_wqe_writes;
    sends += s.verbs.sends_received;
    requests += s.verbs.read_requests_received;
    for (std::size_t i = 0; i < reasons.size(); ++i) reasons[i] += s.iwarp.reasons[i];
  }
  // Segments that InLogic passed to OutLogic or to the reassembly buffer; the others were old,
  // dropped, or rejected by TCP.
  static std::uint64_t placed_of(const ConnectionStats& s) {
    using fastpath::Reason;
    std::uint64_t n = s.iwarp.downgrades;  // each downgrade stores its segment
    for (const Reason r :
         {Reason::Slow, Reason::Aligned, Reason::Upgrade, Reason::OutOfOrderStore}) {
      n += s.iwarp.reasons[static_cast<std::size_t>(r)];
    }
    return n - s.iwarp.empty_rq_drops;
  }
  void print(std::string_view policy) const {
    const auto n = [](std::uint64_t v) { return std::to_string(v); };
    const std::string text =
        n(placed) + " segments placed of " + n(arrivals) + " that arrived, " + n(batches) +
        " batches, " + n(connections) + " connections; " + n(ended) + " ended by Terminate, " +
        n(waiting) + " left waiting; " + n(downgrades) + " downgrades, " + n(upgrades) +
        " upgrades, " + n(holes) + " holes, " + n(empty_rq) + " empty-queue drops; " + n(sends) +
        " Sends (" + n(wqe_writes) + " WQE writes, " + n(partial_cqes) + " partial CQEs), " +
        n(reads) + " Reads, " + n(requests) + " Read Requests";
    std::printf("%.*s: %s\n", static_cast<int>(policy.size()), policy.data(), text.c_str());
    for (const auto& [why, count] : ends) std::printf("  %s x %s\n", n(count).c_str(), why.c_str());
  }
};

// Why bytes went through the reassembly buffer, where their CRC is checked only after they were
// acknowledged.
std::string how_slow(const Terms& terms, const ConnectionStats& s) {
  if (terms.type == ConnectionType::Slow) return "initiated SLOW";
  return s.iwarp.downgrades == 0 ? "" : "SLOW after a downgrade";
}

// Returns a fault that may end the stream, and why; empty if no fault may.
std::string explain(const Terms& terms, const ConnectionStats& s, const std::string& terminate) {
  const std::string slow = how_slow(terms, s);
  if (slow.empty() || s.iwarp.bytes_slow == 0) return "";
  if (terms.corrupt && terminate.find("MPA: CRC error (Terminate 2/0/2 sent)") != terminate.npos) {
    return slow + ": bytes that changed on the way were acknowledged already (R-29)";
  }
  if (terms.late && terminate.find("(Terminate 1/2/2 sent)") != terminate.npos) {
    return slow + ": a Send without a receive was acknowledged already (R-116)";
  }
  return "";
}

// 9.4: the number of writes for completions of Sends. Completions pending behind a hole at a
// downgrade or at the end were written in vain; there are at most as many as posted
// receives.
std::string wrong_writes(const Terms& terms, const ConnectionStats& s, bool ended) {
  const std::uint64_t wqe = s.verbs.completion_wqe_writes, cqe = s.verbs.completion_cqe_writes;
  const std::uint64_t discarded = (s.iwarp.downgrades + (ended ? 1 : 0)) * kSends;
  if (terms.method == 1) {  // 2N
    if (cqe != s.verbs.sends_received) return "method 1: not one CQE for each Send; ";
    if (wqe < cqe || wqe > cqe + discarded) return "method 1: not one WQE write for each Send; ";
    return "";
  }
  // a Send costs its own CQE, or its WQE plus one CQE for each run of WQEs.
  const std::uint64_t needed = s.verbs.sends_received + s.verbs.completion_shared_cqes;
  if (wqe + cqe < needed || wqe + cqe > needed + discarded) {
    return "method 2: " + std::to_string(wqe) + " + " + std::to_string(cqe) +
           " writes instead of " + std::to_string(needed) + "; ";
  }
  // with M = 0 everything that waits behind a hole is one run.
  if (terms.threshold == 0 && s.verbs.completion_shared_cqes > s.iwarp.holes_closed) {
    return "method 2, M = 0: more than one shared CQE for a hole; ";
  }
  return "";
}

// Runs one connection for `batches` batches, or until it ends.
std::string run_seed(std::uint64_t seed, mpa::Policy policy, std::size_t batches, Totals* totals) {
  Rng rng(seed);
  const Terms terms = terms_of(rng, policy, true);
  Session run(terms, seed);
  if (!run.up()) return "the connection was not established";
  if (run.stats().iwarp.mpa.framing != mpa::policy_name(policy))
    return "the stream is framed otherwise";
  std::string bad;
  std::size_t done = 0;
  for (; done < batches && bad.empty() && !run.ended() && !run.waits(); ++done) bad = run.batch();
  const ConnectionStats s = run.stats();
  totals->add(run, s);
  totals->batches += done;
  bad += wrong_writes(terms, s, run.ended() || run.waits());
  if (!run.ended() && !run.waits()) return bad;

  std::string what, why;
  if (run.ended()) {
    ++totals->ended;
    what = run.why_ended();
    why = explain(terms, s, what);
    if (why.empty()) bad += "nothing explains the end of the stream: " + what;
  } else {
    ++totals->waiting;
    what = "waits for more bytes";
    why = how_slow(terms, s) + ": a length that changed on the way; its CRC fails when they come";
  }
  ++totals->ends[what + ": " + why];
  std::printf("  %s seed %llu, batch %zu, after %llu arrivals: %s: %s\n",
              std::string(mpa::policy_name(policy)).c_str(), static_cast<unsigned long long>(seed),
              done, static_cast<unsigned long long>(run.segments()), what.c_str(), why.c_str());
  return bad;
}

// Every row of the decision must be reached, except those that need specially made bytes:
// Embedded.*, RxMarkers.* and BothVariants.E8_* reach them.
bool comes_by_chance(fastpath::Reason why, bool marked) {
  using fastpath::Reason;
  switch (why) {
    case Reason::Seam:
    case Reason::MarkerElsewhere:
    case Reason::CutFrames:
      return false;
    case Reason::OutOfOrderStore:
      return !marked;
    case Reason::CrcCaseA:
    case Reason::CrcCaseB:
      return marked;
    default:
      return true;
  }
}

// proves: R-102
TEST_P(AnyOrder, EverythingArrivesAsInOrder) {
  const std::uint64_t enough = std::getenv("URNIC_TEST_SOAK") != nullptr ? 10'000'000 : 100'000;
  const char* one = std::getenv("URNIC_TEST_SEED");
  Totals totals;
  int failures = 0;
  for (std::uint64_t seed = one != nullptr ? std::strtoull(one, nullptr, 10) : 1;
       totals.placed < enough && failures < 5; ++seed) {
    const std::string bad = run_seed(seed, GetParam(), 12, &totals);
    if (!bad.empty()) {
      ADD_FAILURE() << "seed " << seed << ": " << bad;
      ++failures;
    }
    if (one != nullptr) return;
  }
  totals.print(mpa::policy_name(GetParam()));
  if (failures != 0) return;
  // The averages of a batch over the seeds: 3 Reads, 5 Read Requests, 10 holes, 2 shared CQEs, 6
  // refused Sends; four of ten connections end. At least half of that is required, and more of what
  // the mix itself determines.
  EXPECT_GT(totals.reads, totals.batches * 5 / 2);
  EXPECT_GT(totals.requests, totals.batches * 4);
  EXPECT_GT(totals.holes, totals.batches * 5);
  EXPECT_GT(totals.partial_cqes, totals.batches);
  EXPECT_GT(totals.empty_rq, totals.batches * 3);
  EXPECT_GT(totals.ended, totals.connections / 5) << "some corruption meets SLOW";
  EXPECT_GT(totals.downgrades, totals.connections / 5);
  EXPECT_GT(totals.upgrades, totals.connections / 20);
  for (std::size_t i = 0; i < totals.reasons.size(); ++i) {
    const auto why = static_cast<fastpath::Reason>(i);
    EXPECT_EQ(totals.reasons[i] != 0, comes_by_chance(why, GetParam() != mpa::Policy::NoMarkers))
        << fastpath::reason_name(why) << ": " << totals.reasons[i];
  }
}

// The same stream with the same arrivals for a FAST connection, for one that stores out-of-order
// segments (E-41), and for a SLOW one.
class FastAndSlow {
 public:
  FastAndSlow(Terms terms, std::uint64_t seed) {
    terms.same_input = true;
    terms.type = ConnectionType::Fast;
    terms.store = false;
    fast.emplace(terms, seed);
    terms.store = true;
    store.emplace(terms, seed);
    terms.type = ConnectionType::Slow;
    slow.emplace(terms, seed);
  }
  // Empty if FAST, with and without out-of-order placement, gives the same result as the reference,
  // and SLOW the same or a prefix of it before it ended.
  std::string batches(int n) {
    if (!fast->up() || !store->up() || !slow->up()) return "a connection did not come up";
    for (int i = 0; i < n; ++i) {
      if (const std::string bad = fast->batch(); !bad.empty()) return "FAST: " + bad;
      if (fast->ended()) return "FAST ended: " + fast->why_ended();
      if (const std::string bad = store->batch(); !bad.empty()) return "FAST with store: " + bad;
      if (store->ended()) return "FAST with store ended: " + store->why_ended();
      if (fast->history != store->history) return "place and store report different completions";
      if (fast->consumer().arena != store->consumer().arena)
        return "place and store differ in memory";
      if (slow->ended() || slow->waits()) continue;
      if (const std::string bad = slow->batch(); !bad.empty()) return "SLOW: " + bad;
      if (slow->ended() || slow->waits()) continue;
      if (fast->history != slow->history) return "FAST and SLOW report different completions";
      if (fast->consumer().arena != slow->consumer().arena) return "FAST and SLOW differ in memory";
    }
    if (fast->history.size() < slow->history.size() ||
        !std::equal(slow->history.begin(), slow->history.end(), fast->history.begin())) {
      return "SLOW delivered what is no prefix of FAST";
    }
    return fast->history.empty() ? "nothing was delivered" : "";
  }
  std::optional<Session> fast, store, slow;
};

// proves: E-41, R-102
TEST_P(AnyOrder, FastAndSlowGiveTheSameResult) {
  std::uint64_t detours = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    Terms terms = terms_of(rng, GetParam(), false);
    terms.late = false;
    FastAndSlow both(terms, seed);
    ASSERT_EQ(both.batches(3), "") << "seed " << seed;
    EXPECT_FALSE(both.slow->ended()) << "seed " << seed << ": " << both.slow->why_ended();
    EXPECT_EQ(both.slow->stats().iwarp.bytes_fast, 0u);
    EXPECT_GT(both.fast->stats().iwarp.bytes_fast, 0u);
    if (!terms.recut) {
      EXPECT_EQ(both.fast->stats().iwarp.bytes_slow, 0u);
      EXPECT_EQ(both.store->stats().iwarp.bytes_slow, 0u);
      EXPECT_EQ(both.store->stats().iwarp.downgrades, 0u);
    }
    EXPECT_EQ(both.fast->stats().iwarp.detours, 0u);
    detours += both.store->stats().iwarp.detours;
  }
  // With markers the beginning of an FPDU is certain, and everything is placed at once (Fig 3).
  EXPECT_EQ(detours > 40, GetParam() == mpa::Policy::NoMarkers) << detours;
}

// With corruption, FAST repairs by retransmission; SLOW delivers a correct prefix and ends with the
// Terminate for a bad MPA CRC.
// proves: R-29
TEST_P(AnyOrder, CorruptionIsRepairedOnFastAndEndsSlowAfterACorrectPrefix) {
  std::uint64_t ended = 0, repaired = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    Terms terms = terms_of(rng, GetParam(), true);
    terms.corrupt = true;
    terms.recut = terms.late = false;
    terms.attempts = 1'000'000;
    terms.same_segment = 0;
    FastAndSlow both(terms, seed);
    ASSERT_EQ(both.batches(3), "") << "seed " << seed;
    EXPECT_EQ(both.fast->stats().iwarp.bytes_slow, 0u);
    EXPECT_EQ(both.store->stats().iwarp.bytes_slow, 0u);
    repaired += both.fast->stats().iwarp.recovery_attempts;
    if (!both.slow->ended()) continue;
    ++ended;
    EXPECT_NE(both.slow->why_ended().find("MPA: CRC error (Terminate 2/0/2 sent)"),
              std::string::npos)
        << both.slow->why_ended();
    EXPECT_EQ(both.slow->stats().iwarp.ddp.terminates_sent, 1u);
  }
  EXPECT_GT(ended, 10u);
  EXPECT_GT(repaired, 10u);
}

// If receives are posted late, FAST waits for them; SLOW delivers a correct prefix and ends
// with the Terminate for a Send without a receive.
// proves
TEST_P(AnyOrder, LateReceivesDelayFastAndEndSlowAfterACorrectPrefix) {
  std::uint64_t ended = 0, waited = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    Terms terms = terms_of(rng, GetParam(), false);
    terms.recut = false;
    terms.late = true;
    FastAndSlow both(terms, seed);
    ASSERT_EQ(both.batches(3), "") << "seed " << seed;
    EXPECT_EQ(both.fast->stats().iwarp.bytes_slow, 0u);
    EXPECT_EQ(both.store->stats().iwarp.bytes_slow, 0u);
    waited += both.fast->stats().iwarp.empty_rq_drops;
    if (!both.slow->ended()) continue;
    ++ended;
    EXPECT_NE(both.slow->why_ended().find("no buffer (Terminate 1/2/2 sent)"), std::string::npos)
        << both.slow->why_ended();
    EXPECT_EQ(both.slow->stats().iwarp.ddp.terminates_sent, 1u);
  }
  EXPECT_GT(ended, 10u);
  EXPECT_GT(waited, 10u);
}

}  // namespace
}  // namespace urnic::test
