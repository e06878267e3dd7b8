// States of EE contexts and of RD queue pairs, and how the state of one affects the requests of the
// other.
#include "sim/rd/ee_context.h"

#include <gtest/gtest.h>

#include "tests/sim/rd_bench.h"

namespace urnic::sim {
namespace {

using namespace ib;
using test::RdBench;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using verbs::Mover;
using verbs::QpState;
using verbs::QpVerdict;
using verbs::Status;
using verbs::WrOp;
using enum QpState;

constexpr QpState kStates[] = {Reset, Init, Rtr, Rts, Sqd, Sqe, Error};

// proves: IB-180
TEST(EeContextStates, AnEeContextHasNoSqeState) {
  for (const QpState s : kStates) {
    for (const Mover by : {Mover::Consumer, Mover::Transport}) {
      EXPECT_FALSE(judge_ee_move(s, Sqe, by).ok());
      EXPECT_FALSE(judge_ee_move(Sqe, s, by).ok());
    }
  }
  EXPECT_TRUE(judge_ee_move(Rts, Error, Mover::Transport).ok());
  EXPECT_TRUE(judge_ee_move(Rts, Sqd, Mover::Consumer).ok());
  EXPECT_TRUE(judge_ee_move(Sqd, Rts, Mover::Consumer).ok());
}

// proves: IB-180
TEST(RdQueuePairStates, AnRdQueuePairHasTheSqeState) {
  EXPECT_TRUE(judge_rd_move(Rts, Sqe, Mover::Transport, 0).ok());
  EXPECT_TRUE(judge_rd_move(Sqd, Sqe, Mover::Transport, 0).ok());
  EXPECT_TRUE(judge_rd_move(Sqe, Rts, Mover::Consumer, verbs::kQpAttrState).ok());
  EXPECT_FALSE(judge_rd_move(Rts, Sqe, Mover::Consumer, verbs::kQpAttrState).ok());
}

// The rows of 1.4 to 1.6 that name RD.
// proves: IB-180
TEST(RdQueuePairStates, MovesTakeTheAttributesOfRd) {
  const auto required = [](QpState from, QpState to) { return rd_attributes(from, to).required; };
  EXPECT_EQ(required(Reset, Init), verbs::kQpAttrAccess | verbs::kQpAttrQkey);
  EXPECT_EQ(required(Init, Rtr), verbs::kQpAttrMaxDestRdAtomic);
  EXPECT_EQ(required(Rtr, Rts), verbs::kQpAttrMaxRdAtomic);
  EXPECT_NE(rd_attributes(Init, Rtr).optional & verbs::kQpAttrMinRnrTimer, 0u);
  for (const QpState from : kStates) {
    for (const QpState to : kStates) {
      const verbs::QpMask takes = rd_attributes(from, to);
      const std::uint32_t all = takes.required | takes.optional | verbs::kQpAttrState;
      if (!judge_rd_move(from, to, Mover::Consumer, all).ok()) continue;
      for (std::uint32_t bit = 1; bit <= verbs::kQpAttrAll; bit <<= 1) {
        if (bit == verbs::kQpAttrState) continue;
        if ((takes.required & bit) != 0) {
          EXPECT_EQ(judge_rd_move(from, to, Mover::Consumer, all & ~bit).verdict,
                    QpVerdict::MissingAttribute);
        } else if ((all & bit) == 0) {
          EXPECT_FALSE(judge_rd_move(from, to, Mover::Consumer, all | bit).ok()) << bit;
        }
      }
      // The address, PSNs and retries belong to the EE context.
      constexpr std::uint32_t kConnection = verbs::kQpAttrAv | verbs::kQpAttrPathMtu |
                                            verbs::kQpAttrDestQpn | verbs::kQpAttrRqPsn |
                                            verbs::kQpAttrSqPsn | verbs::kQpAttrTimeout |
                                            verbs::kQpAttrRetryCount | verbs::kQpAttrRnrRetry;
      EXPECT_EQ(all & kConnection, 0u);
    }
  }
}

// ---- IB-131

struct WorkByState : RdBench {
  // A request of queue pair 0x11 names an EE context in `state`; a second request follows it.
  void request_over(QpState state) {
    host();
    EeAttributes a = ee;
    a.number = 0x77;
    EeContext& named = *host().make_context(a);
    for (const QpState s : {Init, Rtr, Rts}) {
      if (named.state != state) {
        EXPECT_TRUE(host().modify(named, s).ok());
      }
    }
    if (named.state != state) {
      EXPECT_TRUE(host().modify(named, state).ok());
    }
    post(WrOp::Send, 10, 0x11, 1, 0x77);
    post(WrOp::Send, 10, 0x11, 2);
  }
};

// proves: IB-131
TEST_F(WorkByState, BeforeRtsTheRequestCompletesInError) {
  for (const QpState s : {Init, Rtr}) {
    again();
    request_over(s);
    EXPECT_THAT(requests(), IsEmpty());
    EXPECT_THAT(statuses(), ElementsAre(Status::LocalOperation, Status::Flushed));
    EXPECT_EQ(pair().state, Sqe);
    EXPECT_EQ(context().state, Rts);
  }
}

// proves: IB-131
TEST_F(WorkByState, InErrorTheRequestFailsAndTheQueuePairEntersSqe) {
  request_over(Error);
  EXPECT_THAT(requests(), IsEmpty());
  EXPECT_THAT(statuses(), ElementsAre(Status::LocalOperation, Status::Flushed));
  EXPECT_THAT(moved, ElementsAre(std::pair(0x11u, Sqe)));
}

// proves: IB-131
TEST_F(WorkByState, InSqdTheRequestWaitsUntilRts) {
  request_over(Sqd);
  EXPECT_THAT(requests(), IsEmpty());
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(pair().state, Rts);
  EXPECT_TRUE(host().modify(context(0x77), Rts).ok());
  EXPECT_EQ(only_request().operation(), Operation::SendOnly);
}

// proves: IB-131
TEST_F(WorkByState, AMessageThatHasBegunIsCompletedInSqd) {
  ee.rules.window = 2;
  post(WrOp::Send, 600, 0x11, 1);
  post(WrOp::Send, 10, 0x12, 2);
  EXPECT_EQ(requests().size(), 2u);
  EXPECT_TRUE(host().modify(context(), Sqd).ok());
  come(ack(101));
  EXPECT_EQ(only_request().operation(), Operation::SendLast);
  come(ack(102));
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
  EXPECT_THAT(requests(), IsEmpty());
}

// proves: IB-131
TEST_F(WorkByState, ARequestThatNamesNoEeContextCompletesInError) {
  post(WrOp::Send, 10, 0x11, 1, 0x999);
  EXPECT_THAT(requests(), IsEmpty());
  EXPECT_THAT(statuses(), ElementsAre(Status::LocalOperation));
  EXPECT_EQ(pair().state, Sqe);
}

// Other queue pairs of the same end continue, and this one recovers.
// proves: IB-131
TEST_F(WorkByState, AQueuePairRecoversFromSqeWithoutStoppingOthers) {
  request_over(Error);
  post(WrOp::Send, 10, 0x12, 3);
  EXPECT_EQ(only_request().h.deth.source_qp, 0x12u);
  come([&] {
    ParsedPacket p = ack(100);
    p.header.bth.dest_qp = 0x12;
    return p;
  }());
  post(WrOp::Send, 10, 0x11, 4);  // in Sqe: flushed
  host().flush_posted();
  EXPECT_THAT(statuses(), ElementsAre(Status::LocalOperation, Status::Flushed, Status::Success,
                                      Status::Flushed));
  EXPECT_TRUE(host().modify(pair(), Rts, verbs::kQpAttrState).ok());
  post(WrOp::Send, 10, 0x11, 5);
  EXPECT_EQ(only_request().psn(), 101u);
}

}  // namespace
}  // namespace urnic::sim
