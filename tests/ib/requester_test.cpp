#include "ib/requester.h"

#include <gmock/gmock.h>

#include <array>

#include "ib/requester_bench.h"

namespace urnic::ib {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using verbs::Status;
using verbs::WrOp;

class RequesterSends : public RequesterBench {
 protected:
  std::vector<std::uint8_t> source(std::uint32_t offset, std::uint32_t length) const {
    return {memory.begin() + offset, memory.begin() + offset + length};
  }
};

// proves: IB-6
TEST_F(RequesterSends, TheFirstPacketHasTheProgrammedPsn) {
  qp.sq_psn = Psn(0x123456);
  post(WrOp::Send, 10);
  const auto sent = leave();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].psn(), 0x123456u);
  EXPECT_EQ(sent[0].h.bth.dest_qp, kPeerQpn);
  EXPECT_EQ(sent[0].h.bth.pkey, kDefaultPkey);
}

// proves: IB-7
TEST_F(RequesterSends, PsnsCountPacketsAndReadResponsesAndWrapAround) {
  qp.sq_psn = Psn(0xfffffc);
  post(WrOp::Send, 2 * kPmtu);
  post(WrOp::Read, 3 * kPmtu);
  post(WrOp::Write, 1);
  post_atomic(WrOp::FetchAdd, {}, 0);
  post(WrOp::Send, 0);
  EXPECT_THAT(psns(leave()), ElementsAre(0xfffffc, 0xfffffd, 0xfffffe, 1, 2, 3));
}

// proves: IB-8
TEST_F(RequesterSends, AReadOfNoBytesUsesOnePsn) {
  post(WrOp::Read, 0);
  post(WrOp::Send, 0);
  EXPECT_THAT(psns(leave()), ElementsAre(100, 101));
}

// proves: IB-12, IB-13
TEST_F(RequesterSends, EveryKindOfMessageHasItsOperationsAndLengths) {
  using O = Operation;
  struct Row {
    WrOp op;
    O first, middle, last, only;
  };
  constexpr std::array<Row, 5> kRows = {{
      {WrOp::Send, O::SendFirst, O::SendMiddle, O::SendLast, O::SendOnly},
      {WrOp::SendImm, O::SendFirst, O::SendMiddle, O::SendLastImm, O::SendOnlyImm},
      {WrOp::SendInv, O::SendFirst, O::SendMiddle, O::SendLastInv, O::SendOnlyInv},
      {WrOp::Write, O::WriteFirst, O::WriteMiddle, O::WriteLast, O::WriteOnly},
      {WrOp::WriteImm, O::WriteFirst, O::WriteMiddle, O::WriteLastImm, O::WriteOnlyImm},
  }};
  for (const Row& row : kRows) {
    for (const std::uint32_t n : {0u, 1u, kPmtu - 1, kPmtu, kPmtu + 1, 3 * kPmtu}) {
      post(row.op, n, 77);
      const auto sent = leave();
      const std::size_t packets = n == 0 ? 1 : (n + kPmtu - 1) / kPmtu;
      ASSERT_THAT(sent, SizeIs(packets)) << n;
      std::vector<std::uint8_t> all;
      for (std::size_t k = 0; k < packets; ++k) {
        const bool first = k == 0, last = k + 1 == packets;
        const O want = first && last ? row.only : first ? row.first : last ? row.last : row.middle;
        EXPECT_EQ(sent[k].operation(), want) << n << " packet " << k;
        EXPECT_TRUE(last || sent[k].payload.size() == kPmtu);
        EXPECT_TRUE(packets == 1 || !sent[k].payload.empty());
        EXPECT_EQ(sent[k].ask(), last);
        all.insert(all.end(), sent[k].payload.begin(), sent[k].payload.end());
      }
      EXPECT_EQ(all, source(77, n));
      ack(sent.back().psn());
    }
  }
}

