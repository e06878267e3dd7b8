// OutLogic in a whole engine: the empty receive queue (section 10), completions after holes and
// their memory, shared receive queues (E-15).
#include <malloc.h>

#include <algorithm>
#include <cstring>

#include "tests/iwarp/out_logic.h"

namespace urnic::test {
namespace {

// ---- the empty receive queue, section 10

// proves: R-113, E-17
TEST(EmptyReceiveQueue, FastDropsAndTheRetransmissionCompletes) {
  Receiver r(receiver(ConnectionType::Fast));
  const Bytes send = send_fpdu(r.first, 20);
  r.frames_out = 0;
  r.arrive(0, send);
  EXPECT_EQ(r.taken(), 0u);
  EXPECT_EQ(r.stats().iwarp.empty_rq_drops, 1u);
  EXPECT_EQ(r.stats().iwarp.immediate_dup_acks, 1u) << "Q-14";
  EXPECT_EQ(r.frames_out, 1u);
  EXPECT_TRUE(r.done().empty());
  EXPECT_EQ(r.qp().state, verbs::QpState::Rts);
  ASSERT_TRUE(r.post(7));
  EXPECT_EQ(r.frames_out, 4u) << "three duplicate ACKs at once";
  r.arrive(0, send);
  EXPECT_EQ(r.taken(), send.size());
  ASSERT_EQ(r.done().size(), 1u);
  EXPECT_EQ(r.done()[0].completion.wr_id, 7u);
  EXPECT_TRUE(r.stats().iwarp.fast);
}

// proves: R-114
TEST(EmptyReceiveQueue, OutOfOrderToo) {
  Receiver r(receiver(ConnectionType::Fast));
  const Bytes one = send_fpdu(r.first, 20), two = send_fpdu(r.first + 1, 30);
  ASSERT_TRUE(r.post(1));
  r.arrive(one.size(), two);
  EXPECT_EQ(r.stats().iwarp.empty_rq_drops, 1u) << "the MSN's receive is not posted";
  EXPECT_EQ(r.stats().iwarp.holes_opened, 0u) << "R-25";
  r.arrive(0, one);
  ASSERT_TRUE(r.post(2));
  r.arrive(one.size(), two);
  ASSERT_EQ(r.done().size(), 2u);
  EXPECT_EQ(r.done()[1].completion.byte_len, 30u);
}

// proves: R-115
TEST(EmptyReceiveQueue, DropsDoNotCountAsRecoveryAttempts) {
  sim::PairOptions o = receiver(ConnectionType::Fast);
  o.right.context.max_recovery_attempts = 2;
  Receiver r(o);
  const Bytes send = send_fpdu(r.first, 20);
  for (int i = 0; i < 100; ++i) r.arrive(0, send);
  EXPECT_EQ(r.stats().iwarp.empty_rq_drops, 100u);
  EXPECT_EQ(r.stats().iwarp.recovery_attempts, 0u);
  EXPECT_EQ(r.connection()->context.recovery_attempts, 0u);
  EXPECT_EQ(r.stats().iwarp.downgrades, 0u);
  EXPECT_TRUE(r.stats().iwarp.fast);
}

// proves: R-116
TEST(EmptyReceiveQueue, SlowTerminates) {
  Receiver r(receiver(ConnectionType::Slow));
  r.arrive(0, send_fpdu(r.first, 20));
  EXPECT_EQ(r.stats().iwarp.ddp.terminates_sent, 1u);
  EXPECT_TRUE(r.failed("no buffer (Terminate 1/2/2 sent)"));
  EXPECT_NE(r.qp().state, verbs::QpState::Rts);
}

// proves: R-117
TEST(EmptyReceiveQueue, AMessageLongerThanTheBufferEndsBothTypes) {
  for (const ConnectionType type : {ConnectionType::Fast, ConnectionType::Slow}) {
    Receiver r(receiver(type));
    ASSERT_TRUE(r.post(1, 64));
    r.arrive(0, send_fpdu(r.first, 65));
    EXPECT_TRUE(r.failed("message too long (Terminate 1/2/5 sent)"));
    ASSERT_EQ(r.done().size(), 1u);
    EXPECT_EQ(r.done()[0].completion.status, verbs::Status::LocalLength);
  }
}

// One segment can hold two Sends, and is accepted as a whole or not at all (E-5). A consumer that
// posts the second receive only after the first Send must still get the first.
TEST(EmptyReceiveQueue, ASegmentOfTwoSendsAndOneReceiveDoesNotStarve) {
  for (const bool order : {false, true}) {
    Receiver r(receiver(ConnectionType::Fast));
    Bytes both = send_fpdu(r.first, 20);
    const std::size_t half = both.size();
    const Bytes two = send_fpdu(r.first + 1, 30);
    both.insert(both.end(), two.begin(), two.end());
    if (order) {
      ASSERT_TRUE(r.post(1));
    }
    r.arrive(0, both);
    EXPECT_EQ(r.taken(), 0u) << "E-5";
    EXPECT_TRUE(r.done().empty());
    if (!order) {
      ASSERT_TRUE(r.post(1));
      r.arrive(0, both);
      EXPECT_EQ(r.taken(), 0u) << "a receive came: perhaps more do";
    }
    r.arrive(0, both);
    EXPECT_EQ(r.taken(), half);
    ASSERT_EQ(r.done().size(), 1u);
    ASSERT_TRUE(r.post(2));
    r.arrive(0, both);
    EXPECT_EQ(r.taken(), both.size());
    ASSERT_EQ(r.done().size(), 2u);
    EXPECT_EQ(r.done()[1].completion.byte_len, 30u);
  }
}

// ---- completions after a hole, in the statistics of the user

// proves
TEST(CompletionWrites, AreCountedPerConnectionAndInTheJson) {
  struct Row {
    std::uint32_t method, threshold;
    std::uint64_t wqe, cqe, partial;
  };
  // 20 Sends after one hole, and the one in it.
  for (const Row& row :
       {Row{1, 0, 21, 21, 21}, Row{2, 0, 20, 2, 1}, Row{2, 5, 15, 7, 1}, Row{2, 20, 0, 21, 0}}) {
    sim::PairOptions o = receiver(ConnectionType::Fast);
    o.right.completion_method = static_cast<ddp::CompletionMethod>(row.method);
    o.right.completion_threshold = row.threshold;
    Receiver r(o);
    Bytes behind;
    for (std::uint32_t i = 0; i <= 20; ++i) {
      ASSERT_TRUE(r.post(i));
      const Bytes f = send_fpdu(r.first + i, i);
      if (i != 0) behind.insert(behind.end(), f.begin(), f.end());
    }
    const Bytes one = send_fpdu(r.first, 0);
    r.arrive(one.size(), behind);
    EXPECT_EQ(r.stats().verbs.completion_cqe_writes, 0u) << "R-111";
    r.arrive(0, one);
    const ConnectionStats s = r.stats();
    EXPECT_EQ(s.verbs.completion_wqe_writes, row.wqe);
    EXPECT_EQ(s.verbs.completion_cqe_writes, row.cqe);
    EXPECT_EQ(s.verbs.completion_shared_cqes, row.partial);
    ASSERT_EQ(r.done().size(), 21u);
    for (std::uint32_t i = 0; i <= 20; ++i) {
      EXPECT_EQ(r.done()[i].completion.wr_id, i);
      EXPECT_EQ(r.done()[i].completion.byte_len, i);
    }
    EngineStats all;
    r.engine().fill_stats(&all);
    const std::string json = stats_to_json(all);
    EXPECT_NE(json.find("\"completion_wqe_writes\": " + std::to_string(row.wqe)),
              std::string::npos);
    EXPECT_NE(json.find("\"completion_cqe_writes\": " + std::to_string(row.cqe)),
              std::string::npos);
    r.engine().iwarp().abort(r.qp(), r.now());
    r.engine().fill_stats(&all);
    EXPECT_EQ(all.ended.verbs.completion_wqe_writes, row.wqe)
        << "the connection is gone, its counts stay";
  }
}

// proves: R-106
TEST(CompletionWrites, SlowCompletesInOrderAndUpdatesNoReceive) {
  Receiver r(receiver(ConnectionType::Slow));
  std::uint64_t at = 0;
  for (std::uint32_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(r.post(i));
    const Bytes f = send_fpdu(r.first + i, i);
    r.arrive(at, f);
    at += f.size();
  }
  EXPECT_EQ(r.stats().verbs.completion_wqe_writes, 0u);
  EXPECT_EQ(r.stats().verbs.completion_cqe_writes, 10u);
}

// N + 1 applies to the Sends of a hole that closes. Completions that a downgrade forgets were
// written to their receives in vain, and the SLOW path writes them again (AnyOrder, seed 2379 with
// markers).
// proves
TEST(CompletionWrites, SendsPendingAtADowngradeAreWrittenAgain) {
  sim::PairOptions o = receiver(ConnectionType::Fast);
  o.right.completion_threshold = 0;
  o.right.context.max_recovery_attempts = 1;
  Receiver r(o);
  Bytes all;
  for (std::uint32_t i = 0; i <= 5; ++i) {
    ASSERT_TRUE(r.post(i));
    const Bytes f = send_fpdu(r.first + i, i);
    all.insert(all.end(), f.begin(), f.end());
  }
  const std::size_t one = send_fpdu(r.first, 0).size();
  const auto part = [&](std::size_t from, std::size_t to) {
    return Bytes(all.data() + from, all.data() + to);
  };
  r.arrive(one, part(one, all.size()));
  EXPECT_EQ(r.stats().verbs.completion_wqe_writes, 5u);
  for (int i = 0; i < 2; ++i) r.arrive(0, part(0, one - 1));
  ASSERT_EQ(r.stats().iwarp.downgrades, 1u);
  EXPECT_EQ(r.stats().verbs.completion_cqe_writes, 0u);
  r.arrive(one - 1, part(one - 1, all.size()));
  const ConnectionStats s = r.stats();
  EXPECT_EQ(s.verbs.sends_received, 6u);
  EXPECT_EQ(s.verbs.completion_wqe_writes, 5u) << "in order none is written";
  EXPECT_EQ(s.verbs.completion_cqe_writes, 6u);
  EXPECT_EQ(s.verbs.completion_shared_cqes, 0u);
  ASSERT_EQ(r.done().size(), 6u);
  for (std::uint32_t i = 0; i <= 5; ++i) EXPECT_EQ(r.done()[i].completion.byte_len, i);
}

// proves: R-95
TEST(HoleMemory, AHundredThousandSendsAfterOneHoleNeedNoMemoryEach) {
  constexpr std::uint32_t kMany = 100'000;
  Receiver r(receiver(ConnectionType::Fast), kMany + 1);
  const verbs::Sge none{};
  for (std::uint32_t i = 0; i <= kMany; ++i) {
    ASSERT_TRUE(r.node().post_receive(r.qp(), {i, {&none, 0}}, r.now()));
  }
  const Bytes one = send_fpdu(r.first, 0);
  std::uint64_t at = one.size();
  std::size_t before = 0;
  for (std::uint32_t i = 1; i <= kMany;) {
    Bytes many;
    for (int k = 0; k < 50 && i <= kMany; ++k, ++i) {
      const Bytes f = send_fpdu(r.first + i, 0);
      many.insert(many.end(), f.begin(), f.end());
    }
    r.arrive(at, many);
    at += many.size();
    if (i == 1001) before = mallinfo2().uordblks;
  }
  EXPECT_EQ(r.connection()->hole_counters.size(), 1u);
  EXPECT_LE(r.connection()->hole_counters.memory(), 64u);
  EXPECT_LE(ddp::stream_of(r.qp()).shared->pool.in_use(), 4096u) << "the M that are held";
  EXPECT_LE(mallinfo2().uordblks, before + 4096) << "99 000 more Sends allocate nothing";
  EXPECT_EQ(r.stats().verbs.sends_received, 0u);
  r.arrive(0, one);
  EXPECT_EQ(r.stats().verbs.sends_received, kMany + 1u);
  EXPECT_EQ(ddp::stream_of(r.qp()).shared->pool.in_use(), 0u);
}

TEST(HoleMemory, IsFreedWhenTheHolesClose) {
  Receiver r(receiver(ConnectionType::Fast), 1024);
  Bytes stream;
  std::vector<std::uint64_t> at;
  for (std::uint32_t i = 0; i < 401; ++i) {
    ASSERT_TRUE(r.post(i));
    at.push_back(stream.size());
    const Bytes f = send_fpdu(r.first + i, 4);
    stream.insert(stream.end(), f.begin(), f.end());
  }
  at.push_back(stream.size());
  const auto piece = [&](std::size_t i) {
    return Bytes(stream.begin() + static_cast<std::ptrdiff_t>(at[i]),
                 stream.begin() + static_cast<std::ptrdiff_t>(at[i + 1]));
  };
  for (std::size_t i = 1; i < 401; i += 2) r.arrive(at[i], piece(i));
  EXPECT_EQ(r.connection()->hole_counters.size(), 200u);
  EXPECT_GE(r.connection()->hole_counters.memory(), 3200u);
  for (std::size_t i = 0; i < 401; i += 2) r.arrive(at[i], piece(i));
  EXPECT_EQ(r.done().size(), 401u);
  EXPECT_LE(r.connection()->hole_counters.memory(), 256u) << "an idle connection keeps little";
  EXPECT_EQ(ddp::stream_of(r.qp()).shared->pool.in_use(), 0u);
}

// ---- shared receive queue, E-15

verbs::SharedReceiveQueue* eight(sim::Node& node) {
  return node.engine().queue_pairs().create_shared(node.pd, 8, 1);
}

// proves: R-113, E-17
TEST(SharedReceive, DropsWithoutAReceiveAndContinuesWhenOneIsPosted) {
  Receiver r(receiver(ConnectionType::Fast), 0, eight);
  const Bytes send = send_fpdu(r.first, 20);
  r.arrive(0, send);
  EXPECT_EQ(r.stats().iwarp.empty_rq_drops, 1u);
  EXPECT_EQ(r.taken(), 0u);
  r.frames_out = 0;
  ASSERT_TRUE(r.post(5));
  EXPECT_EQ(r.frames_out, 3u) << "the connection that waited is told";
  ASSERT_TRUE(r.post(6));
  EXPECT_EQ(r.frames_out, 3u) << "once";
  r.arrive(0, send);
  ASSERT_EQ(r.done().size(), 1u);
  EXPECT_EQ(r.done()[0].completion.wr_id, 5u);
}

// proves: R-116
TEST(SharedReceive, SlowTerminatesOnAnEmptyQueue) {
  Receiver r(receiver(ConnectionType::Slow), 0, eight);
  r.arrive(0, send_fpdu(r.first, 20));
  EXPECT_TRUE(r.failed("no buffer (Terminate 1/2/2 sent)"));
}

TEST(SharedReceive, AnEndedConnectionFlushesItsBoundReceivesAndReportsTheLast) {
  Receiver r(receiver(ConnectionType::Fast), 0, eight);
  for (std::uint64_t i = 1; i <= 4; ++i) ASSERT_TRUE(r.post(i));
  const Bytes one = send_fpdu(r.first, 20), two = send_fpdu(r.first + 1, 30);
  r.arrive(one.size(), two);
  r.engine().iwarp().abort(r.qp(), r.now());
  ASSERT_EQ(r.done().size(), 2u);
  for (std::uint64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(r.done()[i].completion.wr_id, i + 1);
    EXPECT_EQ(r.done()[i].completion.status, verbs::Status::Flushed);
  }
  EXPECT_EQ(r.qp().rq.shared()->available(), 2u);
  int last = 0;
  for (const CmEvent& e : r.node().events) last += e.kind == CmEvent::Kind::LastReceive;
  EXPECT_EQ(last, 1);
}

// ... once, no matter how much is posted and flushed later; and once more in its next life.
// proves: E-50
TEST(SharedReceive, TheLastReceiveIsReportedOncePerConnection) {
  Receiver r(receiver(ConnectionType::Fast), 0, eight);
  const auto told = [&] {
    return std::count_if(r.node().events.begin(), r.node().events.end(),
                         [](const CmEvent& e) { return e.kind == CmEvent::Kind::LastReceive; });
  };
  const auto post = [&] {
    verbs::SendWr wr;
    ASSERT_EQ(r.node().post_send(r.qp(), wr, r.now()), verbs::Post::Ok);
  };
  r.engine().iwarp().abort(r.qp(), r.now());
  EXPECT_EQ(told(), 1);
  post();
  post();
  EXPECT_EQ(told(), 1);
  for (const auto to : {verbs::QpState::Reset, verbs::QpState::Init, verbs::QpState::Error}) {
    ASSERT_EQ(r.engine().iwarp_control().move(r.qp(), to, verbs::kQpAttrState, r.now()),
              verbs::QpVerdict::Ok);
  }
  EXPECT_EQ(told(), 2);
}

TEST(SharedReceive, QueueInUseIsNotDestroyed) {
  Receiver r(receiver(ConnectionType::Fast), 0, eight);
  EXPECT_FALSE(r.engine().queue_pairs().destroy_shared(r.qp().rq.shared()));
}

}  // namespace
}  // namespace urnic::test
