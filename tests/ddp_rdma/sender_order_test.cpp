// The order in which the sender sends: start-up, responses, requests, fences, the last message.
#include "ddp_rdma/sender.h"

#include <gtest/gtest.h>

#include "ddp_rdma/sender_fixture.h"

namespace urnic::ddp::test {
namespace {

class SendingOrder : public SenderFixture {
 protected:
  using SenderFixture::SenderFixture;
};

TEST_F(SendingOrder, NoFpduIsCutBeforeFullOperation) {
  End fresh(config());
  Wire w;
  SendWr wr;
  ASSERT_EQ(fresh.stream.sq.post(wr), verbs::Post::Ok);
  EXPECT_EQ(fresh.stream.sender.available().value(), 0u);
  EXPECT_EQ(fresh.stream.sender.cut(StreamOffset(), 1460, 1460, false).len, 0u);
  const std::vector<std::uint8_t> request(533, 0x4d);  // an odd length
  fresh.stream.sender.queue_raw(request);
  EXPECT_EQ(fresh.stream.sender.available().value(), 533u);
  EXPECT_EQ(send_new(fresh, w, 1460, 1460), 533u);
  EXPECT_EQ(w.log, request);
  EXPECT_EQ(fresh.stream.sender.available().value(), 533u);
  fresh.stream.sender.start(true);
  EXPECT_EQ(send_new(fresh, w, 1460, 1460), 24u);
  EXPECT_EQ(send_segment(fresh, w, 0, 1460, 1460), 533u) << "start-up and FPDUs do not mix";
  EXPECT_EQ(send_segment(fresh, w, 10, 100, 1460), 100u);
}

TEST_F(SendingOrder, RawBytesAreCutAnywhere) {
  End fresh(config());
  Wire w;
  Rng rng(1);
  const auto request = random_bytes(rng, 532);
  fresh.stream.sender.queue_raw(request);
  while (send_new(fresh, w, 33, 536) != 0) {
  }
  EXPECT_EQ(w.log, request);
}

TEST_F(SendingOrder, ForgottenStartupBeginsAgain) {
  End fresh(config());
  Wire w;
  SendWr wr;
  ASSERT_EQ(fresh.stream.sq.post(wr), verbs::Post::Ok);
  fresh.stream.sender.queue_raw(Bytes(100, 1));
  send_new(fresh, w, 1460, 1460);
  fresh.stream.sender.queue_raw(Bytes(100, 2));
  fresh.stream.sender.take_rtr_read_msn();
  fresh.stream.sender.forget_startup();
  EXPECT_EQ(fresh.stream.sender.available().value(), 0u);
  Wire second;
  fresh.stream.sender.queue_raw(Bytes(50, 3));
  EXPECT_EQ(send_new(fresh, second, 1460, 1460), 50u);
  fresh.stream.sender.start(true);
  EXPECT_EQ(fresh.stream.sender.take_rtr_read_msn(), 1u);
  EXPECT_EQ(send_new(fresh, second, 1460, 1460), 24u) << "work requests stay";
}

TEST_F(SendingOrder, AReadyUlpduGoesBeforeNewMessages) {
  ASSERT_EQ(post(WrOp::Write, 3000), verbs::Post::Ok);
  go();
  ASSERT_EQ(post(WrOp::Write, 10), verbs::Post::Ok);
  s.queue_ulpdu(write_segment(1, 0, {}));
  while (go() != 0) {
  }
  const auto f = fpdus();
  ASSERT_EQ(f.size(), 5u);
  EXPECT_EQ(f[2].header.last, true) << "the message in progress is finished first";
  EXPECT_EQ(f[3].header.stag, 1u);
  EXPECT_EQ(f[4].payload.size(), 10u);
}

TEST_F(SendingOrder, TerminateCutsTheMessageShortAndIsTheLast) {
  ASSERT_EQ(post(WrOp::Write, 5000), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 10), verbs::Post::Ok);
  go();
  EXPECT_EQ(go(100, true), 100u);
  s.stop();
  s.queue_ulpdu(terminate_segment(Violation::MpaCrc));
  const std::uint64_t expected = s.available().value();
  EXPECT_GT(expected, wire.log.size());
  EXPECT_EQ(go(), 1360u) << "an FPDU that has begun is finished";
  EXPECT_GT(go(), 0u);
  EXPECT_TRUE(push);
  EXPECT_EQ(go(), 0u);
  const auto f = fpdus();
  ASSERT_EQ(f.size(), 3u);
  EXPECT_FALSE(f[1].header.last);
  EXPECT_EQ(f[2].header.op, Opcode::Terminate);
  EXPECT_EQ(s.available().value(), wire.log.size());
  EXPECT_TRUE(s.drained());
}

TEST_F(SendingOrder, StopFinishesTheMessageAndBeginsNone) {
  ASSERT_EQ(post(WrOp::Write, 3000), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 10), verbs::Post::Ok);
  request_read(10);
  go();
  s.stop();
  while (go() != 0) {
  }
  EXPECT_EQ(fpdus().size(), 3u);
  EXPECT_TRUE(fpdus().back().header.last);
}