TEST_F(RequesterSends, ExtensionHeadersHaveThePostedValues) {
  verbs::SendWr wr = request(WrOp::WriteImm, kPmtu + 1);
  wr.immediate = 0x55667788;
  wr.flags |= verbs::kSolicited;
  post(wr);
  wr = request(WrOp::SendInv, 4);
  wr.inv_key = 0x99aabb;
  post(wr);
  wr = request(WrOp::CmpSwap, 8);
  wr.atomic.data = 7;
  wr.atomic.compare = 6;
  post(wr);
  wr = request(WrOp::FetchAdd, 8);
  wr.atomic.data = 9;
  post(wr);
  const auto sent = leave();
  ASSERT_THAT(sent, SizeIs(5));
  EXPECT_EQ(sent[0].h.reth.address, 0x10000u);
  EXPECT_EQ(sent[0].h.reth.rkey, kRkey);
  EXPECT_EQ(sent[0].h.reth.length, kPmtu + 1);
  EXPECT_FALSE(sent[0].h.bth.solicited) << "where the receive completes";
  EXPECT_EQ(sent[1].h.immediate, 0x55667788u);
  EXPECT_TRUE(sent[1].h.bth.solicited);
  EXPECT_EQ(sent[2].h.inv_rkey, 0x99aabbu);
  EXPECT_FALSE(sent[2].h.bth.solicited);
  EXPECT_EQ(sent[3].h.atomic.swap_or_add, 7u);
  EXPECT_EQ(sent[3].h.atomic.compare, 6u);
  EXPECT_EQ(sent[3].h.atomic.rkey, kRkey);
  EXPECT_EQ(sent[3].operation(), Operation::CmpSwap);
  EXPECT_EQ(sent[4].h.atomic.swap_or_add, 9u);
  EXPECT_EQ(sent[4].operation(), Operation::FetchAdd);
}

TEST_F(RequesterSends, PayloadIsGatheredFromAllSges) {
  std::array<verbs::Sge, 32> sges;
  std::vector<std::uint8_t> want;
  for (std::uint32_t i = 0; i < sges.size(); ++i) {
    const std::uint32_t offset = i * 1000, length = i % 5 == 3 ? 0 : 3 + i * 2;
    sges[i] = {reinterpret_cast<std::uintptr_t>(memory.data()) + offset, length, lkey};
    want.insert(want.end(), memory.begin() + offset, memory.begin() + offset + length);
  }
  verbs::SendWr wr = request(WrOp::Send, 0);
  wr.sges = sges;
  post(wr);
  std::vector<std::uint8_t> got;
  for (const SentPacket& p : leave()) got.insert(got.end(), p.payload.begin(), p.payload.end());
  EXPECT_EQ(got, want);
}

TEST_F(RequesterSends, InlinePayloadIsCopiedAtPosting) {
  verbs::SendWr wr = request(WrOp::Send, 100, 50);
  wr.flags |= verbs::kInline;
  const auto want = source(50, 100);
  post(wr);
  std::fill(memory.begin(), memory.end(), 0);
  const auto sent = leave();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].payload, want);
}

// proves: IB-14
TEST_F(RequesterSends, TheLongestReadHas2To31BytesAndHalfOfAllPsns) {
  std::uint8_t* const huge = memory.data();  // the memory is neither read nor written here
  const std::uint32_t key = table.register_memory(kPd, huge, 1ull << 31, verbs::kLocalWrite);
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(huge), 1u << 31, key};
  verbs::SendWr wr = request(WrOp::Read, 0);
  wr.sges = {&sge, 1};
  post(wr);
  post(WrOp::Send, 0);
  const auto sent = leave();
  ASSERT_THAT(sent, SizeIs(1)) << "2^23 PSNs of 256 bytes are all there may be (IB-9)";
  EXPECT_EQ(sent[0].h.reth.length, 1u << 31);
  const std::array<verbs::Sge, 2> more{{sge, {sge.addr, 1, key}}};
  wr.sges = more;
  EXPECT_EQ(sq.post(wr), verbs::Post::TooLong);
}

// proves: IB-9
TEST_F(RequesterSends, NoMoreThanHalfOfAllPsnsAreOutstanding) {
  const std::uint32_t key =
      table.register_memory(kPd, memory.data(), 1ull << 31, verbs::kLocalWrite);
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(memory.data()), (1u << 31) - kPmtu * 2,
                       key};
  post(WrOp::Send, 0);
  leave();
  verbs::SendWr wr = request(WrOp::Read, 0);
  wr.sges = {&sge, 1};
  post(wr);
  post(WrOp::Send, 0);
  post(WrOp::Send, 0);
  EXPECT_THAT(operations(leave()), ElementsAre(Operation::ReadRequest, Operation::SendOnly));
  EXPECT_EQ(r().state().outstanding(), 1u << 23);
  EXPECT_THAT(leave(), IsEmpty());
  ack(100);
  EXPECT_THAT(operations(leave()), ElementsAre(Operation::SendOnly));
}

