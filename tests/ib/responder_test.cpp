// Accepted requests: their effect on memory and receives.
#include "ib/responder.h"

#include "base/buffer_pool.h"
#include "responder_fixture.h"
#include "verbs/shared_receive_queue.h"

namespace urnic::ib {
namespace {

using test::Bytes;
using test::counting;

struct Requests : test::ResponderFixture {
  Bytes received(std::uint64_t wr_id, std::size_t n) {
    const std::uint8_t* const at = inbox() + 1000 * wr_id;
    return {at, at + n};
  }
};

TEST_F(Requests, ASendOfManyPacketsFillsItsReceive) {
  post(1, 1000);
  const Bytes message = counting(2 * kPmtu + 100);
  const auto part = [&](std::size_t from, std::size_t n) {
    return Bytes(message.begin() + static_cast<std::ptrdiff_t>(from),
                 message.begin() + static_cast<std::ptrdiff_t>(from + n));
  };
  next(packet(Operation::SendFirst, psn, part(0, kPmtu)));
  next(packet(Operation::SendMiddle, psn, part(kPmtu, kPmtu)));
  EXPECT_TRUE(completions.empty());
  EXPECT_EQ(next(packet(Operation::SendLast, psn, part(2 * kPmtu, 100))), Verdict::Accept);
  ASSERT_EQ(completions.size(), 1u);
  const verbs::Completion& c = completions[0];
  EXPECT_EQ(c.wr_id, 1u);
  EXPECT_TRUE(c.receive);
  EXPECT_EQ(c.status, verbs::Status::Success);
  EXPECT_EQ(c.op, verbs::WrOp::Send);
  EXPECT_EQ(c.byte_len, 612u);
  EXPECT_FALSE(c.solicited || c.with_immediate || c.with_invalidate);
  EXPECT_EQ(received(1, 612), message);
  EXPECT_EQ(rq.posted(), 0u);
}

TEST_F(Requests, ASendReportsImmediateDataAndSolicitation) {
  for (std::uint64_t i = 1; i < 4; ++i) post(i);
  ParsedPacket p = packet(Operation::SendOnlyImm, psn, counting(3));
  p.header.immediate = 0xfffefdfc;
  p.header.bth.solicited = true;
  next(p);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_TRUE(completions[0].with_immediate && completions[0].solicited);
  EXPECT_EQ(completions[0].immediate, 0xfffefdfcu);
  EXPECT_EQ(completions[0].byte_len, 3u);
  EXPECT_EQ(received(1, 4), (Bytes{1, 8, 15, 0}));
  next(packet(Operation::SendOnly, psn));
  EXPECT_EQ(completions[1].byte_len, 0u);
  EXPECT_FALSE(completions[1].with_immediate);
}

TEST_F(Requests, ASendWithInvalidateInvalidatesTheKey) {
  post(1);
  post(2);
  const std::uint32_t key = table.register_memory(kPd, {target(), 0, 64}, kAll);
  ParsedPacket p = packet(Operation::SendOnlyInv, psn, counting(3));
  p.header.inv_rkey = key;
  EXPECT_EQ(next(p), Verdict::Accept);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_TRUE(completions[0].with_invalidate);
  EXPECT_EQ(completions[0].inv_key, key);
  EXPECT_EQ(table.find(key), nullptr);
  responses();
  p = packet(Operation::SendOnlyInv, psn, counting(3));
  p.header.inv_rkey = 0x12345;
  EXPECT_EQ(next(p), Verdict::KeyStays);
  ASSERT_EQ(completions.size(), 2u);
  EXPECT_EQ(completions[1].status, verbs::Status::RemoteInvalidRequest);
  EXPECT_FALSE(responder().failed()) << "its ACK has yet to leave";
  const test::Response ack = only_response();
  EXPECT_TRUE(ack.is_ack()) << "no NAK: the message has come";
  EXPECT_EQ(ack.psn, psn - 1);
  EXPECT_TRUE(responder().failed());
  EXPECT_EQ(verdict(packet(Operation::SendOnly, psn)), Verdict::Ignored);
}

TEST_F(Requests, ARefusedWriteWithImmediateOfOnePacketFailsItsReceive) {
  for (const bool one : {true, false}) {
    again();
    completions.clear();
    post(1);
    if (!one) {
      next(write(Operation::WriteFirst, psn, 0, kPmtu + 4, counting(kPmtu)));
      table.invalidate(rkey, qp.peer());
    }
    ParsedPacket p = one ? write(Operation::WriteOnlyImm, psn, kBytes, 4, counting(4))
                         : packet(Operation::WriteLastImm, psn, counting(4));
    EXPECT_EQ(verdict(p), Verdict::RemoteAccess);
    ASSERT_EQ(completions.size(), one ? 1u : 0u) << "of several packets it is flushed";
    if (one) {
      EXPECT_EQ(completions[0].status, verbs::Status::LocalAccess);
      EXPECT_TRUE(completions[0].receive);
    }
    EXPECT_TRUE(only_response().is_nak(NakCode::RemoteAccess));
  }
}

TEST_F(Requests, AKeyIsNotInvalidatedWhileEarlierReadsUseIt) {
  post(1);
  next(read(psn, 0, 2 * kPmtu));
  ParsedPacket p = packet(Operation::SendOnlyInv, psn, counting(3));
  p.header.inv_rkey = rkey;
  EXPECT_EQ(verdict(p), Verdict::NotReady);
  const auto all = responses();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].operation, Operation::ReadResponseLast);
  EXPECT_EQ(all[2].syndrome, Syndrome::rnr_nak(1));  // 10 us
  EXPECT_EQ(all[2].psn, psn);
  EXPECT_EQ(rq.posted(), 1u);
  EXPECT_EQ(next(p), Verdict::Accept);
  EXPECT_TRUE(only_response().is_ack());
  EXPECT_EQ(table.find(rkey), nullptr);
  // READs with another key do not matter.
  post(2);
  const std::uint32_t one = table.register_memory(kPd, {target(), 0, 64}, kAll);
  const std::uint32_t other = table.register_memory(kPd, {target(), 0, 64}, kAll);
  ParsedPacket r = read(psn, 0, 8);
  r.header.reth = {0, one, 8};
  next(r);
  p.header.inv_rkey = other;
  EXPECT_EQ(next(p), Verdict::Accept);
}

