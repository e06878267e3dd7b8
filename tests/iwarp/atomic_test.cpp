// Atomic operations (RFC 7306, 5) through the engine, as initiator and as responder, on every kind
// of connection.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "sim/pair.h"
#include "tests/iwarp/path_matrix.h"
#include "tests/support/hand_peer.h"

namespace urnic {
namespace {

using verbs::SendWr;
using verbs::Sge;
using verbs::WrOp;

constexpr std::uint8_t kTarget = verbs::kLocalWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;

class AtomicMatrix : public ::testing::TestWithParam<test::PathSetting> {};

// All four operations in turn on one word, more at a time than ORD allows. Each returns the word's
// value at its place in the order.
// proves: E-53
TEST_P(AtomicMatrix, EveryAtomicIsCarriedOutOnceAndInOrder) {
  sim::Pair pair(test::options_of(GetParam(), 31));
  auto* left = pair.left().make_qp(128, 8);
  auto* right = pair.right().make_qp(8, 8);
  ASSERT_TRUE(pair.connect(*left, *right));
  constexpr std::size_t kCount = 90;
  alignas(8) std::uint64_t word[2] = {100, 1};
  std::vector<std::uint64_t> came(kCount, ~std::uint64_t{0});
  const auto address = [](const void* p) { return reinterpret_cast<std::uint64_t>(p); };
  const auto mine = pair.left().register_memory(reinterpret_cast<std::uint8_t*>(came.data()),
                                                kCount * 8, verbs::kLocalWrite);
  const auto theirs =
      pair.right().register_memory(reinterpret_cast<std::uint8_t*>(word), sizeof word, kTarget);
  std::vector<std::uint64_t> want;
  std::uint64_t value = word[0];
  for (std::size_t i = 0; i < kCount; ++i) {
    const Sge sge{address(&came[i]), 8, mine};
    SendWr wr;
    wr.wr_id = i;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, 1};
    wr.remote_address = address(word);
    wr.rkey = theirs;
    want.push_back(value);
    switch (i % 4) {
      case 0:
        wr.op = WrOp::FetchAdd;
        wr.atomic.data = 3;
        value += 3;
        break;
      case 1:
        wr.op = WrOp::CmpSwap;
        wr.atomic.compare = i % 8 == 1 ? value : value + 1;
        wr.atomic.data = 1000 * i;
        if (i % 8 == 1) value = 1000 * i;
        break;
      case 2:
        wr.op = WrOp::Read;
        break;
      default:
        wr.op = WrOp::Swap;
        wr.atomic.data = 7 * i;
        value = 7 * i;
        break;
    }
    ASSERT_EQ(pair.left().post_send(*left, wr, pair.now()), verbs::Post::Ok);
  }
  ASSERT_TRUE(pair.run_until(
      [&] {
        pair.left().drain_completions();
        return pair.left().send_done.size() == kCount;
      },
      Duration::s(60)));
  for (std::size_t i = 0; i < kCount; ++i) {
    const verbs::Completion& c = pair.left().send_done[i].completion;
    EXPECT_EQ(c.status, verbs::Status::Success);
    EXPECT_EQ(c.wr_id, i);
    EXPECT_EQ(c.byte_len, 8u);
    EXPECT_EQ(came[i], want[i]) << i;
  }
  EXPECT_EQ(word[0], value);
  EXPECT_EQ(word[1], 1u);
  const ConnectionStats s = pair.right().engine().iwarp().qp_stats(*right);
  EXPECT_GE(s.iwarp.ddp.fpdus_received[10], 67u);
  EXPECT_GE(s.iwarp.ddp.fpdus_sent[11], 67u);
}

INSTANTIATE_TEST_SUITE_P(Paths, AtomicMatrix, test::all_paths());

// ---- a simulated peer

struct AtomicHand : ::testing::Test {
  test::HandPeer p;
  static std::vector<test::Bytes> ulpdus(const std::vector<test::Answer>& answers) {
    std::vector<test::Bytes> out;
    for (const test::Answer& a : answers) {
      if (a.payload.size() > 6) out.emplace_back(a.payload.begin() + 2, a.payload.end() - 4);
    }
    return out;
  }
  test::Bytes request(std::uint32_t msn, std::uint32_t stag, std::uint64_t to) {
    ddp::AtomicRequest a;
    a.id = 9;
    a.stag = stag;
    a.to = to;
    a.data = 5;
    return testing::make_fpdu(ddp::test::atomic_request(msn, a));
  }
};

// proves: E-53
TEST_F(AtomicHand, AnOutOfOrderRequestWaitsAndIsAnsweredOnTheAtomicQueue) {
  ASSERT_TRUE(p.up());
  const auto words = p.node().register_memory(p.region.data(), 64, kTarget);
  const test::Bytes first = request(1, words, p.to(0)), second = request(2, words, p.to(0));
  p.send(first.size(), second);
  EXPECT_TRUE(p.untouched()) << "early";
  const auto out = ulpdus(p.send(0, first));
  std::uint64_t now;
  std::memcpy(&now, p.region.data(), 8);
  EXPECT_EQ(now, 10u);
  ASSERT_FALSE(out.empty());
  const auto reply = ddp::parse_segment(ByteView(out[0]).first(30));
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->header.op, ddp::Opcode::AtomicResponse);
  EXPECT_EQ(reply->header.qn, ddp::kQnAtomicResponse);
  EXPECT_EQ(reply->header.msn, 1u);
  EXPECT_EQ(reply->header.atomic_reply.id, 9u);
  EXPECT_EQ(reply->header.atomic_reply.original, 0u);
}

// proves: E-53
TEST_F(AtomicHand, ForbiddenTargetsAreUnchangedAndTerminateTellsWhy) {
  const struct {
    bool right;
    std::uint64_t at;
    std::uint8_t etype, code;
  } kRows[] = {{false, 0, 1, 2}, {true, 60, 1, 1}, {true, 4, 2, 7}};
  for (const auto& row : kRows) {
    AtomicHand_ForbiddenTargetsAreUnchangedAndTerminateTellsWhy_Test one;
    ASSERT_TRUE(one.p.up());
    const auto words = one.p.node().register_memory(one.p.region.data(), 64, kTarget);
    const auto out =
        ulpdus(one.p.send(0, one.request(1, row.right ? words : one.p.stag, one.p.to(row.at))));
    ASSERT_FALSE(out.empty());
    const auto reply = ddp::parse_segment(out.back());
    ASSERT_TRUE(reply.ok());
    ASSERT_EQ(reply->header.op, ddp::Opcode::Terminate);
    const auto info = ddp::parse_terminate(reply->payload);
    EXPECT_EQ(info.layer, 0);
    EXPECT_EQ(info.etype, row.etype);
    EXPECT_EQ(info.code, row.code);
    EXPECT_TRUE(one.p.untouched());
  }
}

}  // namespace
}  // namespace urnic