// proves: IB-9
TEST_F(RequesterSends, AReadIsSentOnlyWhenAllItsPsnsFitTheWindow) {
  const std::uint32_t key =
      table.register_memory(kPd, memory.data(), 1ull << 31, verbs::kLocalWrite);
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(memory.data()), 1u << 31, key};
  verbs::SendWr wr = request(WrOp::Read, 0);
  wr.sges = {&sge, 1};
  post(WrOp::Send, 0);
  post(wr);
  EXPECT_THAT(operations(leave()), ElementsAre(Operation::SendOnly));
  ack(100);
  EXPECT_THAT(operations(leave()), ElementsAre(Operation::ReadRequest));
}

// proves: IB-15
TEST_F(RequesterSends, TheLastPacketOfEachMessageRequestsAnAck) {
  rules.ack_every = 1000;
  post(WrOp::Send, 5 * kPmtu);
  post(WrOp::Write, 1);
  std::vector<bool> asked;
  for (const SentPacket& p : leave()) asked.push_back(p.ask());
  EXPECT_THAT(asked, ElementsAre(false, false, false, false, true, true));
}

// proves: IB-15
TEST_F(RequesterSends, LongMessagesRequestAcksInBetweenAndWhenTheWindowIsFull) {
  rules.ack_every = 3;
  rules.window = 8;
  post(WrOp::Write, 20 * kPmtu);
  std::vector<bool> asked;
  for (const SentPacket& p : leave()) asked.push_back(p.ask());
  EXPECT_THAT(asked, ElementsAre(false, false, true, false, false, true, false, true));
  EXPECT_THAT(leave(), IsEmpty());
  ack(103);
  EXPECT_THAT(psns(leave()), ElementsAre(108, 109, 110, 111));
}

// proves: IB-16
TEST_F(RequesterSends, TheReadDepthStallsTheQueueAndNeverReorders) {
  qp.initiator_depth = 2;
  post(WrOp::Read, 1);
  post_atomic(WrOp::FetchAdd, {}, 64);
  post(WrOp::Send, 1);
  post(WrOp::Read, 1);
  post(WrOp::Send, 2);
  EXPECT_THAT(operations(leave()),
              ElementsAre(Operation::ReadRequest, Operation::FetchAdd, Operation::SendOnly));
  const auto one = bytes_of(1, 0xee);
  EXPECT_EQ(data(Operation::ReadResponseOnly, 100, one), Response::ReadData);
  EXPECT_THAT(operations(leave()), ElementsAre(Operation::ReadRequest, Operation::SendOnly));
}

// proves: IB-17
TEST_F(RequesterSends, AFenceWaitsForEarlierReads) {
  post(WrOp::Read, 1);
  verbs::SendWr wr = request(WrOp::Send, 1);
  wr.flags |= verbs::kFence;
  post(wr);
  post(WrOp::Send, 1);
  EXPECT_THAT(operations(leave()), ElementsAre(Operation::ReadRequest));
  data(Operation::ReadResponseOnly, 100, bytes_of(1, 1));
  EXPECT_THAT(leave(), SizeIs(2));
  ack(102);
  wr = request(WrOp::Send, 1);
  wr.flags |= verbs::kFence;
  post(wr);
  EXPECT_THAT(leave(), SizeIs(1)) << "behind Sends it waits for nothing";
}

TEST_F(RequesterSends, WithoutReadDepthAReadFails) {
  qp.initiator_depth = 0;
  post(WrOp::Send, 1);
  post(WrOp::Read, 1);
  post(WrOp::Send, 1);
  EXPECT_THAT(leave(), SizeIs(1));
  EXPECT_FALSE(r().failed()) << "not before what was sent is answered";
  ack(100);
  EXPECT_TRUE(r().failed());
  EXPECT_THAT(statuses(), ElementsAre(Status::Success, Status::LocalOperation, Status::Flushed));
}

TEST_F(RequesterSends, AtomicsThatRoceCannotExpressFail) {
  post_atomic(WrOp::CmpSwap, {.data_mask = 1}, 0);
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_THAT(statuses(), ElementsAre(Status::LocalOperation));
}

TEST_F(RequesterSends, ASwapWithoutCompareFails) {
  post_atomic(WrOp::Swap, {}, 0);
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_THAT(statuses(), ElementsAre(Status::LocalOperation));
}

