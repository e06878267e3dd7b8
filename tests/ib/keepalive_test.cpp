#include "ib/keepalive.h"

#include <gtest/gtest.h>

namespace urnic::ib {
namespace {

constexpr Duration kIdle = Duration::s(3), kApart = Duration::s(1);

QpAttributes attributes() {
  QpAttributes qp;
  qp.dest_qp = 0x77;
  qp.sq_psn = Psn(5);
  qp.rq_psn = Psn(9);
  return qp;
}

class KeepaliveTest : public ::testing::Test {
 protected:
  KeepaliveTest() { k.begin(kIdle, now); }
  // Its next check, at its time.
  bool look(std::uint64_t heard, bool busy = false) {
    now = k.due();
    return k.on_time(heard, busy, kIdle, now);
  }

  Instant now = Instant::from_ns(1000);
  Keepalive k;
};

// proves: E-43
TEST_F(KeepaliveTest, GivesUpAfterThreeProbes) {
  EXPECT_EQ(k.due(), now + kIdle);
  for (int n = 0; n < Keepalive::kQuestions; ++n) {
    EXPECT_FALSE(k.asks());
    ASSERT_FALSE(look(0));
    ASSERT_TRUE(k.asks());
    EXPECT_EQ(k.due(), now + kApart);
    k.question(attributes(), Psn(6));
  }
  EXPECT_TRUE(look(0));
  EXPECT_TRUE(k.due().is_never());
  EXPECT_FALSE(k.asks());
}

// proves: E-43
TEST_F(KeepaliveTest, APeerThatIsHeardOrHasRequestsOutstandingIsNotProbed) {
  EXPECT_FALSE(look(1));
  EXPECT_FALSE(k.asks());
  EXPECT_EQ(k.due(), now + kIdle);
  EXPECT_FALSE(look(1, true));
  EXPECT_FALSE(k.asks());
  EXPECT_FALSE(look(1));
  EXPECT_TRUE(k.asks()) << "nothing since";
}

// proves: E-43
TEST_F(KeepaliveTest, AResponseRestartsTheIdleTime) {
  for (int round = 0; round < 5; ++round) {
    EXPECT_FALSE(look(1 + static_cast<std::uint64_t>(round)));
    for (int n = 0; n < Keepalive::kQuestions; ++n) {
      EXPECT_FALSE(look(1 + static_cast<std::uint64_t>(round)));
    }
  }
}

// A process that was stopped has sent no probes meanwhile.
// proves: E-43
TEST_F(KeepaliveTest, AfterALeapOfTimeThePeerIsProbedAgainBeforeItIsGivenUp) {
  for (int n = 0; n < Keepalive::kQuestions; ++n) ASSERT_FALSE(look(0));
  k.question(attributes(), Psn(6));
  now = now + Duration::s(3600);
  EXPECT_FALSE(k.on_time(0, false, kIdle, now));
  EXPECT_TRUE(k.asks());
  EXPECT_FALSE(look(0));
  EXPECT_FALSE(look(0));
  EXPECT_TRUE(look(0));
}

// proves: IB-42, E-43
TEST_F(KeepaliveTest, TheProbeIsADuplicateWriteOfNoBytes) {
  ASSERT_FALSE(look(0));
  const PacketHeader h = k.question(attributes(), Psn(0));
  EXPECT_EQ(h.bth.psn, Psn(0xffffff));
  EXPECT_EQ(h.bth.opcode, Opcode(ServiceType::Rc, Operation::WriteOnly));
  EXPECT_EQ(h.bth.dest_qp, 0x77u);
  EXPECT_TRUE(h.bth.ack_request);
  EXPECT_EQ(h.reth.length, 0u);
  EXPECT_FALSE(k.asks());
}

// proves: E-43
TEST_F(KeepaliveTest, AProbeIsAnsweredWithoutAResponderHalf) {
  ParsedPacket p;
  p.header.bth.opcode = Opcode(ServiceType::Rc, Operation::WriteOnly);
  p.header.bth.ack_request = true;
  p.header.bth.psn = Psn(9);
  EXPECT_FALSE(k.take_question(p, attributes())) << "a request";
  p.header.bth.psn = Psn(8);
  p.header.bth.opcode = Opcode(ServiceType::Rc, Operation::SendOnly);
  EXPECT_FALSE(k.take_question(p, attributes()));
  p.header.bth.opcode = Opcode(ServiceType::Rc, Operation::WriteOnly);
  ASSERT_TRUE(k.take_question(p, attributes()));
  ASSERT_TRUE(k.answers());
  const PacketHeader h = k.answer(attributes(), 3);
  EXPECT_EQ(h.bth.opcode, Opcode(ServiceType::Rc, Operation::Acknowledge));
  EXPECT_EQ(h.bth.psn, Psn(8)) << "what was acknowledged last";
  EXPECT_EQ(h.aeth.syndrome.kind(), AckKind::Ack);
  EXPECT_FALSE(k.answers());
  EXPECT_FALSE(look(0));
  EXPECT_FALSE(k.asks()) << "who asks is there";
}

// proves: E-43
TEST_F(KeepaliveTest, AResponseIsAcceptedWithoutARequesterHalf) {
  ParsedPacket p;
  p.header.bth.opcode = Opcode(ServiceType::Rc, Operation::Acknowledge);
  p.header.aeth.syndrome = Syndrome::ack(3);
  p.header.bth.psn = Psn(5);
  EXPECT_FALSE(k.take_answer(p, attributes())) << "nothing has left that it could be for";
  p.header.bth.psn = Psn(4);
  ASSERT_FALSE(look(0));
  EXPECT_TRUE(k.take_answer(p, attributes()));
  EXPECT_FALSE(look(0));
  EXPECT_EQ(k.due(), now + kIdle);
}

}  // namespace
}  // namespace urnic::ib
