// The packets of a UC requester, and when its requests are done.
#include <gmock/gmock.h>

#include "ib/requester_bench.h"
#include "ib/uc.h"

namespace urnic::ib {
namespace {

using ::testing::ElementsAre;
using verbs::Status;
using verbs::WrOp;

class UcRequesting : public RequesterBench {
 protected:
  UcRequesting() { qp.service = ServiceType::Uc; }

  UcRequester& uc() {
    if (!uc_) uc_ = std::make_unique<UcRequester>(qp, &sq, &table);
    return *uc_;
  }
  std::vector<SentPacket> send(bool may_begin = true) {
    std::vector<SentPacket> out;
    RequestPacket p;
    while (out.size() < 1000 && uc().next_packet(may_begin, &p)) {
      EXPECT_EQ(p.header.bth.opcode.service(), ServiceType::Uc);
      EXPECT_FALSE(p.header.bth.ack_request);
      out.push_back({p.header, std::vector<std::uint8_t>(p.length)});
      p.copy_payload(out.back().payload.data());
    }
    return out;
  }
  static std::vector<std::uint32_t> psns(const std::vector<SentPacket>& packets) {
    std::vector<std::uint32_t> all;
    all.reserve(packets.size());
    for (const SentPacket& p : packets) all.push_back(p.psn());
    return all;
  }
  std::vector<verbs::Completion> done() {
    std::vector<verbs::Completion> all;
    uc().report([&](const verbs::Completion& c) { all.push_back(c); });
    return all;
  }
  std::vector<verbs::Completion> flushed() {
    std::vector<verbs::Completion> all;
    uc().flush([&](const verbs::Completion& c) { all.push_back(c); });
    return all;
  }

