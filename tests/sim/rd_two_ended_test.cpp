// Several queue pairs over shared EE contexts and a faulty wire (rd_two_ends.h). A failure prints
// its seed; URNIC_TEST_SEED=n runs only that one.
#include <cstdlib>

#include "tests/sim/rd_two_ends.h"

namespace urnic::sim::test {
namespace {

using namespace ib;
using rd_ends::Case;
using rd_ends::TwoEnds;

// The events that all cases together have produced.
struct Met {
  std::uint64_t lost = 0, doubled = 0, overtaken = 0, succeeded = 0, failed = 0, delivered = 0,
                aborted_receives = 0, brought_back = 0, resyncs = 0, resyncs_again = 0,
                put_back = 0, naks = 0, rnr_naks = 0, timeouts = 0, invalid_rd = 0, ignored = 0,
                duplicates = 0;
};

void run_case(const Case& c, Met* met) {
  TwoEnds ends(c);
  EXPECT_EQ(ends.run(), "") << "seed " << c.seed << " at " << ends.now().ns() << " ns";
  met->lost += ends.wire().lost;
  met->doubled += ends.wire().doubled;
  met->overtaken += ends.wire().overtaken;
  for (int i = 0; i < 2; ++i) {
    rd_ends::End& e = ends.end(i);
    met->succeeded += e.succeeded;
    met->failed += e.failed;
    met->delivered += e.delivered;
    met->aborted_receives += e.aborted_receives;
    met->brought_back += e.brought_back;
    for (std::uint32_t n = 0; n < rd_ends::kContexts; ++n) {
      const EeContext& ee = *e.host().context(0x50 + n);
      const RdRequesterCounters& q = ee.requester.counters();
      const RdResponderCounters& r = ee.responder.counters();
      met->resyncs += q.resyncs;
      met->resyncs_again += q.resyncs_again;
      met->put_back += q.put_back;
      met->naks += q.naks;
      met->rnr_naks += q.rnr_naks;
      met->timeouts += q.timeouts;
      met->invalid_rd += r.invalid_rd;
      met->ignored += r.ignored;
      met->duplicates += r.duplicates;
    }
  }
}

// proves: IB-179
TEST(RdTwoEnded, MessagesArriveAtMostOnceInOrderAndRequestsCompleteOnce) {
  Met met;
  if (const char* one = std::getenv("URNIC_TEST_SEED"); one != nullptr) {
    return run_case(Case(std::strtoull(one, nullptr, 10)), &met);
  }
  const std::uint64_t seeds = std::getenv("URNIC_TEST_LONG") != nullptr ? 10'000 : 200;
  for (std::uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    run_case(Case(seed), &met);
  }
  // A seed has 192 requests. Every kind of fault and of repair must occur often.
  EXPECT_GT(met.succeeded, seeds * 100);
  for (const std::uint64_t n :
       {met.lost, met.doubled, met.overtaken, met.failed, met.resyncs, met.naks, met.rnr_naks,
        met.timeouts, met.duplicates, met.brought_back}) {
    EXPECT_GE(n, seeds);
  }
  for (const std::uint64_t n :
       {met.resyncs_again, met.put_back, met.invalid_rd, met.ignored, met.aborted_receives}) {
    EXPECT_GE(n, seeds / 20);
  }
}

}  // namespace
}  // namespace urnic::sim::test