TEST_F(Requests, EachPacketOfAWriteIsPlacedAfterTheOneBefore) {
  const Bytes before(target(), target() + kBytes);
  next(write(Operation::WriteFirst, psn, 100, 2 * kPmtu + 5, counting(kPmtu)));
  next(packet(Operation::WriteMiddle, psn, counting(kPmtu, 2)));
  EXPECT_EQ(next(packet(Operation::WriteLast, psn, counting(5, 3))), Verdict::Accept);
  EXPECT_EQ(Bytes(target() + 100, target() + 100 + kPmtu), counting(kPmtu));
  EXPECT_EQ(Bytes(target() + 100 + kPmtu, target() + 100 + 2 * kPmtu), counting(kPmtu, 2));
  EXPECT_EQ(Bytes(target() + 612, target() + 617), counting(5, 3));
  EXPECT_EQ(target()[99], before[99]);
  EXPECT_EQ(target()[617], before[617]);
  EXPECT_TRUE(completions.empty());
}

TEST_F(Requests, EveryLengthIsPlacedWhole) {
  for (std::uint32_t n = 0; n <= 40; ++n) {
    std::fill(target(), target() + 64, std::uint8_t{0});
    next(write_only(psn, 3, counting(n, n)));
    EXPECT_EQ(Bytes(target() + 3, target() + 3 + n), counting(n, n));
    EXPECT_EQ(target()[2], 0);
    EXPECT_EQ(target()[3 + n], 0);
  }
}

TEST_F(Requests, QueuePairsOnASharedQueueTakeReceivesAsMessagesBegin) {
  verbs::SharedReceiveQueue shared(kPd + 1, 8, 1);  // in another protection domain
  const std::uint32_t theirs =
      table.register_memory(kPd + 1, {inbox(), 0, kBytes}, verbs::kLocalWrite);
  BufferPool pool;
  verbs::ReceiveQueue mine(&shared, &pool, 0), other(&shared, &pool, 0);
  queue = &mine;
  QpAttributes second = qp;
  Responder neighbour(second, &other, &table);
  EXPECT_EQ(verdict(packet(Operation::SendOnly, psn, counting(4))), Verdict::NotReady);
  responses();
  for (std::uint64_t i = 1; i < 3; ++i) {
    const verbs::Sge sge{1000 * i, 500, theirs};
    shared.post({i, {&sge, 1}});
  }
  next(packet(Operation::SendFirst, psn, counting(kPmtu)));
  verbs::Completion c;
  EXPECT_TRUE(neighbour.take(packet(Operation::SendOnly, qp.rq_psn, counting(4, 5)), &c).completed);
  EXPECT_EQ(c.wr_id, 2u);
  next(packet(Operation::SendLast, psn, counting(9)));
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].wr_id, 1u);
  EXPECT_EQ(received(2, 4), counting(4, 5));
  EXPECT_EQ(shared.available(), 0u);
}

TEST_F(Requests, CountersCountEachEvent) {
  next(write_only(psn, 0, counting(4)));
  verdict(write_only(qp.rq_psn, 0, counting(4)));
  verdict(fetch_add(qp.rq_psn, 0, 1));
  responses();
  verdict(write_only(psn + 1, 0, counting(4)));
  responses();
  verdict(packet(Operation::SendOnly, psn));
  responses();
  next(read(psn, 0, 300));
  responses();
  verdict(packet(Operation::SendMiddle, psn));
  responses();
  const ResponderCounters& n = responder().counters();
  EXPECT_EQ(n.requests, 2u);
  EXPECT_EQ(n.duplicates, 2u);
  EXPECT_EQ(n.dropped_duplicates, 1u);
  EXPECT_EQ(n.out_of_sequence, 1u);
  EXPECT_EQ(n.acks, 1u);
  EXPECT_EQ(n.sequence_naks, 1u);
  EXPECT_EQ(n.rnr_naks, 1u);
  EXPECT_EQ(n.read_responses, 2u);
  EXPECT_EQ(n.refusals, 1u);
}

}  // namespace
}  // namespace urnic::ib
