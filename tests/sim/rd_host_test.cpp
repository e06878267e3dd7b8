// One end of RD as a whole: scheduling, numbers, dropped packets.
#include "sim/rd/rd_host.h"

#include "tests/sim/rd_bench.h"

namespace urnic::sim {
namespace {

using namespace ib;
using test::RdBench;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using verbs::QpState;
using verbs::Status;
using verbs::WrOp;

struct RdHostTest : RdBench {};

TEST(RdHost, CreatesObjectsOnlyUpToTheLimit) {
  verbs::MemoryTable table;
  RdHost host(&table);
  EeAttributes ee;
  QpAttributes qp;
  verbs::SendQueue sq(1, 1, 0, sizeof(RdTo));
  verbs::ReceiveQueue rq(1, 1, 0);
  for (ee.number = 1; ee.number <= RdHost::kMaxContexts; ++ee.number) {
    EXPECT_NE(host.make_context(ee), nullptr);
  }
  EXPECT_EQ(host.make_context(ee), nullptr);
  for (qp.number = 1; qp.number <= RdHost::kMaxQueuePairs; ++qp.number) {
    EXPECT_NE(host.make_queue_pair(qp, 0, &sq, &rq), nullptr);
  }
  EXPECT_EQ(host.make_queue_pair(qp, 0, &sq, &rq), nullptr);
  EXPECT_NE(host.context(RdHost::kMaxContexts), nullptr);
}

TEST_F(RdHostTest, NumbersAreUnique) {
  EXPECT_EQ(host().make_context(ee), nullptr);
  verbs::SendQueue sq(1, 1, 0, sizeof(RdTo));
  verbs::ReceiveQueue rq(1, 1, 0);
  qp.number = 0x11;
  EXPECT_EQ(host().make_queue_pair(qp, kRdd, &sq, &rq), nullptr);
}

// proves: IB-173
TEST_F(RdHostTest, QueuePairsTakeTurnsOnOneEeContext) {
  for (std::uint32_t i = 0; i < 3; ++i) {
    for (std::uint32_t q = 0x11; q < 0x14; ++q) post(WrOp::Send, 1, q);
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < 9; ++i) {
    const Seen s = only_request();
    order.push_back(s.h.deth.source_qp);
    ParsedPacket p = ack(100 + i);
    p.header.bth.dest_qp = s.h.deth.source_qp;
    come(p);
  }
  EXPECT_THAT(order, ElementsAre(0x11, 0x12, 0x13, 0x11, 0x12, 0x13, 0x11, 0x12, 0x13));
}

TEST_F(RdHostTest, PacketsForNoEeContextAreDroppedAndCounted) {
  post_receive(1);
  const auto at = [&] { return send(Operation::SendOnly, ee.rq_psn, 10); };
  ParsedPacket p = at();
  p.header.ee_context = 0x999;
  come(p);
  EXPECT_EQ(host().drops().of(Drop::NoQueuePair), 1u);
  p = at();
  p.header.bth.opcode = ib::Opcode(ServiceType::Rc, Operation::SendOnly);
  come(p);
  EXPECT_EQ(host().drops().of(Drop::WrongService), 1u);
  host().take(at(), IpAddress::v4(10, 0, 0, 9), now);
  EXPECT_EQ(host().drops().of(Drop::WrongAddress), 1u);
  EXPECT_TRUE(host().modify(context(), QpState::Error).ok());
  come(at());
  EXPECT_EQ(host().drops().of(Drop::WrongState), 1u);
  EXPECT_THAT(responses(), IsEmpty());
  EXPECT_THAT(told, IsEmpty());
}

// proves: IB-131
TEST_F(RdHostTest, AnEeContextMovedToErrorFailsTheMessageInProgress) {
  post(WrOp::Send, 10, 0x11, 1);
  post(WrOp::Send, 10, 0x12, 2);
  requests();
  EXPECT_TRUE(host().modify(context(), QpState::Error).ok());
  EXPECT_EQ(pair(0x11).state, QpState::Sqe);
  EXPECT_THAT(requests(), IsEmpty());
  EXPECT_EQ(pair(0x12).state, QpState::Sqe);
  EXPECT_THAT(statuses(), ElementsAre(Status::Flushed, Status::LocalOperation));
}

TEST_F(RdHostTest, LocalOperationsCompleteInOrderWithoutAPacket) {
  const std::uint32_t key = table.register_memory(kPd, memory.data(), 8, verbs::kLocalWrite);
  verbs::SendWr wr;
  wr.op = WrOp::LocalInv;
  wr.flags = verbs::kSignaled;
  wr.inv_key = key;
  ASSERT_EQ(pair().sender.post(wr, {}), verbs::Post::Ok);
  post(WrOp::Send, 10);
  EXPECT_EQ(only_request().operation(), Operation::SendOnly);
  EXPECT_EQ(table.find(key), nullptr);
  EXPECT_THAT(statuses(), ElementsAre(Status::Success));
}

TEST_F(RdHostTest, ResetDiscardsPostedRequests) {
  post(WrOp::Send, 10);
  post_receive(1);
  requests();
  EXPECT_TRUE(host().modify(pair(), QpState::Reset, verbs::kQpAttrState).ok());
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(only_request().operation(), Operation::Resync);
  come(ack(101));
  bring(pair(), QpState::Rts);
  EXPECT_THAT(requests(), IsEmpty());
  post(WrOp::Send, 10);
  EXPECT_EQ(only_request().psn(), 102u);
}

}  // namespace
}  // namespace urnic::sim
