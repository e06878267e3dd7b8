// Packets that a UC responder accepts or drops, and where a new message begins.
#include "base/rng.h"
#include "ib/check.h"
#include "ib/uc_fixture.h"
#include "roce_capture.h"

namespace urnic::ib {
namespace {

using test::Bytes;
using test::counting;
using verbs::Status;

class UcResponding : public test::UcFixture {};

// proves: IB-92
TEST_F(UcResponding, AFirstOrOnlyIsAcceptedAtAnyPsnAndTheNextPacketMustFollowIt) {
  post(1), post(2), post(3);
  expect_delivered_to(1, 0x123456);
  const Bytes a = counting(kPmtu), b = counting(9, 50);
  EXPECT_EQ(come(send(Operation::SendFirst, 0xffffff, a)), Verdict::Accept);
  EXPECT_EQ(come(send(Operation::SendLast, 0, b)), Verdict::Accept);
  EXPECT_TRUE(holds(2, a));
  ASSERT_EQ(completions.size(), 2u);
  EXPECT_EQ(completions[1].byte_len, kPmtu + 9);
  expect_delivered_to(3, 0xffffff);
  EXPECT_EQ(uc->counters().out_of_sequence, 0u);
}

// proves: IB-93
TEST_F(UcResponding, AMessageWithoutItsMiddleIsDroppedAndTheNextIsDelivered) {
  post(1);
  EXPECT_EQ(come(send(Operation::SendFirst, 5, counting(kPmtu))), Verdict::Accept);
  EXPECT_EQ(come(send(Operation::SendMiddle, 7, counting(kPmtu))), Verdict::OutOfSequence);
  // The packet that was expected does not help any more.
  EXPECT_EQ(come(send(Operation::SendMiddle, 6, counting(kPmtu))), Verdict::OutOfSequence);
  EXPECT_EQ(come(send(Operation::SendLast, 8, counting(4))), Verdict::OutOfSequence);
  EXPECT_TRUE(completions.empty());
  EXPECT_EQ(uc->counters().lost_messages, 1u);
  EXPECT_EQ(uc->counters().out_of_sequence, 3u);
  expect_delivered_to(1, 9);
}

TEST_F(UcResponding, AMessageWithoutItsFirstIsDropped) {
  post(1);
  for (const Operation o : {Operation::SendMiddle, Operation::SendLast, Operation::WriteMiddle,
                            Operation::WriteLast, Operation::SendLastImm}) {
    EXPECT_EQ(come(send(o, qp.rq_psn.value(), counting(kPmtu))), Verdict::OutOfSequence);
  }
  EXPECT_EQ(uc->counters().lost_messages, 0u);
  expect_delivered_to(1, 9);
}

// proves: IB-94
TEST_F(UcResponding, AFirstWithinAMessageBeginsANewOne) {
  post(1);
  EXPECT_EQ(come(send(Operation::SendFirst, 5, counting(kPmtu))), Verdict::Accept);
  const Bytes a = counting(kPmtu, 90), b = counting(8, 91);
  EXPECT_EQ(come(send(Operation::SendFirst, 6, a)), Verdict::Accept);
  EXPECT_EQ(come(send(Operation::SendLast, 7, b)), Verdict::Accept);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].byte_len, kPmtu + 8);
  EXPECT_TRUE(holds(1, a));
  EXPECT_EQ(uc->counters().lost_messages, 1u);
}

// proves: IB-94
TEST_F(UcResponding, AChangeOfOperationDropsTheMessage) {
  post(1);
  const Bytes before(written(0, 4).begin(), written(0, 4).end());
  EXPECT_EQ(come(send(Operation::SendFirst, 5, counting(kPmtu))), Verdict::Accept);
  EXPECT_EQ(come(send(Operation::WriteLast, 6, counting(4))), Verdict::OutOfSequence);
  EXPECT_EQ(come(send(Operation::SendLast, 6, counting(4))), Verdict::OutOfSequence);
  EXPECT_TRUE(wrote(0, before));
  EXPECT_TRUE(completions.empty());
  expect_delivered_to(1, 6);
}

