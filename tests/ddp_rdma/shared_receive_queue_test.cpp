#include "ddp_rdma/stream.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/rng.h"
#include "ddp_rdma/segments.h"

namespace urnic::ddp::test {
namespace {

using Post = SharedReceiveQueue::Post;

TEST(SharedReceiveQueue, HoldsUpToItsLimitAndReturnsTheOldestFirst) {
  SharedReceiveQueue q(1, 3, 1);
  const Sge two[2] = {};
  EXPECT_EQ(q.post({1, two}), Post::TooManySges);
  for (std::uint64_t i = 1; i <= 3; ++i) EXPECT_EQ(q.post({i, {}}), Post::Ok);
  EXPECT_EQ(q.post({4, {}}), Post::Full);
  EXPECT_EQ(q.available(), 3u);
  EXPECT_EQ(q.store()->wqe(q.peek(2)).wr_id, 3u);
  EXPECT_EQ(q.store()->wqe(q.bind()).wr_id, 1u);
  EXPECT_EQ(q.available(), 2u);
  EXPECT_EQ(q.post({4, {}}), Post::Full) << "a bound receive counts until it is done";
}

TEST(SharedReceiveQueue, LimitIsReportedOnceWhenFewerAreLeft) {
  SharedReceiveQueue q(1, 8, 1);
  for (std::uint64_t i = 0; i < 4; ++i) q.post({i, {}});
  q.set_limit(3);
  EXPECT_FALSE(q.take_limit_event());
  q.bind();
  EXPECT_FALSE(q.take_limit_event()) << "3 are left, which is not fewer";
  q.bind();
  EXPECT_TRUE(q.take_limit_event());
  EXPECT_EQ(q.limit(), 0u);
  EXPECT_FALSE(q.take_limit_event()) << "disarmed";
  q.set_limit(7);
  EXPECT_TRUE(q.take_limit_event()) << "at once when it is so already";
}

// Two streams on one shared queue.
class SharedStreams : public ::testing::Test {
 protected:
  static constexpr PdId kPd = 4, kOtherPd = 5;

  SharedStreams() : queue(kPd, 64, 2) {
    bytes.resize(64 * 32);
    key = table.register_memory(kPd, bytes.data(), bytes.size(), kLocalWrite);
    for (std::uint32_t id = 1; id <= 2; ++id) {
      StreamConfig c;
      c.id = id;
      c.pd = kOtherPd;
      c.shared_rq = &queue;
      c.completion_threshold = 0;
      streams.push_back(std::make_unique<Stream>(c, &shared));
    }
  }
  // Receive `id` is bytes[32 * id, +32).
  void post(std::uint64_t id) {
    const Sge sge{reinterpret_cast<std::uintptr_t>(bytes.data()) + 32 * id, 32, key};
    ASSERT_EQ(queue.post({id, {&sge, 1}}), Post::Ok);
  }
  Admission admit(Stream& s, const Bytes& u, bool in_order) {
    held.push_back(u);
    return Admitter(s, in_order).next(held.back());
  }
  MessageCounts put(Stream& s, const Bytes& u, bool in_order = true) {
    const Admission a = admit(s, u, in_order);
    EXPECT_EQ(a.what, Admit::Place);
    return a.what == Admit::Place ? place(s, a) : MessageCounts{};
  }
  void deliver_counts(Stream& s, const MessageCounts& c) {
    ASSERT_EQ(deliver(s, c, [&](const Completion& w) { done.push_back(w.wr_id); }),
              Violation::None);
  }
  void take(Stream& s, std::uint32_t msn, std::uint8_t fill) {
    deliver_counts(s, put(s, send_segment_of(msn, 0, Bytes(8, fill))));
  }

