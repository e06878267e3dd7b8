// Immediate Data (RFC 7306, 6) through the engine: after Writes and with Sends, on every kind of
// connection; and a peer that does not know it.
#include <gtest/gtest.h>

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

constexpr std::uint64_t kData = 0x1122334455667788;

// ---- over our own TCP

class ImmediateMatrix : public ::testing::TestWithParam<test::PathSetting> {};

// proves: E-53
TEST_P(ImmediateMatrix, EachMessageCompletesOneReceiveAfterEarlierData) {
  sim::Pair pair(test::options_of(GetParam(), 21));
  auto* left = pair.left().make_qp(64, 64);
  auto* right = pair.right().make_qp(64, 64);
  ASSERT_TRUE(pair.connect(*left, *right));
  constexpr std::size_t kEach = 20000, kCount = 48;
  std::vector<std::uint8_t> from(kEach * kCount), into(kEach * kCount), target(kEach * kCount);
  for (std::size_t i = 0; i < from.size(); ++i) {
    from[i] = static_cast<std::uint8_t>(i * 31 + i / 253 + 1);
  }
  const auto mine = pair.left().register_memory(from.data(), from.size(), verbs::kLocalWrite);
  const auto theirs = pair.right().register_memory(into.data(), into.size(), verbs::kLocalWrite);
  const auto open = pair.right().register_memory(target.data(), target.size(),
                                                 verbs::kLocalWrite | verbs::kRemoteWrite);
  const auto address = [](const std::vector<std::uint8_t>& v, std::size_t at) {
    return reinterpret_cast<std::uint64_t>(v.data()) + at;
  };
  const auto length = [](std::size_t i) -> std::uint32_t {
    constexpr std::uint32_t kLengths[] = {0, 1, 8, 255, 300, 1440, 1441, 20000};
    return kLengths[(i / 3) % 8];
  };
  for (std::size_t i = 0; i < kCount; ++i) {
    const Sge sge{address(into, i * kEach), kEach, theirs};
    ASSERT_TRUE(pair.right().post_receive(*right, {i, {&sge, 1}}, pair.now()));
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    const Sge sge{address(from, i * kEach), length(i), mine};
    SendWr wr;
    wr.wr_id = 100 + i;
    wr.op = i % 3 == 0 ? WrOp::WriteImm : i % 3 == 1 ? WrOp::SendImm : WrOp::Send;
    wr.flags = verbs::kSignaled;
    if (i % 2 != 0) wr.flags |= verbs::kSolicited;
    wr.sges = {&sge, 1};
    wr.remote_address = address(target, i * kEach);
    wr.rkey = open;
    wr.immediate = kData + i;
    ASSERT_EQ(pair.left().post_send(*left, wr, pair.now()), verbs::Post::Ok);
  }
  // Checked at each completion: the data sent before it has arrived.
  std::size_t seen = 0;
  const auto look = [&] {
    pair.left().drain_completions();
    pair.right().drain_completions();
    for (; seen < pair.right().receive_done.size(); ++seen) {
      const verbs::Completion& c = pair.right().receive_done[seen].completion;
      ASSERT_EQ(c.status, verbs::Status::Success);
      EXPECT_EQ(c.wr_id, seen);
      const bool written = seen % 3 == 0;
      EXPECT_EQ(c.with_immediate, seen % 3 != 2);
      EXPECT_EQ(c.immediate, seen % 3 != 2 ? kData + seen : 0);
      EXPECT_EQ(c.solicited, seen % 2 != 0);
      EXPECT_EQ(c.byte_len, written ? 0 : length(seen));
      const auto& where = written ? target : into;
      EXPECT_EQ(std::memcmp(where.data() + seen * kEach, from.data() + seen * kEach, length(seen)),
                0)
          << seen;
    }
  };
  ASSERT_TRUE(pair.run_until(
      [&] {
        look();
        return seen == kCount && pair.left().send_done.size() == kCount;
      },
      Duration::s(60)));
  for (std::size_t i = 0; i < kCount; ++i) {
    const verbs::Completion& c = pair.left().send_done[i].completion;
    EXPECT_EQ(c.status, verbs::Status::Success);
    EXPECT_EQ(c.wr_id, 100 + i);
  }
  const ConnectionStats s = pair.right().engine().iwarp().qp_stats(*right);
  if (const auto [policy, fast, faults] = GetParam(); *faults == 0) {
    EXPECT_EQ(s.iwarp.bytes_fast == 0, !fast);
  }
  EXPECT_GT(s.iwarp.ddp.fpdus_received[8], 0u);
  EXPECT_GT(s.iwarp.ddp.fpdus_received[9], 0u);
}

