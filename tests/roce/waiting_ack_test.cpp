// If its caller polls again at once, an engine delays the ACK of a Write until that poll: the
// consumer runs first, and its response is sent before the ACK. Over RoCE.
#include <gtest/gtest.h>

#include "port/memory_port.h"
#include "tests/roce/engine_ends.h"

namespace urnic::test {
namespace {

using verbs::QpState;

struct WaitingAck : ::testing::Test {
  static constexpr bool kComesBack = true, kLeaves = false;

  WaitingAck() {
    auto [one, other] = port::make_memory_pair({.max_frame = 1518, .ring = 64});
    engine::Options options;
    options.speaks_roce = true;
    options.mtu = 1500;
    options.addresses = {"10.0.0.1/24"};
    a = std::make_unique<sim::Node>(options, std::move(one));
    options.addresses = {"10.0.0.2/24"};
    options.seed = 2;
    b = std::make_unique<sim::Node>(options, std::move(other));
    left = a->make_roce_qp();
    right = b->make_roce_qp();
    connect(*a, *left, {}, 0, right->number(), 1, now);
    connect(*b, *right, {}, 1, left->number(), 0, now);
    here = std::make_unique<Room>(*a, 4096, 1);
    there = std::make_unique<Room>(*b, 4096, 2);
    // Both have resolved the path and know the flow.
    for (int i = 0; i < 3; ++i) {
      write(*a, *left, *here, *there);
      write(*b, *right, *there, *here);
      for (int k = 0; k < 40; ++k) {
        pass(a.get(), kLeaves);
        pass(b.get(), kLeaves);
      }
    }
  }
  static verbs::SendWr write_of(const verbs::Sge& sge, const Room& remote) {
    verbs::SendWr wr;
    wr.op = verbs::WrOp::Write;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, 1};
    wr.remote_address = remote.at(1024);
    wr.rkey = remote.key;
    return wr;
  }
  void write(sim::Node& from, verbs::QueuePair& qp, const Room& local, const Room& remote) {
    const verbs::Sge sge{local.at(), 64, local.key};
    ASSERT_EQ(from.post_send(qp, write_of(sge, remote), now), verbs::Post::Ok);
  }
  // Without a doorbell.
  void post_write(verbs::QueuePair& qp, const Room& local, const Room& remote) {
    const verbs::Sge sge{local.at(), 64, local.key};
    ASSERT_EQ(qp.sq.post(write_of(sge, remote)), verbs::Post::Ok);
  }
  bool pass(sim::Node* node, bool comes_back) {
    now = now + Duration::us(1);
    return node->engine().poll(now, comes_back);
  }
  static roce::Statistics statistics(sim::Node& n) { return n.engine().roce().statistics(); }
  static std::uint64_t sent(sim::Node& n) { return statistics(n).sent; }
  static std::uint64_t acks(sim::Node& n) { return statistics(n).responders.acks; }

  Instant now = Instant::from_ns(1000);
  std::unique_ptr<sim::Node> a, b;
  verbs::QueuePair *left = nullptr, *right = nullptr;
  std::unique_ptr<Room> here, there;
};

// proves: S-11
TEST_F(WaitingAck, IsSentWithTheNextPoll) {
  const std::uint64_t before = sent(*b);
  write(*a, *left, *here, *there);
  EXPECT_TRUE(pass(b.get(), kComesBack));
  EXPECT_EQ(sent(*b), before);
  EXPECT_TRUE(b->engine().has_more_to_send()) << "who sleeps now would keep it";
  pass(b.get(), kComesBack);
  EXPECT_EQ(sent(*b), before + 1);
  pass(b.get(), kComesBack);
  EXPECT_EQ(sent(*b), before + 1);
}

// proves: S-11
TEST_F(WaitingAck, IsSentAfterTheConsumersResponse) {
  const std::uint64_t before = sent(*b), acked = acks(*b);
  write(*a, *left, *here, *there);
  pass(b.get(), kComesBack);
  write(*b, *right, *there, *here);
  EXPECT_EQ(sent(*b), before + 1);
  EXPECT_EQ(acks(*b), acked) << "that was the answer";
  pass(b.get(), kComesBack);
  EXPECT_EQ(sent(*b), before + 2);
  EXPECT_EQ(acks(*b), acked + 1);
}

// proves: S-11
TEST_F(WaitingAck, LeavesWithSeveralOfTheConsumersRequests) {
  const std::uint64_t before = sent(*b), acked = acks(*b);
  write(*a, *left, *here, *there);
  pass(b.get(), kComesBack);
  for (int i = 0; i < 2; ++i) post_write(*right, *there, *here);
  b->engine().work_posted(*right, verbs::kPostedSends, now);
  EXPECT_EQ(sent(*b), before + 3);
  EXPECT_EQ(acks(*b), acked + 1);
}

// proves: S-11
TEST_F(WaitingAck, IsSentAtOnceIfTheCallerDoesNotPollAgain) {
  const std::uint64_t before = sent(*b);
  write(*a, *left, *here, *there);
  pass(b.get(), kLeaves);
  EXPECT_EQ(sent(*b), before + 1);
}

// proves: S-11
TEST_F(WaitingAck, WaitsOnlyOnceEvenIfMoreArrives) {
  const std::uint64_t before = sent(*b);
  write(*a, *left, *here, *there);
  pass(b.get(), kComesBack);
  write(*a, *left, *here, *there);
  pass(b.get(), kComesBack);
  EXPECT_EQ(sent(*b), before + 1) << "one for both";
  write(*a, *left, *here, *there);
  pass(b.get(), kComesBack);
  EXPECT_EQ(sent(*b), before + 1) << "and waits again";
}

// A response other than an ACK, or a requested one, is not delayed.
TEST_F(WaitingAck, IsSentAtOnceWithAnythingElse) {
  const std::uint64_t before = sent(*b);
  write(*a, *left, *here, *there);
  const verbs::Sge sge{here->at(), 64, here->key};
  verbs::SendWr wr;
  wr.op = verbs::WrOp::Read;
  wr.sges = {&sge, 1};
  wr.remote_address = there->at();
  wr.rkey = there->key;
  ASSERT_EQ(a->post_send(*left, wr, now), verbs::Post::Ok);
  pass(b.get(), kComesBack);
  EXPECT_GE(sent(*b), before + 1);
}

}  // namespace
}  // namespace urnic::test
