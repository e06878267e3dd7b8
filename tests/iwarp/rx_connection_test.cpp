// The receive path: the connection to which a segment belongs.
#include "tests/iwarp/rx_path.h"

namespace urnic::test {
namespace {

// Segments without FPDUs and without a connection pass the validation unit without harm.
// proves: R-72
TEST_F(RxPath, SegmentsWithoutAConnectionAreAnsweredByTcp) {
  up();
  const auto a = p.burst({{0, Bytes(200, 0xa5), false, tcp::kAck, 41000}});
  ASSERT_EQ(a.size(), 1u);
  EXPECT_TRUE(a[0].seg.has(tcp::kRst));
  EXPECT_TRUE(p.fast());
}

// One completion queue serves the receive queues of two connections. The first of them has a hole.
// proves: R-110
TEST_F(RxPath, QueuePairsShareACompletionQueueWithHolesOpen) {
  sim::PairOptions o;
  o.right.out_of_order = engine::Options::OutOfOrder::Place;
  sim::Pair pair(o);
  verbs::QueuePair* left[2];
  verbs::QueuePair* right[2];
  constexpr std::size_t kEach = 8;
  Bytes receive(2 * kEach * 1000, 0), source(1000, 0x11);
  const std::uint32_t into =
      pair.right().register_memory(receive.data(), receive.size(), verbs::kLocalWrite);
  const std::uint32_t from = pair.left().register_memory(source.data(), source.size(), 0);
  for (std::size_t i = 0; i < 2; ++i) {
    left[i] = pair.left().make_qp();
    right[i] = pair.right().make_qp();
    ASSERT_TRUE(pair.connect(*left[i], *right[i]));
    for (std::size_t k = 0; k < kEach; ++k) {
      const std::size_t slot = i * kEach + k;
      const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(receive.data()) + slot * 1000, 1000,
                           into};
      ASSERT_TRUE(pair.right().post_receive(*right[i], {slot, {&sge, 1}}, pair.now()));
    }
  }
  ASSERT_EQ(right[0]->receive_cq, right[1]->receive_cq);
  const auto send = [&](std::size_t i) {
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(source.data()), 1000, from};
    verbs::SendWr wr;
    wr.sges = {&sge, 1};
    ASSERT_EQ(pair.left().post_send(*left[i], wr, pair.now()), verbs::Post::Ok);
  };
  // The first Send of connection 0 is lost, and the sender gets nothing that would make it
  // retransmit.
  pair.set_faults_left("loss=1.0");
  pair.set_faults_right("loss=1.0");
  send(0);
  pair.run_for(Duration::us(50));
  pair.set_faults_left("");
  for (std::size_t k = 1; k < kEach; ++k) send(0);
  pair.run_for(Duration::us(200));
  ASSERT_NE(pair.right().engine().iwarp().find(right[0]->connection)->tcb.rcv.holes.size(), 0u);
  for (std::size_t k = 0; k < kEach; ++k) send(1);
  pair.run_for(Duration::us(200));
  pair.right().drain_completions();
  auto& done = pair.right().receive_done;
  ASSERT_EQ(done.size(), kEach) << "all of connection 1, none of the one with a hole";
  for (std::size_t k = 0; k < kEach; ++k) {
    EXPECT_EQ(done[k].completion.wr_id, kEach + k);
    EXPECT_EQ(done[k].completion.status, verbs::Status::Success);
  }
  pair.set_faults_right("");
  pair.run_for(Duration::s(3));
  pair.right().drain_completions();
  ASSERT_EQ(done.size(), 2 * kEach);
  for (std::size_t k = 0; k < kEach; ++k) {
    EXPECT_EQ(done[kEach + k].completion.wr_id, k);
    EXPECT_EQ(done[kEach + k].completion.status, verbs::Status::Success);
  }
}

// Two connections between the same hosts: data of one must not reach the other.
// proves: R-73
TEST_F(RxPath, EachConnectionGetsItsOwnSegments) {
  sim::PairOptions o;
  sim::Pair pair(o);
  verbs::QueuePair* left[2];
  verbs::QueuePair* right[2];
  Bytes receive(4000, 0), source(2000, 0x11);
  std::fill(source.begin() + 1000, source.end(), 0x22);
  const std::uint32_t into =
      pair.right().register_memory(receive.data(), receive.size(), verbs::kLocalWrite);
  const std::uint32_t from = pair.left().register_memory(source.data(), source.size(), 0);
  const auto address = [](const Bytes& v, std::size_t i) {
    return reinterpret_cast<std::uintptr_t>(v.data()) + i;
  };
  for (std::size_t i = 0; i < 2; ++i) {
    left[i] = pair.left().make_qp();
    right[i] = pair.right().make_qp();
    ASSERT_TRUE(pair.connect(*left[i], *right[i]));
    const verbs::Sge sge{address(receive, 2000 * i), 1000, into};
    ASSERT_TRUE(pair.right().post_receive(*right[i], {i, {&sge, 1}}, pair.now()));
  }
  for (int round = 0; round < 2; ++round) {
    const std::size_t i = 1 - static_cast<std::size_t>(round);
    const verbs::Sge sge{address(source, 1000 * i), 1000, from};
    verbs::SendWr wr;
    wr.sges = {&sge, 1};
    ASSERT_EQ(pair.left().post_send(*left[i], wr, pair.now()), verbs::Post::Ok);
    pair.run_for(Duration::ms(5));
  }
  EXPECT_EQ(receive[0], 0x11);
  EXPECT_EQ(receive[999], 0x11);
  EXPECT_EQ(receive[2000], 0x22);
  EXPECT_EQ(receive[2999], 0x22);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(pair.right().engine().iwarp().qp_stats(*right[i]).verbs.sends_received, 1u);
  }
}

// proves: R-74
TEST_F(RxPath, AnUnknownTupleFindsNoConnection) {
  up();
  const auto before = p.node().engine().iwarp().state().counters;
  const auto a = p.burst({{0, fpdus[0], false, tcp::kAck, 41000}});
  EXPECT_TRUE(p.untouched());
  EXPECT_EQ(p.rcv_nxt(), 0u);
  EXPECT_EQ(p.node().engine().iwarp().state().counters.tcp.no_connection,
            before.tcp.no_connection + 1);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_TRUE(a[0].seg.has(tcp::kRst));
}

}  // namespace
}  // namespace urnic::test