TEST_F(SendingOrder, RequestsAndResponsesAlternateByMessageAndNeverMix) {
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(post(WrOp::Write, 3000), verbs::Post::Ok);
    request_read(3000);
  }
  while (go() != 0) {
  }
  std::string order;
  bool inside = false;
  for (const auto& f : fpdus()) {
    const char kind = f.header.op == Opcode::Write ? 'w' : 'r';
    if (!inside) order += kind;
    EXPECT_EQ(order.back(), kind) << "a message was interrupted";
    inside = !f.header.last;
  }
  EXPECT_EQ(order, "wrwrwrwr");
}

TEST_F(SendingOrder, ReadsBeyondOrdDelayLaterRequests) {
  for (std::uint64_t i = 1; i <= 3; ++i) ASSERT_EQ(post(WrOp::Read, 10, i), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Send, 10, 4), verbs::Post::Ok);
  EXPECT_EQ(go(), 2 * 52u) << "ORD is 2";
  EXPECT_TRUE(push) << "nothing can follow now";
  EXPECT_EQ(s.available().value(), wire.log.size());
  answer_read();
  EXPECT_EQ(go(), 52u + 36u);
  answer_read();
  answer_read();
  report();
  EXPECT_EQ(ids(), (Ids{1, 2, 3, 4})) << "R-112";
  EXPECT_EQ(fpdus()[2].header.msn, 3u);
}

// proves: R-112
TEST_F(SendingOrder, SendAfterAnOutstandingReadWaitsForIt) {
  ASSERT_EQ(post(WrOp::Read, 10, 1), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Send, 10, 2), verbs::Post::Ok);
  go();
  ack();
  EXPECT_TRUE(end.completions.empty());
  answer_read();
  EXPECT_EQ(ids(), (Ids{1, 2}));
}

TEST_F(SendingOrder, FenceWaitsForEarlierReads) {
  ASSERT_EQ(post(WrOp::Read, 10, 1), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 10, 2, kSignaled | kFence), verbs::Post::Ok);
  EXPECT_EQ(go(), 52u);
  EXPECT_EQ(s.available().value(), wire.log.size());
  answer_read();
  EXPECT_EQ(go(), 32u);
}

TEST_F(SendingOrder, ReadWithoutOrdFails) {
  end.stream.set_limits(8, 0);
  ASSERT_EQ(post(WrOp::Read, 10, 1), verbs::Post::Ok);
  EXPECT_EQ(s.available().value(), 0u);
  EXPECT_FALSE(s.failed()) << "asking changes nothing";
  s.execute_due();
  EXPECT_TRUE(s.failed());
  s.flush(Status::Flushed, end.sink());
  ASSERT_EQ(end.completions.size(), 1u);
  EXPECT_EQ(end.completions[0].status, Status::RemoteInvalidRequest);
}

TEST_F(SendingOrder, LocalInvalidationHappensInPostingOrder) {
  const std::uint32_t stag = end.add(source, kRemoteRead);
  ASSERT_EQ(post(WrOp::Write, 3000, 1), verbs::Post::Ok);
  SendWr wr;
  wr.wr_id = 2;
  wr.op = WrOp::LocalInv;
  wr.flags = kSignaled;
  wr.inv_key = stag;
  ASSERT_EQ(end.stream.sq.post(wr), verbs::Post::Ok);
  go();
  EXPECT_NE(end.memory.find(stag), nullptr) << "the Write is not cut yet";
  while (go() != 0) {
  }
  EXPECT_EQ(end.memory.find(stag), nullptr);
  report();
  EXPECT_TRUE(end.completions.empty()) << "the Write is not acknowledged";
  ack();
  EXPECT_EQ(ids(), (Ids{1, 2}));
  EXPECT_TRUE(s.idle());
}

TEST_F(SendingOrder, AskingForAvailableDataChangesNothing) {
  const std::uint32_t stag = end.add(source, kRemoteRead);
  SendWr wr;
  wr.op = WrOp::LocalInv;
  wr.flags = kSignaled;
  wr.inv_key = stag;
  ASSERT_EQ(end.stream.sq.post(wr), verbs::Post::Ok);
  const Sender& looked_at = s;
  EXPECT_EQ(looked_at.available().value(), 0u);
  EXPECT_NE(end.memory.find(stag), nullptr);
  EXPECT_FALSE(looked_at.drained());
  s.execute_due();
  EXPECT_EQ(end.memory.find(stag), nullptr);
  EXPECT_TRUE(looked_at.drained());
}

TEST_F(SendingOrder, RtrReadCompletesNothing) {
  const std::uint32_t msn = s.take_rtr_read_msn();
  EXPECT_EQ(msn, 1u);
  SegmentHeader h;
  h.op = Opcode::ReadRequest;
  h.last = true;
  h.qn = kQnReadRequest;
  h.msn = msn;
  h.read.sink_stag = h.read.source_stag = 1;
  s.queue_ulpdu(ulpdu(h));
  ASSERT_EQ(post(WrOp::Read, 10, 5), verbs::Post::Ok);
  EXPECT_EQ(go(), 2 * 52u);
  EXPECT_EQ(fpdus()[1].header.msn, 2u);
  EXPECT_FALSE(s.idle());
  const Bytes u = response_segment(1, 0, {});
  const Admission a = Admitter(end.stream, true).next(u);
  ASSERT_EQ(a.what, Admit::Place);
  ASSERT_EQ(deliver(end.stream, place(end.stream, a), end.sink()), Violation::None);
  EXPECT_TRUE(end.completions.empty());
  answer_read();
  EXPECT_EQ(ids(), Ids{5});
}

}  // namespace
}  // namespace urnic::ddp::test
