// The requester's probe through the engine (S-5): a setting, the state of each queue pair, and the
// time saved.
#include <gtest/gtest.h>

#include "device/engine_options.h"
#include "tests/roce/engine_ends.h"
#include "urnic/config.h"

namespace urnic::test {
namespace {

class RoceProbe : public RoceEnds {
 protected:
  // The duration of a Write whose only packet is lost; the transport timer is half a second.
  Duration lost_tail(bool probe) {
    sim::PairOptions o = both();
    o.left.roce.probe = probe;
    up(o, by_hand());
    rooms(4096);
    pair->run_for(Duration::ms(10));  // neighbors are resolved
    return lost_write(*left, 0);
  }
  static ByHand by_hand() {
    ByHand h;
    h.ack_timeout = 17;
    return h;
  }
  Duration lost_write(verbs::QueuePair& qp, std::uint64_t id) {
    pair->set_faults_left("loss=1");
    const Instant from = pair->now();
    post(qp, verbs::WrOp::Write, id, 100, 0);
    pair->run_for(Duration::us(500));
    pair->set_faults_left("");
    EXPECT_TRUE(run(id + 1));
    return pair->now() - from;
  }
};

// proves: S-5
TEST_F(RoceProbe, ALostTailCostsRoundTripsAndNotTheTransportTimer) {
  EXPECT_LT(lost_tail(true), Duration::ms(10));
  const RoceStats s = pair->left().engine().roce_control().stats_of(*left).roce;
  EXPECT_GE(s.probes_sent, 1u);
  EXPECT_EQ(s.requests_repeated, s.probes_sent);
  EXPECT_EQ(s.response_timeouts, 0u);
}

// proves: S-5
TEST_F(RoceProbe, SwitchedOffALostTailWaitsForTheTransportTimer) {
  EXPECT_GT(lost_tail(false), Duration::ms(500));
  const RoceStats s = pair->left().engine().roce_control().stats_of(*left).roce;
  EXPECT_EQ(s.probes_sent, 0u);
  EXPECT_EQ(s.response_timeouts, 1u);
}

// proves: S-5
TEST_F(RoceProbe, AQueuePairThatWasResetStillProbes) {
  EXPECT_LT(lost_tail(true), Duration::ms(10));
  roce::ControlPath& roce = pair->left().engine().roce_control();
  for (const verbs::QpState to : {verbs::QpState::Error, verbs::QpState::Reset}) {
    roce::QpChange c;
    c.to = to;
    ASSERT_EQ(roce.move(*left, c, pair->now()), roce::Modified::Ok);
  }
  verbs::QueuePair* fresh = pair->right().make_roce_qp();
  connect(pair->left(), *left, by_hand(), 0, fresh->number(), 1, pair->now());
  connect(pair->right(), *fresh, by_hand(), 1, left->number(), 0, pair->now());
  EXPECT_LT(lost_write(*left, 1), Duration::ms(10));
}

TEST(RoceProbeSetting, IsOnUnlessSwitchedOff) {
  Config c;
  EXPECT_TRUE(device::options_from(c, "mem").roce.probe);
  ASSERT_TRUE(c.set("probe", "off").ok());
  EXPECT_FALSE(device::options_from(c, "mem").roce.probe);
}

}  // namespace
}  // namespace urnic::test
