#include <gtest/gtest.h>

#include "ddp_rdma/segments.h"

namespace urnic::ddp::test {
namespace {

class Delivery : public StreamFixture {
 protected:
  MessageCounts counts(std::uint32_t sends, std::uint32_t responses = 0,
                       std::uint32_t requests = 0) {
    MessageCounts c;
    c.sends = sends;
    c.read_responses = responses;
    c.read_requests = requests;
    return c;
  }
};

// proves: R-109
TEST_F(Delivery, SendsCompleteInMsnOrder) {
  for (std::uint64_t i = 1; i <= 3; ++i) post_receive(100 + i, i * 64, 64);
  MessageCounts hole = put(send_segment_of(3, 0, Bytes(3), true, Opcode::SendSe), false);
  hole += put(send_segment_of(2, 0, Bytes(2)), false);
  EXPECT_TRUE(done.empty());
  MessageCounts own = put(send_segment_of(1, 0, Bytes(1)));
  ASSERT_EQ(deliver_counts(own), Violation::None);
  ASSERT_EQ(deliver_counts(hole), Violation::None);
  ASSERT_EQ(done.size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(done[i].wr_id, 101 + i);
    EXPECT_EQ(done[i].byte_len, i + 1);
    EXPECT_EQ(done[i].solicited, i == 2);
    EXPECT_TRUE(done[i].receive);
    EXPECT_FALSE(done[i].with_invalidate);
  }
}

TEST_F(Delivery, InvalidationHappensBeforeTheCompletionIsVisible) {
  const std::uint32_t stag = table.register_memory(kPd, source.data(), 10, kRemoteRead);
  post_receive(1, 0, 64);
  const MessageCounts c = put(send_segment_of(1, 0, Bytes(3), true, Opcode::SendInv, stag));
  EXPECT_NE(table.find(stag), nullptr) << "not before delivery";
  bool seen = false;
  EXPECT_EQ(deliver(s, c,
                    [&](const Completion& w) {
                      seen = true;
                      EXPECT_TRUE(w.with_invalidate);
                      EXPECT_EQ(w.inv_key, stag);
                      EXPECT_EQ(table.find(stag), nullptr);
                    }),
            Violation::None);
  EXPECT_TRUE(seen);
}

TEST_F(Delivery, BadInvalidationEndsTheStreamWithItsHeader) {
  const std::uint32_t other = table.register_memory(kPd + 1, source.data(), 10, kRemoteRead);
  for (int i = 0; i < 3; ++i) post_receive(1, 0, 64);
  MessageCounts c = put(send_segment_of(1, 0, Bytes(3)));
  const Bytes bad = send_segment_of(2, 4, Bytes(3), true, Opcode::SendSeInv, other);
  c += put(bad, false);
  EXPECT_EQ(deliver_counts(c), Violation::InvalidateOther);
  EXPECT_EQ(done.size(), 1u) << "what came before it was delivered";
  EXPECT_EQ(Bytes(offending.begin(), offending.end()), Bytes(bad.begin(), bad.begin() + 18));
  EXPECT_EQ(s.next_send_msn(), 2u);
}

TEST_F(Delivery, UnknownStagCannotBeInvalidated) {
  post_receive(1, 0, 64);
  EXPECT_EQ(take(send_segment_of(1, 0, {}, true, Opcode::SendInv, 0x777700)),
            Violation::InvalidateUnknown);
  EXPECT_TRUE(done.empty());
}

TEST_F(Delivery, FixedOrderReadResponsesSendsDoorbell_Q31) {
  const std::uint32_t sink = start_read(7, 0, 10);
  post_receive(8, 64, 64);
  MessageCounts c = put(read_request(1, 10, source_key, address(source.data())));
  c += put(send_segment_of(1, 0, Bytes(3)));
  c += put(response_segment(sink, 0, Bytes(10)));
  std::vector<std::uint64_t> order;
  EXPECT_EQ(deliver(s, c,
                    [&](const Completion& w) {
                      order.push_back(w.wr_id);
                      EXPECT_EQ(s.inbound_reads.ready(), 0u) << "the doorbell is last";
                    }),
            Violation::None);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{7, 8}));
  EXPECT_EQ(s.inbound_reads.ready(), 1u);
}

// proves
TEST_F(Delivery, NoResponseBeforeTheDoorbell) {
  const auto va = address(source.data());
  MessageCounts hole = put(read_request(2, 10, source_key, va), false);
  hole += put(read_request(3, 0, 0, 0), false);
  EXPECT_EQ(s.sender.available().value(), 0u);
  EXPECT_EQ(transmit().size(), 0u);
  ASSERT_EQ(take(read_request(1, 10, source_key, va)), Violation::None);
  EXPECT_EQ(s.inbound_reads.ready(), 1u);
  ASSERT_EQ(deliver_counts(hole), Violation::None);
  EXPECT_EQ(s.inbound_reads.ready(), 3u) << "one doorbell for all";
  EXPECT_EQ(transmit().size(), 32u + 32u + 20u);
}

