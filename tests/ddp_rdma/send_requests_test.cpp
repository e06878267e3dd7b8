#include "ddp_rdma/send_requests.h"

#include "ddp_rdma/requests_fixture.h"

namespace urnic::ddp::test {
namespace {

using Ids = std::vector<std::uint64_t>;
using SendRequestsTest = RequestsFixture;

TEST_F(SendRequestsTest, GathersAnyPartOfThePieces) {
  post(WrOp::Write, {10, 0, 20, 30});
  std::array<ByteView, kMaxSges> pieces;
  std::uint32_t count = 9;
  ASSERT_TRUE(requests.gather(0, 5, 0, pieces.data(), &count));
  EXPECT_EQ(count, 0u);
  ASSERT_TRUE(requests.gather(0, 8, 30, pieces.data(), &count));
  ASSERT_EQ(count, 3u);
  EXPECT_EQ(pieces[0].data(), source.data() + 8);
  EXPECT_EQ(pieces[0].size(), 2u);
  EXPECT_EQ(pieces[1].data(), source.data() + 200);
  EXPECT_EQ(pieces[1].size(), 20u);
  EXPECT_EQ(pieces[2].data(), source.data() + 300);
  EXPECT_EQ(pieces[2].size(), 8u);
  EXPECT_FALSE(requests.gather(0, 50, 11, pieces.data(), &count)) << "more than there is";
}

TEST_F(SendRequestsTest, CompletesFinishedRequestsInPostingOrder) {
  for (int i = 0; i < 4; ++i) post(WrOp::Send, {8}, i == 1 ? 0 : kSignaled);
  for (int i = 0; i < 3; ++i) queue.start();
  requests.finish(1);
  requests.finish(2);
  EXPECT_EQ(reported(), Ids{});
  requests.finish(0);
  EXPECT_EQ(reported(), (Ids{10, 12})) << "the second is silent, the fourth has not begun";
}

// proves: E-25
TEST_F(SendRequestsTest, RegionsCountTheRequestsThatUseThem) {
  post(WrOp::Write, {10, 20});
  post(WrOp::Write, {0});
  queue.start();
  queue.start();
  requests.count_uses(0);
  requests.count_uses(1);
  EXPECT_EQ(memory.find_registered(key)->uses, 2u) << "once for each piece with bytes";
  requests.finish(0);
  requests.finish(1);
  EXPECT_EQ(memory.find_registered(key)->uses, 0u);
}

TEST_F(SendRequestsTest, DetachedMemoryIsNotReadAndNotCounted) {
  post(WrOp::Write, {10});
  post(WrOp::Write, {10});
  queue.start();
  queue.start();
  requests.count_uses(0);
  requests.count_uses(1);
  requests.part(1).whole = true;  // everything was cut and copied
  requests.detach(key, &shared.sinks);
  EXPECT_EQ(memory.find_registered(key)->uses, 0u);
  EXPECT_TRUE(requests.part(0).broken);
  EXPECT_FALSE(requests.part(1).broken);
  EXPECT_FALSE(requests.uses_region(0, key));
  std::array<ByteView, kMaxSges> pieces;
  std::uint32_t count = 0;
  EXPECT_FALSE(requests.gather(0, 0, 10, pieces.data(), &count));
  requests.release_all(&shared.sinks);
}

TEST_F(SendRequestsTest, ASinkNeedsTheRightToWriteLocally) {
  post(WrOp::Read, {10, 0, 20});
  std::array<std::span<std::uint8_t>, kMaxSges> pieces;
  std::size_t count = 0;
  ASSERT_TRUE(requests.find_sink(0, pieces.data(), &count));
  EXPECT_EQ(count, 2u);
  key = memory.register_memory(kPd, source.data(), source.size(), 0);
  post(WrOp::Read, {10});
  EXPECT_FALSE(requests.find_sink(1, pieces.data(), &count));
  EXPECT_TRUE(requests.may_read(1));
}

}  // namespace
}  // namespace urnic::ddp::test
