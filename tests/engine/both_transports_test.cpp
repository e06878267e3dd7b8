// RoCE and iWARP work on one port at once: each byte of both is correct, and each work request
// completes once and in order.
#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <vector>

#include "tests/roce/engine_ends.h"

namespace urnic::test {
namespace {

using verbs::Status;
using verbs::WrOp;

constexpr std::size_t kSlot = 4096;

// A request of either transport, and its expected effect.
struct Mixed {
  WrOp op;
  std::uint32_t length;
};
constexpr Mixed kMixed[] = {
    {WrOp::Write, 3000}, {WrOp::Send, 1500},    {WrOp::Read, 4000}, {WrOp::FetchAdd, 8},
    {WrOp::SendImm, 10}, {WrOp::WriteImm, 700}, {WrOp::Write, 1},   {WrOp::Send, 0},
    {WrOp::Read, 1024},  {WrOp::SendInv, 2000},
};

// The effect of a request on the memory of both ends. Sends go to the place of their receive.
void expect_done(const Mixed& m, std::size_t offset, std::uint64_t value, Bytes* mine,
                 Bytes* there) {
  std::uint8_t* const a = mine->data() + offset;
  std::uint8_t* const b = there->data() + offset;
  if (m.op == WrOp::Write || m.op == WrOp::WriteImm) std::memcpy(b, a, m.length);
  if (m.op == WrOp::Read) std::memcpy(a, b, m.length);
  if (m.op != WrOp::FetchAdd) return;
  std::uint64_t cell;
  std::memcpy(&cell, b, 8);
  std::memcpy(a, &cell, 8);
  cell += value;
  std::memcpy(b, &cell, 8);
}
bool uses_receive(WrOp op) {
  return op != WrOp::Write && op != WrOp::Read && op != WrOp::FetchAdd;
}

struct BothTransports : RoceEnds, ::testing::WithParamInterface<const char*> {};

TEST_P(BothTransports, ShareOnePortAndEachByteIsCorrect) {
  sim::PairOptions options = both();
  options.faults_left = options.faults_right = GetParam();
  up(options);
  verbs::QueuePair* const stream = pair->left().make_qp();
  verbs::QueuePair* const served = pair->right().make_qp();
  ASSERT_TRUE(pair->connect(*stream, *served));
  constexpr std::size_t kEach = 4 * std::size(kMixed), kAll = 2 * kEach;
  rooms(kAll * kSlot);
  Bytes mine = ours->bytes, there = theirs->bytes;
  std::vector<std::uint32_t> spare;
  std::size_t receives = 0;
  std::vector<std::size_t> offsets[2];
  for (std::size_t i = 0; i < kAll; ++i) {
    const bool of_roce = i % 2 == 0;
    const Mixed& m = kMixed[i / 2 % std::size(kMixed)];
    std::uint64_t value = 0x11223344u + i;
    if (m.op == WrOp::SendInv) {
      spare.push_back(pair->right().register_memory(inbox->bytes.data(), 8, verbs::kLocalWrite));
      value = spare.back();
    }
    if (uses_receive(m.op)) {
      receive(of_roce ? *right : *served, i, i * kSlot, kSlot);
      offsets[of_roce].push_back(i);
      ++receives;
    }
    expect_done(m, i * kSlot, value, &mine, &there);
    post(of_roce ? *left : *stream, m.op, i, m.length, i * kSlot, value);
  }
  ASSERT_TRUE(run(kAll, receives))
      << pair->left().send_done.size() << " and " << pair->right().receive_done.size();
  EXPECT_EQ(ours->bytes, mine);
  EXPECT_EQ(theirs->bytes, there);
  std::size_t next[2] = {0, 1};
  for (const verbs::Cqe& done : pair->left().send_done) {
    const bool of_roce = done.qp_number == left->number();
    EXPECT_EQ(done.completion.status, Status::Success);
    EXPECT_EQ(done.completion.wr_id, next[of_roce ? 0 : 1]) << "in the order of posting";
    next[of_roce ? 0 : 1] += 2;
  }
  std::size_t taken[2] = {0, 0};
  for (const verbs::Cqe& done : pair->right().receive_done) {
    const bool of_roce = done.qp_number == right->number();
    const std::size_t i = offsets[of_roce][taken[of_roce]++];
    const Mixed& m = kMixed[i / 2 % std::size(kMixed)];
    EXPECT_EQ(done.completion.status, Status::Success);
    EXPECT_EQ(done.completion.wr_id, i);
    EXPECT_EQ(done.completion.with_immediate, m.op == WrOp::SendImm || m.op == WrOp::WriteImm);
    if (done.completion.with_immediate) {
      EXPECT_EQ(done.completion.immediate, 0x11223344u + i);
    }
    if (m.op == WrOp::WriteImm) continue;
    EXPECT_EQ(done.completion.byte_len, m.length);
    EXPECT_EQ(std::memcmp(&inbox->bytes[i * kSlot], &ours->bytes[i * kSlot], m.length), 0);
  }
  for (const std::uint32_t key : spare) {
    EXPECT_EQ(pair->right().engine().memory().find(key), nullptr);
  }
}
INSTANTIATE_TEST_SUITE_P(RoceEngine, BothTransports,
                         ::testing::Values("", "loss=0.02,reorder=0.02,dup=0.02"));

}  // namespace
}  // namespace urnic::test