TEST_F(Delivery, ReadSourceIsCheckedAtTheDoorbell) {
  const auto va = address(source.data());
  const struct {
    std::uint32_t stag;
    std::uint64_t to;
    std::uint32_t size;
    Violation want;
  } rows[] = {{source_key ^ 1, va, 1, Violation::ReadInvalidStag},
              {key, address(bytes.data()), 1, Violation::ReadAccess},
              {source_key, va, 4097, Violation::ReadBounds},
              {source_key, ~0ull, 2, Violation::ReadToWrap}};
  for (const auto& row : rows) {
    const Bytes u = read_request(s.next_read_msn(), row.size, row.stag, row.to);
    EXPECT_EQ(take(u), row.want);
    EXPECT_EQ(Bytes(offending.begin(), offending.end()), u);
    EXPECT_EQ(s.inbound_reads.ready(), 0u);
  }
  EXPECT_EQ(take(read_request(1, 0, 0xdead, 5)), Violation::None) << "size 0: not looked at";
  EXPECT_EQ(s.inbound_reads.ready(), 1u);
}

// proves: E-55
TEST_F(Delivery, ReadsAndAtomicsNeedTheRightsOfTheQueuePair) {
  alignas(8) std::uint8_t word[8] = {};
  const auto words = table.register_memory(kPd, word, 8, kLocalWrite | verbs::kRemoteAtomic);
  AtomicRequest add;
  add.code = AtomicCode::FetchAdd;
  add.data = 5;
  add.stag = words;
  add.to = address(word);
  s.remote_access = verbs::kRemoteWrite | verbs::kRemoteAtomic;
  EXPECT_EQ(take(read_request(1, 10, source_key, address(source.data()))), Violation::ReadAccess);
  s.reset();
  s.set_limits(4, 4);
  s.remote_access = kRemoteWrite | kRemoteRead;
  EXPECT_EQ(take(atomic_request(1, add)), Violation::ReadAccess);
  EXPECT_EQ(word[0], 0);
  s.reset();
  s.set_limits(4, 4);
  s.remote_access = kRemoteRead;
  EXPECT_EQ(take(read_request(1, 10, source_key, address(source.data()))), Violation::None);
  s.remote_access = verbs::kRemoteAtomic;
  EXPECT_EQ(take(atomic_request(2, add)), Violation::None);
}

TEST_F(Delivery, CountsThatDoNotMatchThePlacedMessagesAreViolations) {
  post_receive(1, 0, 64);
  post_receive(2, 0, 64);
  // Message 2 ended twice, message 1 never.
  MessageCounts hole = put(send_segment_of(2, 0, Bytes(3)), false);
  hole += put(send_segment_of(2, 0, Bytes(3)), false);
  EXPECT_EQ(deliver_counts(hole), Violation::UntaggedMsnRange);
  EXPECT_TRUE(done.empty());
  EXPECT_EQ(deliver_counts(counts(0, 1)), Violation::TaggedInvalidStag) << "no read is open";
  EXPECT_EQ(deliver_counts(counts(0, 0, 1)), Violation::UntaggedMsnRange);
  const std::uint32_t a = start_read(1, 0, 10), b = start_read(2, 20, 10);
  MessageCounts twice = put(response_segment(b, 0, Bytes(10)), false);
  EXPECT_EQ(deliver_counts(twice), Violation::TaggedInvalidStag) << "read 1 was never answered";
  EXPECT_TRUE(done.empty());
  put(response_segment(a, 0, Bytes(10)));
  EXPECT_EQ(deliver_counts(counts(0, 3)), Violation::TaggedInvalidStag);
  EXPECT_EQ(done.size(), 2u);
}

// proves: R-93
TEST_F(Delivery, ReadsCompleteInSqOrderAndOnlyOnDelivery) {
  const std::uint32_t a = start_read(1, 0, 10), b = start_read(2, 20, 10), c = start_read(3, 40, 0);
  EXPECT_NE(a, b);
  MessageCounts hole = put(response_segment(b, 0, Bytes(10)), false);
  hole += put(response_segment(c, 0, {}), false);
  EXPECT_TRUE(done.empty());
  ASSERT_EQ(take(response_segment(a, 0, Bytes(10))), Violation::None);
  ASSERT_EQ(done.size(), 1u);
  ASSERT_EQ(deliver_counts(hole), Violation::None);
  ASSERT_EQ(done.size(), 3u);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(done[i].wr_id, i + 1);
  EXPECT_EQ(done[0].byte_len, 10u);
  EXPECT_EQ(table.in_use(), 2u) << "sinks are single-use";
  EXPECT_EQ(refused(response_segment(b, 0, Bytes(10)), false), Violation::TaggedInvalidStag);
}

TEST_F(Delivery, TerminateActsWhenDelivered_Q25) {
  const MessageCounts c = put(terminate_segment(Violation::MpaCrc), false);
  EXPECT_FALSE(s.terminate_received);
  EXPECT_EQ(deliver_counts(c), Violation::None);
  EXPECT_TRUE(s.terminate_received);
}

