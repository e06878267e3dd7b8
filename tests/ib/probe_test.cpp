// The requester's probe: when it is sent, its contents, and what it does not affect.
#include "ib/probe.h"

#include <gmock/gmock.h>

#include "ib/requester.h"
#include "ib/requester_bench.h"

namespace urnic::ib {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using verbs::Status;
using verbs::WrOp;

class RequesterProbe : public RequesterBench {
 protected:
  RequesterProbe() {
    qp.probe = true;
    qp.ack_timeout = 15;  // 134 ms
  }
  void post_sends(int n) {
    for (int i = 0; i < n; ++i) post(WrOp::Send, 1);
  }
};

// proves: S-5
TEST_F(RequesterProbe, ResendsTheOldestPacketWithAckRequestWhenNothingArrives) {
  rules.window = 100;
  post(WrOp::Write, 3 * kPmtu);
  leave();
  EXPECT_EQ(r().due(), now + Duration::ms(1));
  pass_until_due();
  const auto probe = leave();
  ASSERT_THAT(psns(probe), ElementsAre(100));
  EXPECT_EQ(probe[0].operation(), Operation::WriteFirst);
  EXPECT_TRUE(probe[0].ask());
  EXPECT_THAT(probe[0].payload, SizeIs(kPmtu));
  EXPECT_EQ(r().counters().probes, 1u);
  EXPECT_EQ(r().state().next, r().state().fresh) << "no position has moved";
}

// proves: S-5
TEST_F(RequesterProbe, SwitchedOffNothingIsProbed) {
  qp.probe = false;
  post_sends(1);
  leave();
  EXPECT_EQ(r().due(), now + ack_timeout(15));
  pass(Duration::ms(100));
  EXPECT_THAT(leave(), IsEmpty());
}

// proves: S-5
TEST_F(RequesterProbe, WaitsForTwoSmoothedRoundTrips) {
  post_sends(1);
  leave();
  now = now + Duration::us(800);
  ack(100);
  EXPECT_EQ(r().state().probe.round_trip(), Duration::us(800));
  post_sends(1);
  leave();
  EXPECT_EQ(r().due(), now + Duration::us(1600));
  now = now + Duration::us(1600);
  ack(101);
  EXPECT_EQ(r().state().probe.round_trip(), Duration::us(900));
}

// proves: S-5
TEST_F(RequesterProbe, EachUnansweredProbeDoublesTheWait) {
  post_sends(1);
  leave();
  for (const int ms : {1, 2, 4, 8}) {
    EXPECT_EQ(r().due(), now + Duration::ms(ms));
    pass_until_due();
    EXPECT_THAT(psns(leave()), ElementsAre(100));
  }
  post_sends(1);
  leave();
  ack(100);
  EXPECT_EQ(r().due() - now, Duration::ms(30)) << "two round trips: 15 ms it took";
}

// proves: S-5
TEST_F(RequesterProbe, UsesUpNoRetryAndLeavesTheTransportTimerAlone) {
  qp.retry_count = 1;
  post_sends(2);
  leave();
  const Instant timeout = now + ack_timeout(15);
  int probes = 0;
  while (r().due() != timeout) {
    pass_until_due();
    probes += static_cast<int>(leave().size());
    ASSERT_FALSE(r().failed());
    ASSERT_LT(probes, 100);
  }
  EXPECT_EQ(probes, 7);
  EXPECT_EQ(r().state().timer.due(), timeout);
  EXPECT_EQ(r().state().retries.retries_left(), 1);
  pass_until_due();
  EXPECT_EQ(r().state().retries.retries_left(), 0);
  EXPECT_THAT(psns(leave()), ElementsAre(100, 101));
  const Instant second = now + ack_timeout(15);
  for (int i = 0; i < 100 && !r().failed(); ++i) {
    pass_until_due();
    leave();
  }
  EXPECT_EQ(now, second) << "a dead peer is given up when the letter does";
  EXPECT_THAT(statuses(), ElementsAre(Status::RetryExceeded, Status::Flushed));
  EXPECT_TRUE(r().due().is_never());
}

// proves: S-5
TEST_F(RequesterProbe, NoProbeIsSentDuringAnRnrWait) {
  post_sends(2);
  leave();
  pass_until_due();  // already due
  rnr(100, 18);      // 5.12 ms
  EXPECT_EQ(r().due(), now + rnr_wait(18));
  EXPECT_THAT(leave(), IsEmpty());
  pass(Duration::ms(4));
  EXPECT_THAT(leave(), IsEmpty());
  pass_until_due();
  EXPECT_THAT(psns(leave()), ElementsAre(100, 101));
  EXPECT_EQ(r().counters().probes, 0u);
}

// proves: S-5
TEST_F(RequesterProbe, AnRnrNakCancelsTheProbe) {
  post_sends(1);
  leave();
  rnr(100, 18);
  EXPECT_EQ(r().due(), now + rnr_wait(18)) << "not the probe's millisecond";
}

// proves: S-5
TEST_F(RequesterProbe, AProbeIsAlsoSentAfterARetransmission) {
  post_sends(3);
  leave();
  nak(100, NakCode::SequenceError);
  EXPECT_THAT(psns(leave()), ElementsAre(100, 101, 102));
  EXPECT_EQ(r().due(), now + Duration::ms(1));
  pass_until_due();
  EXPECT_THAT(psns(leave()), ElementsAre(100));
  EXPECT_EQ(r().state().retries.retries_left(), 6) << "the NAK took one";
}

// proves: S-5
TEST_F(RequesterProbe, AnAckOfOnlyTheProbedPacketShowsThatTheRestIsLost) {
  post_sends(4);
  leave();
  pass_until_due();
  leave();
  post_sends(1);
  leave();
  ack(100);
  EXPECT_THAT(psns(leave()), ElementsAre(101, 102, 103, 104));
  EXPECT_EQ(r().counters().probe_losses, 1u);
  EXPECT_EQ(r().state().retries.retries_left(), 7);
  ack(101);
  EXPECT_THAT(leave(), IsEmpty()) << "once";
}

// proves: S-5
TEST_F(RequesterProbe, AnAckPastTheProbedPacketRepeatsNothing) {
  post_sends(4);
  leave();
  pass_until_due();
  leave();
  ack(102);
  EXPECT_THAT(leave(), IsEmpty());
  ack(103);
  EXPECT_THAT(done(), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(r().due().is_never());
}

// proves: S-5
TEST_F(RequesterProbe, PacketsSentAfterTheProbeAreNotConsideredLost) {
  post_sends(1);
  leave();
  pass_until_due();
  leave();
  post_sends(1);
  leave();
  ack(100);
  EXPECT_THAT(leave(), IsEmpty());
}

// proves: S-5
TEST_F(RequesterProbe, AResponseWithoutProgressDelaysTheProbe) {
  post_sends(3);
  leave();
  nak(101, NakCode::SequenceError);
  leave();
  now = now + Duration::us(500);
  nak(101, NakCode::SequenceError);
  EXPECT_EQ(r().due(), now + Duration::ms(1));
}

// The response in progress continues: a probe would make a peer restart a long READ again and
// again.
// proves: S-5
TEST_F(RequesterProbe, ADuplicateResponseDelaysTheProbe) {
  post(WrOp::Read, 3 * kPmtu, 4096);
  leave();
  data(Operation::ReadResponseFirst, 100, bytes_of(kPmtu, 1));
  data(Operation::ReadResponseMiddle, 101, bytes_of(kPmtu, 2));
  const Instant then = r().due();
  now = now + Duration::us(500);
  EXPECT_EQ(data(Operation::ReadResponseMiddle, 101, bytes_of(kPmtu, 2)), Response::Duplicate);
  EXPECT_EQ(r().due(), then + Duration::us(500));
}

// proves: S-5
TEST_F(RequesterProbe, APacketWhoseMemoryIsGoneIsLeftToTheTransportTimer) {
  post_sends(1);
  leave();
  table.deregister(lkey);
  pass_until_due();
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_FALSE(r().failed()) << "the ACK may still come";
  ack(100);
  EXPECT_THAT(done(), ElementsAre(1));
}

}  // namespace
}  // namespace urnic::ib
