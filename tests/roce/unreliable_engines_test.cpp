// UC and UD in two simulated engines: faulty wires, neighbors, ends of queue pairs and links,
// counters.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/roce/engine_ends.h"

namespace urnic::test {
namespace {

using verbs::QpState;
using verbs::Service;
using verbs::Status;
using verbs::WrOp;

class RoceUnreliable : public RoceEnds {
 protected:
  void datagram(std::uint64_t id, std::uint32_t length, std::size_t offset) {
    const verbs::Sge sge{ours->at(offset), length, ours->key};
    verbs::SendWr wr = request(WrOp::SendImm, id, sge, 0, 0);
    wr.immediate = id;
    ib::set_destination(&wr, {way, right->number(), kQkey});
    ASSERT_EQ(pair->left().post_send(*left, wr, pair->now()), verbs::Post::Ok);
  }
  const ConnectionStats stats_of(verbs::QueuePair& qp) {
    return pair->left().engine().roce_control().stats_of(qp);
  }

  std::uint32_t way = 0;
};

// With loss, duplicates and delays: every delivered message is complete, in its own receive.
// proves: IB-93
TEST_F(RoceUnreliable, UcDeliversWholeMessagesOrNone) {
  up_unreliable(Service::Uc);
  rooms(128 * 4096);
  pair->run_for(Duration::ms(10));
  pair->set_faults_left("loss=0.05,dup=0.05,reorder=0.05");
  constexpr std::uint32_t kLength = 3000;
  for (std::uint32_t i = 0; i < 100; ++i) receive(*right, i, i * 4096, 4096);
  for (std::uint32_t i = 0; i < 100; ++i) {
    post(*left, WrOp::SendImm, i, kLength, i * 4096, i);
    pair->run_for(Duration::us(50));
  }
  ASSERT_TRUE(run(100));
  pair->run_for(Duration::ms(50));
  pair->right().drain_completions();
  const auto& came = pair->right().receive_done;
  EXPECT_GT(came.size(), 50u);
  EXPECT_LT(came.size(), 100u + 100u / 10);
  for (const verbs::Cqe& c : came) {
    ASSERT_EQ(c.completion.byte_len, kLength);
    ASSERT_EQ(std::memcmp(&inbox->bytes[c.completion.wr_id * 4096],
                          &ours->bytes[c.completion.immediate * 4096], kLength),
              0);
  }
  EXPECT_GT(stats_of(*right).roce.messages_lost, 0u);
  EXPECT_EQ(stats_of(*right).roce.acks_sent, 0u);
  EXPECT_EQ(stats_of(*left).roce.requests_sent, 300u);
  EXPECT_NE(stats_of(*left).peer, "");
}

// proves: IB-98, IB-144
TEST_F(RoceUnreliable, UdDeliversWholeDatagramsOrNone) {
  up_unreliable(Service::Ud);
  rooms(128 * 4096);
  way = handle_to(pair->left(), 0, 1, pair->now());
  pair->set_faults_left("loss=0.1,reorder=0.1");
  for (std::uint32_t i = 0; i < 100; ++i) receive(*right, i, i * 4096, 4096);
  for (std::uint32_t i = 0; i < 100; ++i) datagram(i, 1000, i * 4096);
  ASSERT_TRUE(run(100));
  pair->run_for(Duration::ms(50));
  pair->right().drain_completions();
  const auto& came = pair->right().receive_done;
  EXPECT_GT(came.size(), 50u);
  EXPECT_LT(came.size(), 100u);
  for (const verbs::Cqe& c : came) {
    ASSERT_EQ(c.completion.byte_len, 1040u);
    ASSERT_TRUE(c.completion.datagram);
    ASSERT_EQ(c.source_qp, left->number());
    ASSERT_EQ(std::memcmp(&inbox->bytes[c.completion.wr_id * 4096 + 40],
                          &ours->bytes[c.completion.immediate * 4096], 1000),
              0);
  }
  EXPECT_EQ(stats_of(*left).roce.requests_sent, 100u);
  EXPECT_EQ(stats_of(*left).peer, "") << "it has none";
}

// proves: E-43
TEST_F(RoceUnreliable, GivingUpTheLinkEndsQueuePairsWithAPeerBeyondIt) {
  up_unreliable(Service::Ud);
  rooms(8000);
  verbs::QueuePair* const uc = pair->left().make_roce_qp({}, Service::Uc);
  move_unreliable(pair->left(), *uc, Service::Uc, {}, 0, 99, pair->now());
  pair->left().engine().roce_control().give_up_link("gone", pair->now());
  EXPECT_EQ(uc->state, QpState::Error);
  EXPECT_EQ(left->state, QpState::Rts);
}

// Counters of destroyed queue pairs remain.
TEST_F(RoceUnreliable, CountersOfADestroyedQueuePairRemain) {
  up_unreliable(Service::Ud);
  rooms(8000);
  way = handle_to(pair->left(), 0, 1, pair->now());
  datagram(1, 100, 0);
  datagram(2, 6000, 0);
  ASSERT_TRUE(run(2));
  pair->run_for(Duration::ms(10));
  const auto both_of = [](sim::Node& node) {
    EngineStats s;
    node.engine().fill_stats(&s);
    RoceStats sum = s.ended.roce;
    for (const ConnectionStats& c : s.connections) {
      sum.requests_sent += c.roce.requests_sent;
      sum.requests_too_long += c.roce.requests_too_long;
      sum.requests_dropped += c.roce.requests_dropped;
    }
    return sum;
  };
  EXPECT_EQ(both_of(pair->left()).requests_sent, 1u);
  EXPECT_EQ(both_of(pair->left()).requests_too_long, 1u);
  EXPECT_EQ(both_of(pair->right()).requests_dropped, 1u);
  pair->left().engine().roce_control().destroy(left, pair->now());
  pair->right().engine().roce_control().destroy(right, pair->now());
  EXPECT_EQ(both_of(pair->left()).requests_sent, 1u);
  EXPECT_EQ(both_of(pair->left()).requests_too_long, 1u);
  EXPECT_EQ(both_of(pair->right()).requests_dropped, 1u);
}

}  // namespace
}  // namespace urnic::test