// proves: R-95
TEST_F(Delivery, ManySendsAfterOneHoleNeedNoMoreMemory) {
  // The state of the stream does not grow with the number of waiting messages.
  StreamConfig c = config();
  c.max_recv_wr = 100000;
  MemoryTable memory;
  SharedState state{&memory};
  Stream stream(c, &state);
  for (std::uint32_t i = 0; i < 100000; ++i) {
    ASSERT_EQ(stream.rq.post({i, {}}), ReceiveQueue::Post::Ok);
  }
  MessageCounts hole;
  for (std::uint32_t m = 100000; m >= 2; --m) {
    const Bytes u = send_segment_of(m, 0, {});
    const Admission a = Admitter(stream, false).next(u);
    ASSERT_EQ(a.what, Admit::Place);
    hole += place(stream, a);
  }
  EXPECT_EQ(state.pool.in_use(), 4096u) << "one block for the M completions that are held";
  const Bytes u = send_segment_of(1, 0, {});
  hole += place(stream, Admitter(stream, true).next(u));
  std::uint64_t next = 0;
  EXPECT_EQ(deliver(stream, hole, [&](const Completion& w) { EXPECT_EQ(w.wr_id, next++); }),
            Violation::None);
  EXPECT_EQ(next, 100000u);
  EXPECT_EQ(state.pool.in_use(), 0u);
}

// ---- flush

class Flushing : public Delivery {
 protected:
  void flush_all(Status first) {
    flush(s, first, [this](const Completion& c) { done.push_back(c); });
  }
};

TEST_F(Flushing, EverythingOutstandingCompletesInOrder) {
  post_receive(1, 0, 64);
  post_receive(2, 0, 64);
  put(send_segment_of(1, 0, Bytes(3), false));
  start_read(10, 0, 10);
  SendWr wr;
  wr.wr_id = 11;  // unsignaled: errors are reported anyway
  ASSERT_EQ(s.sq.post(wr), verbs::Post::Ok);
  flush_all(Status::Flushed);
  std::vector<std::uint64_t> ids;
  for (const auto& c : done) {
    EXPECT_EQ(c.status, Status::Flushed);
    ids.push_back(c.wr_id);
  }
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{10, 11, 1, 2}));
  EXPECT_EQ(table.in_use(), 2u) << "the sink is released";
  EXPECT_EQ(shared.pool.in_use(), 0u);
  // The same for requests posted afterwards.
  done.clear();
  post_receive(3, 0, 64);
  wr.wr_id = 12;
  ASSERT_EQ(s.sq.post(wr), verbs::Post::Ok);
  flush_all(Status::Flushed);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].wr_id, 12u);
  EXPECT_EQ(done[1].wr_id, 3u);
}

TEST_F(Flushing, RemoteErrorGoesToTheOldestSendRequest) {
  post_receive(1, 0, 64);
  start_read(10, 0, 10);
  start_read(11, 0, 10);
  flush_all(Status::RemoteAccess);
  ASSERT_EQ(done.size(), 3u);
  EXPECT_EQ(done[0].status, Status::RemoteAccess);
  EXPECT_EQ(done[1].status, Status::Flushed);
  EXPECT_EQ(done[2].status, Status::Flushed);
}

// proves: R-117
TEST_F(Flushing, ATooLongMessageIsALocalLengthErrorOfTheReceive) {
  post_receive(1, 0, 4);
  post_receive(2, 0, 4);
  const Violation v = refused(send_segment_of(1, 0, Bytes(5)));
  flush_all(flush_status(v));
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, Status::LocalLength);
  EXPECT_EQ(done[1].status, Status::Flushed);
}

TEST_F(Flushing, ReceiveWithBadMemoryIsLocalProtection) {
  post_receive(1, {{address(bytes.data()), 10, 0xbad00}});
  post_receive(2, {{address(bytes.data()), 10, 0xbad00}});
  const Violation v = refused(send_segment_of(1, 0, Bytes(5)));
  EXPECT_EQ(v, Violation::LocalCatastrophic);
  flush_all(flush_status(v));
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, Status::LocalProtection);
  EXPECT_EQ(done[1].status, Status::Flushed);
}

TEST_F(Flushing, ResetMakesANewStream) {
  post_receive(1, 0, 64);
  start_read(10, 0, 10);
  ASSERT_EQ(take(send_segment_of(1, 0, Bytes(3))), Violation::None);
  post_receive(1, 0, 64);
  put(send_segment_of(2, 0, Bytes(3), false));
  take(read_request(1, 10, source_key, address(source.data())));
  flush_all(Status::Flushed);
  done.clear();
  s.reset();
  sent = 0;
  s.set_limits(4, 4);
  s.sender.start(true);
  EXPECT_EQ(table.in_use(), 2u);
  EXPECT_TRUE(s.sender.idle());
  post_receive(5, 0, 64);
  ASSERT_EQ(take(send_segment_of(1, 0, Bytes(3))), Violation::None);
  ASSERT_EQ(take(read_request(1, 10, source_key, address(source.data()))), Violation::None);
  EXPECT_EQ(transmit().size(), 32u);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wr_id, 5u);
}

}  // namespace
}  // namespace urnic::ddp::test