// proves: IB-95
TEST_F(UcResponding, WithoutAReceiveASendIsDroppedAndAReceivePostedLaterServesTheNext) {
  EXPECT_EQ(come(send(Operation::SendOnly, 1, counting(4))), Verdict::NotReady);
  EXPECT_EQ(come(send(Operation::SendFirst, 2, counting(kPmtu))), Verdict::NotReady);
  post(1);
  EXPECT_EQ(come(send(Operation::SendLast, 3, counting(4))), Verdict::OutOfSequence);
  EXPECT_EQ(uc->counters().refused, 2u);
  expect_delivered_to(1, 4);
}

// proves: IB-95
TEST_F(UcResponding, ASendTooLongForItsReceiveIsDroppedAndTheReceiveServesTheNext) {
  post(1, 300);
  EXPECT_EQ(come(send(Operation::SendFirst, 1, counting(kPmtu))), Verdict::Accept);
  EXPECT_EQ(come(send(Operation::SendLast, 2, counting(45))), Verdict::NotReady);
  EXPECT_EQ(come(send(Operation::SendLast, 2, counting(4))), Verdict::OutOfSequence);
  EXPECT_TRUE(completions.empty());
  EXPECT_FALSE(uc->failed());
  EXPECT_EQ(come(send(Operation::SendFirst, 3, counting(kPmtu))), Verdict::Accept);
  EXPECT_EQ(come(send(Operation::SendLast, 4, counting(44))), Verdict::Accept);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].byte_len, 300u);
}

// proves: IB-95
TEST_F(UcResponding, AWriteWithImmediateNeedsItsReceiveAtItsLastPacket) {
  ParsedPacket p = writing(Operation::WriteOnlyImm, 1, 16, 40, counting(40, 5));
  p.header.immediate = 0x01020304;
  EXPECT_EQ(come(p), Verdict::NotReady);
  post(1);
  EXPECT_EQ(come(p), Verdict::Accept);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].op, verbs::WrOp::WriteImm);
  EXPECT_TRUE(completions[0].with_immediate);
  EXPECT_EQ(completions[0].immediate, 0x01020304u);
  EXPECT_TRUE(wrote(16, counting(40, 5)));
}

// proves: IB-96
TEST_F(UcResponding, AWriteNeedsAKeyItsRangeAndThePermission) {
  const Bytes before(written(0, kBytes).begin(), written(0, kBytes).end());
  ParsedPacket p = writing(Operation::WriteOnly, 1, 0, 8, counting(8, 99));
  p.header.reth.rkey ^= 1;
  EXPECT_EQ(come(p), Verdict::RemoteAccess);
  EXPECT_EQ(come(writing(Operation::WriteOnly, 2, kBytes - 4, 8, counting(8, 99))),
            Verdict::RemoteAccess);
  p = writing(Operation::WriteOnly, 3, 0, 8, counting(8, 99));
  p.header.reth.address = ~std::uint64_t{0} - 3;
  EXPECT_EQ(come(p), Verdict::RemoteAccess);
  qp.access = 0;
  EXPECT_EQ(come(writing(Operation::WriteOnly, 4, 0, 8, counting(8, 99))), Verdict::InvalidRequest);
  EXPECT_TRUE(wrote(0, before));
  EXPECT_FALSE(uc->failed());
  qp.access = verbs::kRemoteWrite;
  EXPECT_EQ(come(writing(Operation::WriteOnly, 4, 0, 8, counting(8, 99))), Verdict::Accept);
  EXPECT_TRUE(wrote(0, counting(8, 99)));
}

// proves: IB-96
TEST_F(UcResponding, AWriteOfNoBytesSucceedsWithAnyKey) {
  post(1);
  ParsedPacket p = writing(Operation::WriteOnly, 1, 0, 0, {});
  p.header.reth.rkey = 0;
  EXPECT_EQ(come(p), Verdict::Accept);
  p = writing(Operation::WriteOnlyImm, 2, 0, 0, {});
  p.header.reth.rkey = 0;
  EXPECT_EQ(come(p), Verdict::Accept);
  EXPECT_EQ(completions.size(), 1u);
}

// proves: IB-96
TEST_F(UcResponding, AKeyInvalidatedWithinAWriteDropsTheRest) {
  EXPECT_EQ(come(writing(Operation::WriteFirst, 1, 0, 2 * kPmtu, counting(kPmtu, 7))),
            Verdict::Accept);
  EXPECT_TRUE(table.deregister(rkey));
  EXPECT_EQ(come(send(Operation::WriteLast, 2, counting(kPmtu, 7))), Verdict::RemoteAccess);
  EXPECT_EQ(uc->counters().lost_messages, 1u);
}

