// The reply carries the acknowledgement of its request (E-7). An engine whose caller polls again at
// once delays the ACK, but not for long.
#include <gtest/gtest.h>

#include "tests/iwarp/rx_path.h"

namespace urnic::test {
namespace {

struct CarriedAck : RxPath {
  static constexpr bool kComesBack = true, kLeaves = false;

  std::vector<Answer> arrive(std::size_t i, bool comes_back) {
    return p.one_poll({{i * kSize, fpdus[i]}}, comes_back);
  }
  // The consumer's reply: sent by the doorbell, without a poll.
  std::vector<Answer> reply() {
    const verbs::Sge sge{p.to(0), 8, p.stag};
    verbs::SendWr wr;
    wr.op = verbs::WrOp::Write;
    wr.sges = {&sge, 1};
    wr.rkey = 0x1234;
    EXPECT_EQ(p.node().post_send(*p.qp, wr, p.now), verbs::Post::Ok);
    return p.seen();
  }
  void expect_ack(const std::vector<Answer>& sent, std::uint64_t ack) {
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_TRUE(sent[0].pure_ack());
    EXPECT_EQ(sent[0].ack, ack);
  }
};

// proves: E-7
TEST_F(CarriedAck, AReplyCarriesTheAckAndNothingElseIsSent) {
  up();
  EXPECT_TRUE(arrive(0, kComesBack).empty());
  const auto sent = reply();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_FALSE(sent[0].payload.empty());
  EXPECT_EQ(sent[0].ack, kSize);
  EXPECT_TRUE(p.one_poll({}, kComesBack).empty());
  EXPECT_TRUE(p.one_poll({}, kLeaves).empty());
}

// proves: E-7
TEST_F(CarriedAck, APollWithoutNewFramesSendsTheAck) {
  up();
  EXPECT_TRUE(arrive(0, kComesBack).empty());
  expect_ack(p.one_poll({}, kComesBack), kSize);
  EXPECT_TRUE(p.one_poll({}, kComesBack).empty());
}

// proves: E-7
TEST_F(CarriedAck, ACallerThatDoesNotPollAgainAcknowledgesAtOnce) {
  up();
  expect_ack(arrive(0, kLeaves), kSize);
  EXPECT_TRUE(arrive(1, kComesBack).empty());
  const Cut for_nobody{.flags = tcp::kRst, .source_port = 1};
  expect_ack(p.one_poll({for_nobody}, kLeaves), 2 * kSize);
}

// A program that takes the message and exits at once does not prevent its acknowledgement.
// proves: E-7
TEST_F(CarriedAck, TheAckIsSentBeforeASleepingCallerIsWoken) {
  up();
  ASSERT_TRUE(p.post_receive(1, 5000, 100));
  p.qp->receive_cq->arm(false);
  std::vector<Answer> before;
  int told = 0;
  p.node().on_sleeper = [&] {
    ++told;
    before = p.seen();
  };
  const Bytes message = p.send_message(1, Bytes(10, 7));
  EXPECT_TRUE(p.one_poll({{0, message}}, kLeaves).empty());
  EXPECT_EQ(told, 1);
  expect_ack(before, message.size());
}

// RFC 9293 3.8.6.3. A full segment of this peer has at least the 536 bytes of RFC 9293 3.7.1.
// proves: E-7
TEST_F(CarriedAck, TwoFullSegmentsAreNeverLeftUnacknowledged) {
  up();
  EXPECT_TRUE(arrive(0, kComesBack).empty());
  EXPECT_TRUE(arrive(1, kComesBack).empty());
  expect_ack(arrive(2, kComesBack), 3 * kSize);
}

// proves: E-7
TEST_F(CarriedAck, TheAckWaitsAtMost50Microseconds) {
  up();
  const Instant since = p.now;
  EXPECT_TRUE(arrive(0, kComesBack).empty());
  EXPECT_EQ(p.node().engine().next_deadline(), since + Duration::us(50));
  p.now = since + Duration::ns(49999);
  EXPECT_TRUE(arrive(1, kComesBack).empty()) << "more came: not idle";
  p.now = since + Duration::us(50);
  const Bytes little = p.write(0, Bytes(10, 1));
  expect_ack(p.one_poll({{2 * kSize, little}}, kComesBack), 2 * kSize + little.size());
}

// A poll that received so few bytes leaves timers and turns to the next poll if that follows at
// once. That one does not postpone them again.
// proves: E-51
TEST_F(CarriedAck, WorkPostponedByOnePollIsDoneByTheNext) {
  up();
  arrive(0, kLeaves);  // a responder sends second
  const auto sent = reply();
  ASSERT_EQ(sent.size(), 1u);
  const auto behind = static_cast<std::uint32_t>(sent[0].payload.size());
  const Instant due = tcp::next_deadline(p.connection()->tcb);
  const Bytes little = p.write(0, Bytes(10, 1));
  p.now = due - Duration::us(10);
  EXPECT_TRUE(p.one_poll({{.at = kSize, .bytes = little, .behind = behind}}, kComesBack).empty());
  p.now = due;
  const auto again =
      p.one_poll({{.at = kSize + little.size(), .bytes = little, .behind = behind}}, kComesBack);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].payload, sent[0].payload);
}

// proves: E-7
TEST_F(CarriedAck, OutOfOrderDataIsAcknowledgedAtOnce) {
  up();
  EXPECT_TRUE(arrive(0, kComesBack).empty());
  const auto sent = arrive(2, kComesBack);
  ASSERT_EQ(sent.size(), 2u) << "what was owed, and its own";
  EXPECT_EQ(sent[0].ack, kSize);
  EXPECT_EQ(sent[1].sack.size(), 1u);
}

}  // namespace
}  // namespace urnic::test
