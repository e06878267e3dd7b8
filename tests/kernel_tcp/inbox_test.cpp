#include "kernel_tcp/inbox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "tests/support/allocator.h"

namespace urnic::kernel_tcp {
namespace {

void put(Inbox& in, std::size_t n, std::uint8_t first) {
  const auto space = in.space();
  ASSERT_GE(space.size(), n);
  for (std::size_t i = 0; i < n; ++i) space[i] = static_cast<std::uint8_t>(first + i);
  in.received(n);
}

bool holds(const Inbox& in, std::size_t n, std::uint8_t first) {
  const ByteView v = in.bytes();
  if (v.size() != n) return false;
  for (std::size_t i = 0; i < n; ++i) {
    if (v[i] != static_cast<std::uint8_t>(first + i)) return false;
  }
  return true;
}

TEST(Inbox, AnEmptyInboxOwnsNoMemory) {
  InboxPool pool;
  Inbox in(&pool);
  EXPECT_EQ(pool.lent(), 0u);
  put(in, 100, 1);
  EXPECT_EQ(pool.lent(), 1u);
  in.consume(100);
  in.settle();
  EXPECT_EQ(pool.lent(), 0u);
  EXPECT_TRUE(in.empty());
}

TEST(Inbox, UnconsumedBytesStayContiguous) {
  InboxPool pool;
  Inbox in(&pool);
  Rng rng(3);
  std::uint64_t written = 0, read = 0;  // byte i of the stream is i modulo 251
  for (int round = 0; round < 2000; ++round) {
    const auto space = in.space();
    // At most one maximal FPDU waits, so there is always room for more.
    ASSERT_GE(space.size(), std::size_t{1});
    const std::size_t n = std::min<std::size_t>(space.size(), rng.between(1, 150000));
    for (std::size_t i = 0; i < n; ++i) space[i] = static_cast<std::uint8_t>((written + i) % 251);
    in.received(n);
    written += n;
    ASSERT_EQ(in.bytes().size(), written - read);
    for (const std::size_t i : {std::size_t{0}, in.bytes().size() / 2, in.bytes().size() - 1}) {
      ASSERT_EQ(in.bytes()[i], (read + i) % 251);
    }
    const std::size_t keep = std::min<std::size_t>(in.bytes().size(), rng.between(0, 65544));
    read += in.bytes().size() - keep;
    in.consume(in.bytes().size() - keep);
    if (rng.between(0, 3) == 0) in.settle();
  }
  EXPECT_LE(pool.lent(), 1u);
}

// proves: E-11
TEST(Inbox, ManyWaitingConnectionsKeepOnlyTheirBytes) {
  InboxPool pool;
  std::vector<std::unique_ptr<Inbox>> crowd;
  for (std::size_t i = 0; i < 1000; ++i) {
    crowd.push_back(std::make_unique<Inbox>(&pool));
    put(*crowd.back(), 300, static_cast<std::uint8_t>(i));
    crowd.back()->settle();
  }
  EXPECT_LE(pool.lent(), InboxPool::kLent + 1);
  EXPECT_LE(pool.set_aside(), 300u * 1000);
  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(holds(*crowd[i], 300, static_cast<std::uint8_t>(i)));
    crowd[i]->consume(100);
    put(*crowd[i], 50, static_cast<std::uint8_t>(i + 300));  // moved back into a block
    ASSERT_TRUE(holds(*crowd[i], 250, static_cast<std::uint8_t>(i + 100)));
    crowd[i]->settle();
  }
  crowd.clear();
  EXPECT_EQ(pool.lent(), 0u);
  EXPECT_EQ(pool.set_aside(), 0u);
}

// After a burst, blocks are freed except for a few.
TEST(Inbox, AfterABurstFewBlocksAreKept) {
  InboxPool pool;
  const std::uint64_t before = urnic::testing::allocated_bytes();
  {
    std::vector<std::unique_ptr<Inbox>> burst;
    for (int i = 0; i < 20; ++i) {
      burst.push_back(std::make_unique<Inbox>(&pool));
      put(*burst.back(), 10, 1);
    }
    EXPECT_GE(urnic::testing::allocated_bytes() - before, 20 * InboxPool::kBlock);
  }
  const std::uint64_t kept = urnic::testing::allocated_bytes() - before;
  EXPECT_GE(kept, InboxPool::kBlock);
  EXPECT_LT(kept, 5 * InboxPool::kBlock);
}

TEST(Inbox, TheUnconsumedRestIsSetAside) {
  InboxPool pool;
  std::vector<std::unique_ptr<Inbox>> crowd;
  for (std::size_t i = 0; i <= InboxPool::kLent; ++i) {
    crowd.push_back(std::make_unique<Inbox>(&pool));
    put(*crowd.back(), 300, 1);
    crowd.back()->consume(100);
  }
  Inbox& last = *crowd.back();
  last.settle();
  ASSERT_EQ(pool.set_aside(), 200u);
  EXPECT_TRUE(holds(last, 200, 101));
  last.consume(30);
  EXPECT_TRUE(holds(last, 170, 131));
  put(last, 5, 45);  // 301 modulo 256
  EXPECT_TRUE(holds(last, 175, 131));
}

TEST(Inbox, ClearDiscardsBytesInBlocksAndSetAside) {
  InboxPool pool;
  std::vector<std::unique_ptr<Inbox>> crowd;
  for (std::size_t i = 0; i <= InboxPool::kLent + 1; ++i) {
    crowd.push_back(std::make_unique<Inbox>(&pool));
    put(*crowd.back(), 10, 1);
    crowd.back()->settle();
  }
  EXPECT_NE(pool.set_aside(), 0u);
  for (auto& in : crowd) {
    in->clear();
    EXPECT_TRUE(in->empty());
  }
  EXPECT_EQ(pool.lent(), 0u);
  EXPECT_EQ(pool.set_aside(), 0u);
}

}  // namespace
}  // namespace urnic::kernel_tcp