TEST_F(RequesterSends, ARequestWhoseMemoryIsNotReadableFails) {
  post(WrOp::Send, 1);
  verbs::SendWr wr = request(WrOp::Write, 1);
  const verbs::Sge outside{reinterpret_cast<std::uintptr_t>(memory.data()) + memory.size(), 1,
                           lkey};
  wr.sges = {&outside, 1};
  post(wr);
  EXPECT_THAT(leave(), SizeIs(1));
  EXPECT_FALSE(r().failed());
  ack(100);
  EXPECT_THAT(statuses(), ElementsAre(Status::Success, Status::LocalProtection));
}

TEST_F(RequesterSends, AReadsSinkMustBeWritable) {
  const std::uint32_t key = table.register_memory(kPd, memory.data(), 64, verbs::kLocalRead);
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(memory.data()), 64, key};
  verbs::SendWr wr = request(WrOp::Read, 0);
  wr.sges = {&sge, 1};
  post(wr);
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_THAT(statuses(), ElementsAre(Status::LocalProtection));
}

TEST_F(RequesterSends, ARequestWhoseMemoryIsDeregisteredWhileSendingFailsInItsTurn) {
  rules.window = 2;
  const std::uint32_t key = table.register_memory(kPd, memory.data(), 4096, verbs::kLocalWrite);
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(memory.data()), 4 * kPmtu, key};
  verbs::SendWr wr = request(WrOp::Send, 0);
  wr.sges = {&sge, 1};
  post(wr);
  EXPECT_THAT(leave(), SizeIs(2));
  ASSERT_TRUE(table.deregister(key));
  ack(101);
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_THAT(statuses(), ElementsAre(Status::LocalProtection));
}

TEST_F(RequesterSends, AnInvalidatedRegionStillProvidesRepeatedPackets) {
  const std::uint32_t key = table.register_memory(kPd, memory.data(), 4096, verbs::kLocalWrite);
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(memory.data()), 10, key};
  verbs::SendWr wr = request(WrOp::Send, 0);
  wr.sges = {&sge, 1};
  post(wr);
  const auto first = leave();
  ASSERT_EQ(table.invalidate(key, {kPd, kQpn}), verbs::MemoryTable::Invalidate::Ok);
  pass_until_due();
  const auto again = leave();
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].payload, first[0].payload);
  EXPECT_EQ(again[0].psn(), first[0].psn());
}

// ---- local operations

TEST_F(RequesterSends, InvalidationWaitsForEarlierRequestsAndBindsDoNot) {
  const std::uint32_t region =
      table.register_memory(kPd, memory.data(), 4096, verbs::kLocalWrite | verbs::kBindWindow);
  const std::uint32_t window = table.allocate_window(kPd, verbs::WindowType::Two);
  const verbs::WindowBind bind{reinterpret_cast<std::uintptr_t>(memory.data()), 100, region,
                               (window & ~0xffu) | 0x42, verbs::kRemoteWrite};
  post(WrOp::Send, 1);
  verbs::SendWr wr = request(WrOp::Bind, 0);
  wr.bind = &bind;
  post(wr);
  post(WrOp::Send, 1);
  wr = request(WrOp::LocalInv, 0);
  wr.inv_key = bind.rkey;
  post(wr);
  post(WrOp::Send, 1);
  EXPECT_THAT(psns(leave()), ElementsAre(100, 101)) << "local operations take no PSN";
  EXPECT_NE(table.find(bind.rkey), nullptr);
  EXPECT_THAT(done(), IsEmpty()) << "completions are in the order of posting";
  ack(100);
  EXPECT_THAT(done(), ElementsAre(1, 2));
  EXPECT_THAT(leave(), IsEmpty());
  ack(101);
  EXPECT_THAT(psns(leave()), ElementsAre(102));
  EXPECT_EQ(table.find(bind.rkey), nullptr);
  EXPECT_THAT(done(), ElementsAre(3, 4));
  ack(102);
  EXPECT_THAT(done(), ElementsAre(5));
  EXPECT_TRUE(r().drained());
}

TEST_F(RequesterSends, RepetitionSkipsLocalOperations) {
  const std::uint32_t window = table.allocate_window(kPd, verbs::WindowType::Two);
  const std::uint32_t region =
      table.register_memory(kPd, memory.data(), 4096, verbs::kLocalWrite | verbs::kBindWindow);
  const verbs::WindowBind bind{reinterpret_cast<std::uintptr_t>(memory.data()), 100, region,
                               (window & ~0xffu) | 0x42, verbs::kRemoteWrite};
  post(WrOp::Send, 1);
  verbs::SendWr wr = request(WrOp::Bind, 0);
  wr.bind = &bind;
  post(wr);
  post(WrOp::Send, 1);
  leave();
  pass_until_due();
  EXPECT_THAT(psns(leave()), ElementsAre(100, 101));
  nak(101, NakCode::SequenceError);
  EXPECT_THAT(psns(leave()), ElementsAre(101));
  ack(101);
  EXPECT_THAT(done(), ElementsAre(1, 2, 3));
}