INSTANTIATE_TEST_SUITE_P(Paths, ImmediateMatrix, test::all_paths());

// ---- a simulated peer

struct ImmediateHand : ::testing::Test {
  test::HandPeer p;
  static test::Bytes immediate(std::uint32_t msn, std::uint64_t data) {
    ddp::SegmentHeader h;
    h.op = ddp::Opcode::Immediate;
    h.last = true;
    h.msn = msn;
    h.with_immediate = true;
    h.immediate = data;
    return testing::make_fpdu(ddp::test::ulpdu(h));
  }
};

// As in RFC 7306: a message of its own, after any other message.
// proves: E-53
TEST_F(ImmediateHand, AMessageOfEightBytesUsesTheReceiveOfItsMsn) {
  ASSERT_TRUE(p.up());
  for (std::uint64_t i = 1; i <= 2; ++i) ASSERT_TRUE(p.post_receive(i, 0, 100));
  test::Bytes bytes = p.send_message(1, test::Bytes(10, 7));
  testing::append(bytes, p.write(500, test::Bytes(20, 9)));
  testing::append(bytes, immediate(2, kData));
  p.send(0, bytes);
  ASSERT_EQ(p.receives().size(), 2u);
  EXPECT_FALSE(p.receives()[0].completion.with_immediate);
  EXPECT_EQ(p.receives()[0].completion.byte_len, 10u);
  EXPECT_TRUE(p.receives()[1].completion.with_immediate);
  EXPECT_EQ(p.receives()[1].completion.immediate, kData);
  EXPECT_EQ(p.receives()[1].completion.byte_len, 0u);
  EXPECT_TRUE(p.fast());
}

// proves: E-53
TEST_F(ImmediateHand, AnEarlyMessageWaitsForEarlierData) {
  ASSERT_TRUE(p.up());
  ASSERT_TRUE(p.post_receive(1, 0, 100));
  const test::Bytes first = p.write(500, test::Bytes(20, 9));
  p.send(first.size(), immediate(1, kData));
  EXPECT_TRUE(p.receives().empty());
  p.send(0, first);
  ASSERT_EQ(p.receives().size(), 1u);
  EXPECT_EQ(p.receives()[0].completion.immediate, kData);
}

// proves: E-53
TEST_F(ImmediateHand, APeerWithoutImmediateDataIsRecognized) {
  ASSERT_TRUE(p.up());
  const test::Bytes first = p.write(0, test::Bytes(100, 1));
  p.send(0, first);
  p.acknowledge(first.size());
  p.node().events.clear();
  const Sge sge{p.to(0), 3000, p.stag};
  SendWr wr;
  wr.op = WrOp::WriteImm;
  wr.flags = verbs::kSignaled;
  wr.sges = {&sge, 1};
  wr.immediate = kData;
  for (wr.wr_id = 7; wr.wr_id < 9; ++wr.wr_id) {
    ASSERT_EQ(p.node().post_send(*p.qp, wr, p.now), verbs::Post::Ok);
  }
  p.burst({});
  const auto& snd = p.connection()->tcb.snd;
  test::Cut c;
  c.at = first.size();
  c.bytes = testing::make_fpdu(ddp::test::terminate_segment(ddp::Violation::UnexpectedOpcode));
  c.behind = static_cast<std::uint32_t>(snd.nxt - snd.una);
  p.burst({c});
  ASSERT_EQ(p.sends().size(), 2u);
  EXPECT_EQ(p.sends()[0].completion.wr_id, 7u);
  EXPECT_EQ(p.sends()[0].completion.status, verbs::Status::RemoteInvalidRequest);
  EXPECT_EQ(p.sends()[1].completion.status, verbs::Status::Flushed);
  ASSERT_EQ(p.node().events.size(), 1u);
  EXPECT_NE(p.node().events[0].message.find("RFC 7306"), std::string::npos)
      << p.node().events[0].message;
}

}  // namespace
}  // namespace urnic
