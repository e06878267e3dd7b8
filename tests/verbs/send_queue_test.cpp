#include "verbs/send_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace urnic::verbs {
namespace {

SendWr wr_of(WrOp op, std::span<const Sge> sges, std::uint8_t flags = 0) {
  SendWr wr;
  wr.op = op;
  wr.sges = sges;
  wr.flags = flags;
  return wr;
}

TEST(SendQueue, RefusesInvalidRequests) {
  SendQueue q(4, 2, 16, 16);
  const std::array<Sge, 3> sges{{{0, 1, 1}, {0, 1, 1}, {0, 1, 1}}};
  std::vector<std::uint8_t> bytes(32);
  const Sge longer{reinterpret_cast<std::uintptr_t>(bytes.data()), 17, 0};
  const std::array<Sge, 2> huge{{{0, 0x80000000, 1}, {0, 1, 1}}};
  EXPECT_EQ(q.post(wr_of(WrOp::Send, sges)), Post::TooManySges);
  EXPECT_EQ(q.post(wr_of(WrOp::Write, {&longer, 1}, kInline)), Post::InlineTooLong);
  EXPECT_EQ(q.post(wr_of(WrOp::Write, huge)), Post::TooLong);
  EXPECT_EQ(q.post(wr_of(WrOp::Read, {}, kInline)), Post::BadOp);
  EXPECT_EQ(q.post(wr_of(WrOp::LocalInv, {}, kInline)), Post::BadOp);
  EXPECT_EQ(q.post(wr_of(static_cast<WrOp>(11), {})), Post::BadOp);
  EXPECT_TRUE(q.empty()) << "what is refused leaves no trace";
  EXPECT_EQ(q.post(wr_of(WrOp::Write, std::span(huge).first(1))), Post::Ok) << "2^31 bytes";
}

TEST(SendQueue, HoldsItsLimitAndNoMore) {
  SendQueue q(3, 1, 0, 16);
  for (int round = 0; round < 20; ++round) {
    while (q.tail() - q.head() < 3) ASSERT_EQ(q.post(wr_of(WrOp::Send, {})), Post::Ok);
    EXPECT_EQ(q.post(wr_of(WrOp::Send, {})), Post::Full);
    q.start();
    q.pop();
  }
}

TEST(SendQueue, InlinePayloadIsCopiedAtPosting) {
  SendQueue q(2, 2, 64, 16);
  std::vector<std::uint8_t> a(5, 0xA1), b(7, 0xB2);
  const std::array<Sge, 2> sges{{{reinterpret_cast<std::uintptr_t>(a.data()), 5, 0},
                                 {reinterpret_cast<std::uintptr_t>(b.data()), 7, 0}}};
  ASSERT_EQ(q.post(wr_of(WrOp::Send, sges, kInline)), Post::Ok);
  std::vector<std::uint8_t> want = a;
  want.insert(want.end(), b.begin(), b.end());
  std::fill(a.begin(), a.end(), 0);
  const ByteView got = q.inline_payload(0);
  EXPECT_EQ(std::vector<std::uint8_t>(got.begin(), got.end()), want);
}

}  // namespace
}  // namespace urnic::verbs