// proves: IB-97
TEST_F(UcResponding, APayloadOfTheWrongLengthIsDropped) {
  post(1);
  const auto dropped = [this](Operation o, std::size_t n) {
    return come(send(o, 1, counting(n))) == Verdict::InvalidRequest;
  };
  EXPECT_TRUE(dropped(Operation::SendFirst, kPmtu - 4));
  EXPECT_TRUE(dropped(Operation::SendFirst, kPmtu + 4));
  EXPECT_TRUE(dropped(Operation::SendOnly, kPmtu + 1));
  for (const auto& [o, n] :
       {std::pair{Operation::SendMiddle, kPmtu - 1}, std::pair{Operation::SendLast, 0u},
        std::pair{Operation::SendLast, kPmtu + 1}}) {
    EXPECT_EQ(come(send(Operation::SendFirst, 0, counting(kPmtu))), Verdict::Accept);
    EXPECT_TRUE(dropped(o, n));
  }
  EXPECT_EQ(uc->counters().lost_messages, 3u);
  expect_delivered_to(1, 9);
}

// proves: IB-97
TEST_F(UcResponding, APadWithinAMessageIsDropped) {
  post(1);
  ParsedPacket p = send(Operation::SendFirst, 1, counting(kPmtu));
  p.header.bth.pad = 1;
  EXPECT_EQ(come(p), Verdict::InvalidRequest);
  EXPECT_EQ(come(send(Operation::SendFirst, 1, counting(kPmtu))), Verdict::Accept);
  p = send(Operation::SendMiddle, 2, counting(kPmtu));
  p.header.bth.pad = 2;
  EXPECT_EQ(come(p), Verdict::InvalidRequest);
}

// proves: IB-97
TEST_F(UcResponding, AWriteHasExactlyTheBytesItAnnounced) {
  EXPECT_EQ(come(writing(Operation::WriteOnly, 1, 0, 9, counting(8))), Verdict::InvalidRequest);
  EXPECT_EQ(come(writing(Operation::WriteOnly, 1, 0, 7, counting(8))), Verdict::InvalidRequest);
  EXPECT_EQ(come(writing(Operation::WriteFirst, 1, 0, kPmtu + 8, counting(kPmtu))),
            Verdict::Accept);
  EXPECT_EQ(come(send(Operation::WriteLast, 2, counting(7))), Verdict::InvalidRequest);
  const std::uint32_t more = kMaxMessageBytes + 1;
  EXPECT_EQ(come(writing(Operation::WriteFirst, 3, 0, more, counting(kPmtu))),
            Verdict::InvalidRequest);
}

// proves: IB-99
TEST_F(UcResponding, NoOpcodeOfUcOrUdIsAResponse) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const Opcode o(static_cast<std::uint8_t>(byte));
    if (o.service() != ServiceType::Uc && o.service() != ServiceType::Ud) continue;
    EXPECT_FALSE(row(o).response()) << byte;
    PacketHeader h;
    h.bth.opcode = o;
    qp.service = o.service();
    const auto half = check(h, qp.av.remote, &qp, verbs::QpState::Rts);
    ASSERT_TRUE(half.ok());
    EXPECT_EQ(*half, Half::Responder);
  }
}

TEST_F(UcResponding, AnOperationThatUcDoesNotHaveIsDropped) {
  post(1);
  EXPECT_EQ(come(send(Operation::SendFirst, 1, counting(kPmtu))), Verdict::Accept);
  for (unsigned o = 0x0c; o < 0x20; ++o) {
    EXPECT_EQ(come(send(static_cast<Operation>(o), 2, counting(8))), Verdict::InvalidRequest);
  }
  EXPECT_EQ(come(send(Operation::SendLast, 2, counting(4))), Verdict::Accept);
  EXPECT_EQ(completions.size(), 1u);
}

TEST_F(UcResponding, AReceiveThatCannotBeWrittenFailsAndEndsTheQueuePair) {
  post(1), post(2);
  EXPECT_TRUE(table.deregister(lkey));
  EXPECT_EQ(come(send(Operation::SendOnly, 1, counting(8))), Verdict::Operational);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].status, Status::LocalProtection);
  EXPECT_EQ(completions[0].wr_id, 1u);
  EXPECT_TRUE(uc->failed());
  EXPECT_EQ(come(send(Operation::SendOnly, 2, counting(8))), Verdict::Ignored);
  EXPECT_EQ(rq.posted(), 1u);
}