TEST_F(RequesterSends, AnInvalidLocalOperationFailsInItsTurn) {
  post(WrOp::Send, 1);
  verbs::SendWr wr = request(WrOp::LocalInv, 0);
  wr.inv_key = 0x777777;
  post(wr);
  leave();
  ack(100);
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_THAT(statuses(), ElementsAre(Status::Success, Status::LocalProtection));
}

// ---- SQD

TEST_F(RequesterSends, InSqdAMessageThatHasBegunContinuesAndNoneBegins) {
  rules.window = 2;
  post(WrOp::Write, 3 * kPmtu);
  post(WrOp::Send, 1);
  EXPECT_THAT(leave(), SizeIs(2));
  ack(101);
  EXPECT_THAT(operations(leave(100, false)), ElementsAre(Operation::WriteLast));
  EXPECT_FALSE(r().drained());
  pass_until_due();
  EXPECT_THAT(psns(leave(100, false)), ElementsAre(102)) << "and is repeated";
  ack(102);
  EXPECT_TRUE(r().drained());
  EXPECT_THAT(leave(100, false), IsEmpty());
  EXPECT_THAT(psns(leave()), ElementsAre(103)) << "in RTS the next follows without a gap";
}

TEST_F(RequesterSends, AttributesChangedWhenDrainedTakeEffect) {
  qp.ack_timeout = 5;
  post(WrOp::Send, 1);
  leave();
  EXPECT_EQ(r().due(), now + ack_timeout(5));
  ack(100);
  qp.ack_timeout = 12;
  qp.retry_count = 0;
  r().attributes_changed();
  post(WrOp::Send, 1);
  leave();
  EXPECT_EQ(r().due(), now + ack_timeout(12));
  pass_until_due();
  EXPECT_TRUE(r().failed());
}

// ---- the end

TEST_F(RequesterSends, AStoppedRequesterFlushesPostedAndLaterRequests) {
  post(WrOp::Send, 1);
  post(WrOp::Send, 1);
  leave(1);
  r().stop();
  EXPECT_THAT(leave(), IsEmpty());
  EXPECT_THAT(statuses(), ElementsAre(Status::Flushed, Status::Flushed));
  post(WrOp::Send, 1);
  EXPECT_THAT(statuses(), ElementsAre(Status::Flushed));
  EXPECT_TRUE(r().due().is_never());
}

// A bind is executed when its turn comes, and completes after everything before it: never, here.
// proves: IB-117
TEST_F(RequesterSends, NothingSucceedsAfterAFlushedRequest) {
  const std::uint32_t region =
      table.register_memory(kPd, memory.data(), 4096, verbs::kLocalWrite | verbs::kBindWindow);
  const verbs::WindowBind bind{reinterpret_cast<std::uintptr_t>(memory.data()), 100, region,
                               (table.allocate_window(kPd, verbs::WindowType::Two) & ~0xffu) | 0x42,
                               verbs::kRemoteWrite};
  post(WrOp::Send, 1);
  verbs::SendWr wr = request(WrOp::Bind, 0);
  wr.bind = &bind;
  post(wr);
  post(WrOp::Send, 1);
  leave();
  r().stop();
  EXPECT_THAT(statuses(), ElementsAre(Status::Flushed, Status::Flushed, Status::Flushed));
}

TEST_F(RequesterSends, UnsignaledRequestsReportACompletionOnlyIfTheyFail) {
  verbs::SendWr wr = request(WrOp::Send, 1);
  wr.flags = 0;
  post(wr);
  post(WrOp::Send, 1);
  leave();
  ack(101);
  EXPECT_THAT(done(), ElementsAre(2));
  wr = request(WrOp::Send, 1);
  wr.flags = 0;
  post(wr);
  leave();
  nak(102, NakCode::RemoteAccess);
  EXPECT_THAT(statuses(), ElementsAre(Status::RemoteAccess));
}

}  // namespace
}  // namespace urnic::ib