  MemoryTable table;
  SharedState shared{&table};
  SharedReceiveQueue queue;
  Bytes bytes;
  std::uint32_t key = 0;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::uint64_t> done;
  std::vector<Bytes> held;
};

TEST_F(SharedStreams, ReceivesGoToTheStreamThatArrivesFirst) {
  for (std::uint64_t i = 0; i < 4; ++i) post(i);
  take(*streams[0], 1, 10);
  take(*streams[1], 1, 20);
  take(*streams[1], 2, 21);
  take(*streams[0], 2, 11);
  EXPECT_EQ(done, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  const std::uint8_t want[] = {10, 20, 21, 11};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(bytes[32 * i], want[i]);
  EXPECT_EQ(admit(*streams[0], send_segment_of(3, 0, Bytes(8)), true).what, Admit::NoReceive);
}

// proves: E-15
TEST_F(SharedStreams, AnOutOfOrderSendReservesReceivesForEarlierSends) {
  for (std::uint64_t i = 0; i < 4; ++i) post(i);
  Stream& s = *streams[0];
  MessageCounts hole = put(s, send_segment_of(3, 0, Bytes(8, 3)), false);
  EXPECT_EQ(queue.available(), 1u) << "1, 2 and 3 have theirs";
  EXPECT_EQ(s.rq.posted(), 3u);
  take(*streams[1], 1, 9);
  EXPECT_EQ(done, (std::vector<std::uint64_t>{3}));
  // No receive is left, but the Sends before the third one have theirs: no deadlock.
  EXPECT_EQ(admit(*streams[1], send_segment_of(2, 0, Bytes(8)), true).what, Admit::NoReceive);
  take(s, 1, 1);
  take(s, 2, 2);
  deliver_counts(s, hole);
  EXPECT_EQ(done, (std::vector<std::uint64_t>{3, 0, 1, 2}));
  for (std::uint8_t i = 0; i < 3; ++i) EXPECT_EQ(bytes[32u * i], i + 1);
  EXPECT_EQ(shared.pool.in_use(), 0u);
}

// proves: R-114
TEST_F(SharedStreams, BeyondThePostedReceivesThereIsNone) {
  post(0);
  post(1);
  EXPECT_EQ(admit(*streams[0], send_segment_of(3, 0, Bytes(8)), false).what, Admit::NoReceive);
  EXPECT_EQ(admit(*streams[0], send_segment_of(2, 0, Bytes(8)), false).what, Admit::Place);
  EXPECT_EQ(queue.available(), 2u) << "admission changes nothing";
}

// proves: E-15
TEST_F(SharedStreams, BindingSurvivesADowngrade) {
  for (std::uint64_t i = 0; i < 4; ++i) post(i);
  Stream& s = *streams[0];
  put(s, send_segment_of(2, 0, Bytes(8, 2)), false);
  s.forget_out_of_order();
  take(*streams[1], 1, 7);
  take(s, 1, 1);
  take(s, 2, 2);
  EXPECT_EQ(done, (std::vector<std::uint64_t>{2, 0, 1}));
  EXPECT_EQ(bytes[32], 2) << "the same bytes in the same place";
}

// proves: R-48
TEST_F(SharedStreams, AnEndAfterADowngradeReplacesTheOldOne) {
  for (std::uint64_t i = 0; i < 4; ++i) post(i);
  Stream& s = *streams[0];
  put(s, send_segment_of(2, 0, Bytes(8, 2)), false);
  s.forget_out_of_order();
  MessageCounts one;
  one.sends = 1;
  int ended = 0;
  put(s, send_segment_of(1, 0, Bytes(8, 1)), true);
  EXPECT_EQ(deliver(s, one, [&](const Completion&) { ++ended; }), Violation::None);
  EXPECT_EQ(deliver(s, one, [&](const Completion&) { ++ended; }), Violation::UntaggedMsnRange);
  EXPECT_EQ(ended, 1);
}

TEST_F(SharedStreams, KeysAreCheckedAgainstTheDomainOfTheQueue) {
  std::uint8_t foreign[32];
  const std::uint32_t other = table.register_memory(kOtherPd, foreign, 32, kLocalWrite);
  const Sge sge{reinterpret_cast<std::uintptr_t>(foreign), 32, other};
  ASSERT_EQ(queue.post({9, {&sge, 1}}), Post::Ok);
  const Admission a = admit(*streams[0], send_segment_of(1, 0, Bytes(8)), true);
  EXPECT_EQ(a.what, Admit::Violate);
  EXPECT_EQ(a.violation, Violation::LocalCatastrophic);
}

TEST_F(SharedStreams, FlushTakesOnlyTheBoundReceives) {
  for (std::uint64_t i = 0; i < 4; ++i) post(i);
  put(*streams[0], send_segment_of(2, 0, Bytes(8, 2)), false);
  std::vector<std::uint64_t> flushed;
  flush(*streams[0], Status::Flushed, [&](const Completion& c) {
    EXPECT_EQ(c.status, Status::Flushed);
    flushed.push_back(c.wr_id);
  });
  EXPECT_EQ(flushed, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(queue.available(), 2u);
  take(*streams[1], 1, 5);
  EXPECT_EQ(done, (std::vector<std::uint64_t>{2}));
}

// The receive was not bound, because nothing was placed in it.
TEST_F(SharedStreams, AReceiveAtFaultFailsAndIsTheOnlyOne) {
  const Sge nobodys{1, 32, key};
  ASSERT_EQ(queue.post({1, {&nobodys, 1}}), Post::Ok);
  post(2);
  post(3);
  struct {
    Bytes segment;
    Violation violation;
    Status status;
  } const cases[] = {
      {send_segment_of(1, 0, Bytes(8, 7)), Violation::LocalCatastrophic, Status::LocalProtection},
      {send_segment_of(1, 0, Bytes(33, 7)), Violation::UntaggedTooLong, Status::LocalLength}};
  for (std::size_t i = 0; i < 2; ++i) {
    SCOPED_TRACE(i);
    Stream& s = *streams[i];
    const Admission a = admit(s, cases[i].segment, true);
    ASSERT_EQ(a.what, Admit::Violate);
    EXPECT_EQ(a.violation, cases[i].violation);
    std::vector<Completion> ended;
    flush(s, flush_status(a.violation), [&](const Completion& c) { ended.push_back(c); });
    ASSERT_EQ(ended.size(), 1u);
    EXPECT_EQ(ended[0].wr_id, i + 1);
    EXPECT_EQ(ended[0].status, cases[i].status);
    EXPECT_EQ(queue.available(), 2 - i);
  }
  std::size_t more = 0;
  flush(*streams[0], Status::Flushed, [&](const Completion&) { ++more; });
  EXPECT_EQ(more, 0u) << "a flush takes none";
}

TEST_F(SharedStreams, ADestroyedStreamReturnsItsReceives) {
  SharedReceiveQueue small(kPd, 2, 1);
  StreamConfig c;
  c.id = 3;
  c.shared_rq = &small;
  {
    Stream s(c, &shared);
    EXPECT_EQ(small.users, 1u);
    EXPECT_EQ(s.rq.post({1, {}}), ReceiveQueue::Post::Shared);
    small.post({1, {}});
    small.post({2, {}});
    put(s, send_segment_of(2, 0, {}), false);
    EXPECT_EQ(small.post({3, {}}), Post::Full);
  }
  EXPECT_EQ(small.users, 0u);
  EXPECT_EQ(small.post({3, {}}), Post::Ok);
  EXPECT_EQ(shared.pool.in_use(), 0u);
}

TEST_F(SharedStreams, ARunOfNeighboursIsReportedOnce) {
  for (std::uint64_t i = 0; i < 8; ++i) post(i);
  Stream& s = *streams[0];
  MessageCounts hole;
  for (std::uint32_t m = 2; m <= 5; ++m) hole += put(s, send_segment_of(m, 0, Bytes(8)), false);
  take(s, 1, 1);
  deliver_counts(s, hole);
  EXPECT_EQ(s.completion_writes.wqe, 4u);
  EXPECT_EQ(s.completion_writes.cqe, 2u);
  EXPECT_EQ(done, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
}

// Many streams, any order of arrival, and receives posted as they are returned: each Send lands in
// one receive, in its stream's order.
// proves: R-88
TEST_F(SharedStreams, RandomArrivalsOfManyStreams) {
  Rng rng(11);
  std::uint64_t posted = 0;
  for (; posted < 48; ++posted) post(posted % 64);
  for (int round = 0; round < 500; ++round) {
    Stream& s = *streams[rng.below(2)];
    const auto n = static_cast<std::uint32_t>(1 + rng.below(12));
    const std::uint32_t first = s.next_send_msn();
    std::vector<std::uint32_t> later;
    for (std::uint32_t i = 1; i < n; ++i) later.push_back(first + i);
    for (std::size_t i = later.size(); i > 1; --i) std::swap(later[i - 1], later[rng.below(i)]);
    MessageCounts hole;
    for (const std::uint32_t m : later) {
      hole += put(s, send_segment_of(m, 0, Bytes(8, static_cast<std::uint8_t>(m))), false);
    }
    done.clear();
    take(s, first, static_cast<std::uint8_t>(first));
    deliver_counts(s, hole);
    ASSERT_EQ(done.size(), n);
    for (std::uint32_t i = 0; i < n; ++i) {
      ASSERT_EQ(bytes[32 * done[i]], static_cast<std::uint8_t>(first + i));
    }
    for (const std::uint64_t id : done) post(id);
  }
}

}  // namespace
}  // namespace urnic::ddp::test
