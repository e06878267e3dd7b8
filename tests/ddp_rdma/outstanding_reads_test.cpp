#include "ddp_rdma/outstanding_reads.h"

#include "ddp_rdma/requests_fixture.h"

namespace urnic::ddp::test {
namespace {

using Ids = std::vector<std::uint64_t>;

class OutstandingReadsTest : public RequestsFixture {
 protected:
  std::uint32_t begin(std::uint32_t seq) {
    std::array<std::span<std::uint8_t>, kMaxSges> pieces;
    std::size_t count = 0;
    EXPECT_TRUE(requests.find_sink(seq, pieces.data(), &count));
    queue.start();
    sinks.push_back(shared.sinks.open(kStream, {pieces.data(), count}));
    return reads.begin(requests, seq, sinks.back());
  }
  std::vector<std::uint32_t> sinks;
  OutstandingReads reads{1};
};

TEST_F(OutstandingReadsTest, OrdLimitsOutstandingReads) {
  EXPECT_TRUE(reads.none_allowed());
  reads.set_ord(2);
  EXPECT_FALSE(reads.none_allowed());
  EXPECT_EQ(reads.begin_rtr(), 1u);
  EXPECT_TRUE(reads.has_credit());
  post(WrOp::Read, {10});
  EXPECT_EQ(begin(0), 2u);
  EXPECT_FALSE(reads.has_credit());
  EXPECT_TRUE(reads.finish(1, &requests, &shared.sinks)) << "the RTR read, which has no sink";
  EXPECT_TRUE(reads.has_credit());
  EXPECT_EQ(reported(), Ids{});
}

// proves: R-93
TEST_F(OutstandingReadsTest, FinishInOrderOnlyEndedReads) {
  reads.set_ord(4);
  for (std::uint32_t i = 0; i < 3; ++i) {
    post(WrOp::Read, {10});
    begin(i);
  }
  shared.sinks.find(sinks[0])->ended = true;
  shared.sinks.find(sinks[2])->ended = true;
  EXPECT_FALSE(reads.finish(2, &requests, &shared.sinks)) << "the second has not ended";
  EXPECT_EQ(reported(), Ids{10});
  EXPECT_EQ(shared.sinks.find(sinks[0]), nullptr) << "its STag is void";
  shared.sinks.find(sinks[1])->ended = true;
  EXPECT_TRUE(reads.finish(2, &requests, &shared.sinks));
  EXPECT_EQ(reported(), (Ids{11, 12}));
  EXPECT_TRUE(reads.none());
  EXPECT_FALSE(reads.finish(1, &requests, &shared.sinks)) << "more than there are";
}

TEST_F(OutstandingReadsTest, AreWalkedOldestFirst) {
  reads.set_ord(4);
  reads.begin_rtr();
  post(WrOp::Read, {10});
  post(WrOp::Send, {10});
  post(WrOp::Read, {20});
  begin(0);
  queue.start();
  begin(2);
  OutstandingReads::Cursor cursor = reads.oldest();
  std::uint32_t sink = 9, size = 9;
  ASSERT_TRUE(OutstandingReads::next(requests, &cursor, &sink, &size));
  EXPECT_EQ(sink, 0u);
  ASSERT_TRUE(OutstandingReads::next(requests, &cursor, &sink, &size));
  EXPECT_EQ(sink, sinks[0]);
  EXPECT_EQ(size, 10u);
  ASSERT_TRUE(OutstandingReads::next(requests, &cursor, &sink, &size));
  EXPECT_EQ(sink, sinks[1]);
  EXPECT_EQ(size, 20u);
  EXPECT_FALSE(OutstandingReads::next(requests, &cursor, &sink, &size));
  requests.release_all(&shared.sinks);
}

TEST_F(OutstandingReadsTest, AForgottenStartupReturnsItsMsns) {
  reads.set_ord(1);
  reads.begin_rtr();
  reads.forget_rtr();
  EXPECT_TRUE(reads.none());
  EXPECT_EQ(reads.begin_rtr(), 1u);
}

}  // namespace
}  // namespace urnic::ddp::test