 private:
  std::unique_ptr<UcRequester> uc_;
};

// proves: IB-91
TEST_F(UcRequesting, EachPacketHasTheNextPsn) {
  qp.sq_psn = Psn(0xfffffe);
  post(WrOp::Send, 3 * kPmtu);
  post(WrOp::Write, 0);
  post(WrOp::Send, 1);
  EXPECT_THAT(psns(send()), ElementsAre(0xfffffe, 0xffffff, 0, 1, 2));
}

TEST_F(UcRequesting, MessagesAreSplitIntoPacketsOfTheirKindInOrder) {
  verbs::SendWr wr = request(WrOp::WriteImm, 2 * kPmtu + 5, 64);
  wr.immediate = 0xa1b2c3d4;
  wr.flags |= verbs::kSolicited;
  post(wr);
  post(WrOp::Write, 7);
  post(WrOp::SendImm, kPmtu);
  post(WrOp::Send, kPmtu + 1);
  const auto packets = send();
  EXPECT_THAT(operations(packets),
              ElementsAre(Operation::WriteFirst, Operation::WriteMiddle, Operation::WriteLastImm,
                          Operation::WriteOnly, Operation::SendOnlyImm, Operation::SendFirst,
                          Operation::SendLast));
  EXPECT_EQ(packets[0].h.reth.length, 2 * kPmtu + 5);
  EXPECT_EQ(packets[0].h.reth.rkey, kRkey);
  EXPECT_EQ(packets[0].h.reth.address, 0x10000u);
  EXPECT_EQ(packets[0].h.bth.dest_qp, kPeerQpn);
  EXPECT_FALSE(packets[0].h.bth.solicited);
  EXPECT_TRUE(packets[2].h.bth.solicited);
  EXPECT_EQ(packets[2].h.immediate, 0xa1b2c3d4u);
  std::vector<std::uint8_t> all;
  for (int i = 0; i < 3; ++i) {
    all.insert(all.end(), packets[static_cast<std::size_t>(i)].payload.begin(),
               packets[static_cast<std::size_t>(i)].payload.end());
  }
  ASSERT_EQ(all.size(), 2 * kPmtu + 5);
  EXPECT_TRUE(std::equal(all.begin(), all.end(), memory.begin() + 64));
}

// proves: IB-98
TEST_F(UcRequesting, ARequestIsDoneWithItsLastPacketWithoutAResponse) {
  post(WrOp::Send, 2 * kPmtu);
  RequestPacket p;
  ASSERT_TRUE(uc().next_packet(true, &p));
  EXPECT_TRUE(done().empty());
  ASSERT_TRUE(uc().next_packet(true, &p));
  const auto c = done();
  ASSERT_EQ(c.size(), 1u);
  EXPECT_EQ(c[0].wr_id, 1u);
  EXPECT_EQ(c[0].status, Status::Success);
  EXPECT_TRUE(sq.empty());
}

// proves: IB-130
TEST_F(UcRequesting, ThePsnDoesNotAdvanceWhenNothingIsSent) {
  post(WrOp::Send, 2 * kPmtu);
  post(WrOp::Read, 8);
  EXPECT_TRUE(send(false).empty());  // SQD
  EXPECT_EQ(uc().psn(), Psn(100));
  RequestPacket p;
  ASSERT_TRUE(uc().next_packet(true, &p));
  EXPECT_FALSE(uc().drained());
  EXPECT_EQ(send(false).size(), 1u);  // to its end
  EXPECT_TRUE(uc().drained());
  EXPECT_TRUE(send().empty());
  EXPECT_TRUE(uc().failed());  // SQE
  post(WrOp::Send, 1);
  EXPECT_TRUE(send().empty());
  EXPECT_EQ(uc().psn(), Psn(102));
  EXPECT_EQ(flushed().size(), 3u);
  EXPECT_EQ(uc().psn(), Psn(102));
  uc().resume();
  post(WrOp::Send, 1);
  EXPECT_THAT(psns(send()), ElementsAre(102));
}

TEST_F(UcRequesting, AnUnsupportedOperationFailsAndLaterRequestsAreFlushed) {
  for (const WrOp op : {WrOp::Read, WrOp::SendInv, WrOp::FetchAdd}) {
    post(WrOp::Send, 4);
    post(op, 8);
    post(WrOp::Send, 4);
    EXPECT_EQ(send().size(), 1u);
    const auto c = flushed();
    ASSERT_EQ(c.size(), 3u);
    EXPECT_EQ(c[0].status, Status::Success);
    EXPECT_EQ(c[1].status, Status::LocalOperation);
    EXPECT_EQ(c[2].status, Status::Flushed);
    EXPECT_TRUE(sq.empty());
    uc().resume();
  }
}

TEST_F(UcRequesting, AMessageWhoseMemoryIsDeregisteredFails) {
  post(WrOp::Send, 2 * kPmtu);
  RequestPacket p;
  ASSERT_TRUE(uc().next_packet(true, &p));
  EXPECT_TRUE(table.deregister(lkey));
  EXPECT_FALSE(uc().next_packet(true, &p));
  EXPECT_TRUE(uc().failed());
  const auto c = flushed();
  ASSERT_EQ(c.size(), 1u);
  EXPECT_EQ(c[0].status, Status::LocalProtection);
  EXPECT_EQ(uc().psn(), Psn(101));
  uc().resume();
  lkey = table.register_memory(kPd, memory.data(), memory.size(), verbs::kLocalWrite);
  post(WrOp::Send, 2 * kPmtu);
  EXPECT_THAT(operations(send()), ElementsAre(Operation::SendFirst, Operation::SendLast));
}

TEST_F(UcRequesting, LocalOperationsAreExecutedInTheirTurn) {
  const std::uint32_t other = table.register_memory(kPd, memory.data(), 64, verbs::kLocalWrite);
  post(WrOp::Send, 4);
  verbs::SendWr wr = request(WrOp::LocalInv, 0);
  wr.inv_key = other;
  post(wr);
  wr.inv_key = 0;  // an unknown key
  post(wr);
  EXPECT_EQ(send().size(), 1u);
  const auto c = flushed();
  ASSERT_EQ(c.size(), 3u);
  EXPECT_EQ(c[1].status, Status::Success);
  EXPECT_EQ(c[2].status, Status::LocalProtection);
}

TEST_F(UcRequesting, AStopFlushesUnsentRequests) {
  post(WrOp::Send, 2 * kPmtu);
  post(WrOp::Send, 4);
  RequestPacket p;
  ASSERT_TRUE(uc().next_packet(true, &p));
  uc().stop();
  EXPECT_TRUE(send().empty());
  const auto c = flushed();
  ASSERT_EQ(c.size(), 2u);
  EXPECT_EQ(c[0].status, Status::Flushed);
  EXPECT_EQ(c[1].status, Status::Flushed);
  post(WrOp::Send, 4);
  EXPECT_EQ(flushed().size(), 1u);
}

}  // namespace
}  // namespace urnic::ib
