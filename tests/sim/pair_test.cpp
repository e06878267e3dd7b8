// The two nodes and their wire in virtual time.
#include "sim/pair.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace urnic::sim {
namespace {

// One Write from left to right: the time until it is acknowledged.
Duration write_time(const std::string& faults, std::uint32_t bytes) {
  PairOptions o;
  o.faults_left = o.faults_right = faults;
  o.left.tcp.ack_policy = o.right.tcp.ack_policy = tcp::AckPolicy::PerBurst;
  Pair pair(o);
  auto* left = pair.left().make_qp();
  auto* right = pair.right().make_qp();
  EXPECT_TRUE(pair.connect(*left, *right));
  std::vector<std::uint8_t> from(bytes), to(bytes);
  const std::uint32_t source = pair.left().register_memory(from.data(), bytes, verbs::kZeroBased);
  const std::uint32_t sink = pair.right().register_memory(
      to.data(), bytes, verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kZeroBased);
  const verbs::Sge sge{0, bytes, source};
  verbs::SendWr wr;
  wr.op = verbs::WrOp::Write;
  wr.sges = {&sge, 1};
  wr.rkey = sink;
  const Instant began = pair.now();
  EXPECT_EQ(pair.left().post_send(*left, wr, began), verbs::Post::Ok);
  const auto idle = [&] { return ddp::stream_of(*left).sender.idle(); };
  EXPECT_TRUE(pair.run_until(idle, Duration::s(10)));
  return pair.now() - began;
}

// A frame that leaves the line while the right node is polled reaches the left node at once, not at
// some later deadline.
TEST(PairOfNodes, AnAckArrivesAfterExactlyTheWireDelay) {
  EXPECT_GE(write_time("delay=1ms", 64), Duration::ms(2));
  EXPECT_LT(write_time("delay=1ms", 64), Duration::us(2100));
  EXPECT_LT(write_time("rate=1gbit", 64), Duration::us(100));
  EXPECT_LT(write_time("delay=100us,rate=10mbit", 1400), Duration::ms(3));
}

TEST(PairOfNodes, RunUntilStopsAtTheRequestedTime) {
  Pair pair({});
  const Instant at = pair.now() + Duration::us(1234);
  pair.wake_at(at);
  bool seen = false;
  pair.run_until([&] { return seen = seen || pair.now() == at; }, Duration::ms(10));
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace urnic::sim