TEST_F(UcResponding, EachPacketOfAWriteIsPlacedAfterTheOneBefore) {
  const Bytes all = counting(2 * kPmtu + 9, 77);
  const auto at = [&all](std::size_t i) { return all.begin() + static_cast<std::ptrdiff_t>(i); };
  post(1);
  EXPECT_EQ(come(writing(Operation::WriteFirst, 1, 512, 2 * kPmtu + 9, Bytes(at(0), at(kPmtu)))),
            Verdict::Accept);
  EXPECT_EQ(come(send(Operation::WriteMiddle, 2, Bytes(at(kPmtu), at(2 * kPmtu)))),
            Verdict::Accept);
  ParsedPacket last = send(Operation::WriteLastImm, 3, Bytes(at(2 * kPmtu), all.end()));
  last.header.bth.solicited = true;
  EXPECT_EQ(come(last), Verdict::Accept);
  EXPECT_TRUE(wrote(512, all));
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_TRUE(completions[0].solicited);
  EXPECT_EQ(uc->counters().requests, 3u);
}

// proves: IB-95
TEST_F(UcResponding, AReceiveOfASharedQueueStaysWithTheQueuePairWhoseMessageWasLost) {
  verbs::SharedReceiveQueue shared(kPd + 1, 8, 1);  // in another protection domain
  const std::uint32_t theirs =
      table.register_memory(kPd + 1, {inbox(), 0, kBytes}, verbs::kLocalWrite);
  BufferPool pool;
  verbs::ReceiveQueue mine(&shared, &pool, 0);
  uc = std::make_unique<UcResponder>(qp, &mine, &table);
  EXPECT_EQ(come(send(Operation::SendOnly, 1, counting(4))), Verdict::NotReady);
  for (std::uint64_t i = 1; i < 3; ++i) {
    const verbs::Sge sge{1000 * i, 500, theirs};
    shared.post({i, {&sge, 1}});
  }
  EXPECT_EQ(come(send(Operation::SendFirst, 2, counting(kPmtu))), Verdict::Accept);
  EXPECT_EQ(shared.available(), 1u);
  EXPECT_EQ(come(send(Operation::SendLast, 4, counting(4))), Verdict::OutOfSequence);
  expect_delivered_to(1, 5);
  EXPECT_EQ(shared.available(), 1u);
  uc.reset();
}

// Any packets with any PSN: only whole messages are delivered, and only the region is written.
TEST_F(UcResponding, AHostilePeerDeliversOnlyWholeMessages) {
  Rng rng(91);
  constexpr std::uint32_t kLengths[] = {0, 1, 4, kPmtu - 1, kPmtu, kPmtu + 4, 4096};
  std::uint32_t at = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (rq.posted() == 0) post(1 + rng.below(6));
    const auto o = static_cast<Operation>(rng.below(32));
    ParsedPacket p = send(o, at, Bytes(kLengths[rng.below(std::size(kLengths))], 0xee));
    const Bytes bytes(p.payload.begin(), p.payload.end());
    p.payload = bytes;
    payloads.clear();  // otherwise those of 100 000 packets would be kept
    p.header.bth.pad = static_cast<std::uint8_t>(rng.below(4));
    p.header.reth = {kTarget + rng.below(kBytes + 64), rng.chance(0.1) ? rkey + 1 : rkey,
                     rng.chance(0.5) ? static_cast<std::uint32_t>(bytes.size())
                                     : static_cast<std::uint32_t>(rng.next())};
    at = rng.chance(0.8) ? at + 1 : static_cast<std::uint32_t>(rng.next()) & 0xffffff;
    const std::size_t before = completions.size();
    const Verdict v = come(p);
    EXPECT_NE(v, Verdict::Duplicate);
    if (completions.size() != before) {
      EXPECT_EQ(v, Verdict::Accept);
      EXPECT_EQ(completions.back().status, Status::Success);
      EXPECT_LE(completions.back().byte_len, kBytes);
    }
  }
  EXPECT_FALSE(uc->failed());
  EXPECT_GT(completions.size(), 100u);
}

}  // namespace
}  // namespace urnic::ib
