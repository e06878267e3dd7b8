// Refused requests and their NAKs: the checks in their order.
#include "ib/judge_request.h"

#include "responder_fixture.h"

namespace urnic::ib {
namespace {

using test::Bytes;
using test::counting;

struct RequestCheck : test::ResponderFixture {};

constexpr Operation kSends[] = {Operation::SendMiddle, Operation::SendLast, Operation::SendLastImm,
                                Operation::SendLastInv};
constexpr Operation kWrites[] = {Operation::WriteMiddle, Operation::WriteLast,
                                 Operation::WriteLastImm};

// proves: IB-18
TEST_F(RequestCheck, AMiddleOrLastAtTheStartIsAnInvalidRequest) {
  post(1);
  for (const Operation o : kSends) {
    expect_refused(packet(o, psn, counting(kPmtu)), NakCode::InvalidRequest);
    again();
  }
  for (const Operation o : kWrites) {
    expect_refused(packet(o, psn, counting(kPmtu)), NakCode::InvalidRequest);
    again();
  }
}

// proves: IB-18
TEST_F(RequestCheck, AMessageMustNotBeInterruptedOrChangeItsKind) {
  post(1);
  const auto begin = [this](bool send) {
    again();
    EXPECT_EQ(next(send ? packet(Operation::SendFirst, psn, counting(kPmtu))
                        : write(Operation::WriteFirst, psn, 0, 600, counting(kPmtu))),
              Verdict::Accept);
  };
  for (const bool send : {true, false}) {
    begin(send);
    expect_refused(packet(Operation::SendOnly, psn), NakCode::InvalidRequest);
    begin(send);
    expect_refused(packet(Operation::SendFirst, psn, counting(kPmtu)), NakCode::InvalidRequest);
    begin(send);
    expect_refused(write_only(psn, 0, counting(4)), NakCode::InvalidRequest);
    begin(send);
    expect_refused(read(psn, 0, 10), NakCode::InvalidRequest);
    begin(send);
    expect_refused(fetch_add(psn, 0, 1), NakCode::InvalidRequest);
  }
  begin(true);
  expect_refused(packet(Operation::WriteMiddle, psn, counting(kPmtu)), NakCode::InvalidRequest);
  begin(false);
  expect_refused(packet(Operation::SendLast, psn, counting(4)), NakCode::InvalidRequest);
}

// proves: IB-19
TEST_F(RequestCheck, AnOperationThatIsNotEnabledIsAnInvalidRequest) {
  qp.access = verbs::kRemoteRead | verbs::kRemoteAtomic;
  expect_refused(write_only(psn, 0, counting(4)), NakCode::InvalidRequest);
  again();
  expect_refused(write_only(psn, 0, {}), NakCode::InvalidRequest);
  again();
  qp.access = verbs::kRemoteWrite | verbs::kRemoteAtomic;
  expect_refused(read(psn, 0, 4), NakCode::InvalidRequest);
  again();
  qp.access = verbs::kRemoteWrite | verbs::kRemoteRead;
  expect_refused(fetch_add(psn, 0, 1), NakCode::InvalidRequest);
}

// proves: IB-20
TEST_F(RequestCheck, AReservedOpcodeIsAnInvalidRequest) {
  for (const unsigned byte : {0x15u, 0x18u, 0x1bu, 0x1cu, 0x1du, 0x1fu}) {
    expect_refused(packet(static_cast<Operation>(byte), psn), NakCode::InvalidRequest);
    again();
  }
}

// proves: IB-21
TEST_F(RequestCheck, APadOnFirstOrMiddleIsAnInvalidRequest) {
  post(1);
  for (const bool send : {true, false}) {
    ParsedPacket first = send ? packet(Operation::SendFirst, psn, counting(kPmtu))
                              : write(Operation::WriteFirst, psn, 0, 600, counting(kPmtu));
    ParsedPacket padded = first;
    padded.header.bth.pad = 1;
    expect_refused(padded, NakCode::InvalidRequest);
    again();
    EXPECT_EQ(next(first), Verdict::Accept);
    ParsedPacket middle =
        packet(send ? Operation::SendMiddle : Operation::WriteMiddle, psn, counting(kPmtu));
    middle.header.bth.pad = 2;
    expect_refused(middle, NakCode::InvalidRequest);
    again();
  }
}

// proves: IB-22
TEST_F(RequestCheck, MoreReadsAndAtomicsThanResourcesAreAnInvalidRequest) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(next(i % 2 == 0 ? read(psn, 0, 8) : fetch_add(psn, 8, 1)), Verdict::Accept);
  }
  EXPECT_EQ(verdict(read(psn, 0, 8)), Verdict::InvalidRequest);
  const auto all = responses();
  ASSERT_EQ(all.size(), 5u);  // the four that waited come first
  EXPECT_TRUE(all[4].is_nak(NakCode::InvalidRequest));
  EXPECT_EQ(all[4].psn, psn);
  again();
  // READs that are answered make room.
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(next(read(psn, 0, 8)), Verdict::Accept);
    EXPECT_EQ(responses().size(), 1u);
  }
  again();
  qp.responder_depth = 0;
  expect_refused(fetch_add(psn, 0, 1), NakCode::InvalidRequest);
}

// proves: IB-23
TEST_F(RequestCheck, AWrongKeyRangeRightOrDomainIsARemoteAccessError) {
  const auto all_three = [this](std::uint32_t key, std::uint64_t address) {
    ParsedPacket w = write_only(psn, 0, counting(8));
    w.header.reth = {address, key, 8};
    expect_refused(w, NakCode::RemoteAccess);
    again();
    ParsedPacket r = read(psn, 0, 8);
    r.header.reth = {address, key, 8};
    expect_refused(r, NakCode::RemoteAccess);
    again();
    ParsedPacket a = fetch_add(psn, 0, 1);
    a.header.atomic = {address, key, 1, 0};
    expect_refused(a, NakCode::RemoteAccess);
    again();
  };
  const Bytes before(target(), target() + kBytes);
  all_three(rkey ^ 0x5a, kTarget);         // no such key
  all_three(rkey, kTarget - 8);            // before the region
  all_three(rkey, kTarget + kBytes - 4);   // beyond its end
  all_three(rkey, ~std::uint64_t{0} - 3);  // around the end of all addresses
  all_three(lkey, 0);                      // no remote right
  const std::uint32_t other = table.register_memory(kPd + 1, {target(), kTarget, kBytes}, kAll);
  all_three(other, kTarget);  // another protection domain
  EXPECT_EQ(before, Bytes(target(), target() + kBytes));
}

// proves: IB-24
TEST_F(RequestCheck, AnAccessOfNoBytesSucceedsWithAnyKey) {
  ParsedPacket w = write_only(psn, 0, {});
  w.header.reth = {0, 0xdeadbeef, 0};
  EXPECT_EQ(next(w), Verdict::Accept);
  ParsedPacket r = read(psn, 0, 0);
  r.header.reth = {0, 0xdeadbeef, 0};
  EXPECT_EQ(next(r), Verdict::Accept);
  post(1);
  w = write(Operation::WriteOnlyImm, psn, 0, 0, {});
  w.header.reth.rkey = 0xdeadbeef;
  EXPECT_EQ(next(w), Verdict::Accept);
  EXPECT_EQ(completions.size(), 1u);
  const auto all = responses();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].operation, Operation::ReadResponseOnly);
  EXPECT_TRUE(all[1].is_ack());
}

// proves: IB-26
TEST_F(RequestCheck, ASendLongerThanItsReceiveIsAnInvalidRequestAndALocalLengthError) {
  post(1, 100);
  post(2, 300);
  expect_refused(packet(Operation::SendOnly, psn, counting(101)), NakCode::InvalidRequest);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].wr_id, 1u);
  EXPECT_TRUE(completions[0].receive);
  EXPECT_EQ(completions[0].status, verbs::Status::LocalLength);
  EXPECT_EQ(rq.posted(), 1u);
  again();
  EXPECT_EQ(next(packet(Operation::SendFirst, psn, counting(kPmtu))), Verdict::Accept);
  expect_refused(packet(Operation::SendLast, psn, counting(45)), NakCode::InvalidRequest);
  ASSERT_EQ(completions.size(), 2u);
  EXPECT_EQ(completions[1].status, verbs::Status::LocalLength);
  again();
  post(3, 300);
  EXPECT_EQ(next(packet(Operation::SendFirst, psn, counting(kPmtu))), Verdict::Accept);
  EXPECT_EQ(next(packet(Operation::SendLast, psn, counting(44))), Verdict::Accept);
  EXPECT_EQ(completions[2].byte_len, 300u);
}

// proves: IB-27
TEST_F(RequestCheck, APayloadTooLongOrTooShortForItsOpcodeIsAnInvalidRequest) {
  post(1);
  for (const std::uint32_t n : {0u, kPmtu - 4, kPmtu + 4}) {
    expect_refused(packet(Operation::SendFirst, psn, counting(n)), NakCode::InvalidRequest);
    again();
    expect_refused(write(Operation::WriteFirst, psn, 0, 600, counting(n)), NakCode::InvalidRequest);
    again();
  }
  for (const std::uint32_t n : {0u, kPmtu + 1}) {
    EXPECT_EQ(next(packet(Operation::SendFirst, psn, counting(kPmtu))), Verdict::Accept);
    expect_refused(packet(Operation::SendLast, psn, counting(n)), NakCode::InvalidRequest);
    again();
    const std::uint32_t length = kPmtu + n;
    EXPECT_EQ(next(write(Operation::WriteFirst, psn, 0, length, counting(kPmtu))), Verdict::Accept);
    expect_refused(packet(Operation::WriteLast, psn, counting(n)), NakCode::InvalidRequest);
    again();
  }
  expect_refused(packet(Operation::SendOnly, psn, counting(kPmtu + 1)), NakCode::InvalidRequest);
  again();
  expect_refused(write_only(psn, 0, counting(kPmtu + 1)), NakCode::InvalidRequest);
  again();
  ParsedPacket r = packet(Operation::ReadRequest, psn, counting(4));
  r.header.reth = {kTarget, rkey, 4};
  expect_refused(r, NakCode::InvalidRequest);
}

TEST_F(RequestCheck, AWriteMustHaveItsAnnouncedLength) {
  expect_refused(write(Operation::WriteOnly, psn, 0, 7, counting(8)), NakCode::InvalidRequest);
  again();
  expect_refused(write(Operation::WriteOnly, psn, 0, 9, counting(8)), NakCode::InvalidRequest);
  again();
  EXPECT_EQ(next(write(Operation::WriteFirst, psn, 0, 300, counting(kPmtu))), Verdict::Accept);
  expect_refused(packet(Operation::WriteLast, psn, counting(45)), NakCode::InvalidRequest);
}

TEST_F(RequestCheck, AnAtomicMustBeAlignedToEightBytes) {
  expect_refused(fetch_add(psn, 4, 1), NakCode::InvalidRequest);
}

// proves: IB-28
TEST_F(RequestCheck, AReadOfMoreThanTheLargestMessageIsAnInvalidRequest) {
  // Its memory is never touched.
  constexpr std::uint64_t kHuge = 3ull << 30;
  const std::uint32_t huge = table.register_memory(kPd, {target(), 0, kHuge}, kAll);
  ParsedPacket r = read(psn, 0, 0);
  r.header.reth = {0, huge, kMaxMessageBytes + 1};
  ASSERT_EQ(judge_request(responder().state(), r).verdict, Verdict::InvalidRequest);
  expect_refused(r, NakCode::InvalidRequest);
  again();
  r.header.reth.length = kMaxMessageBytes;
  EXPECT_EQ(verdict(r), Verdict::Accept);
  EXPECT_EQ(responder().state().expected, psn + kPsnWindow);
}

// proves: IB-29
TEST_F(RequestCheck, AReceiveThatCannotBeWrittenIsARemoteOperationalError) {
  const verbs::Sge sges[] = {{0, 100, lkey ^ 1}};
  rq.post({9, sges});
  expect_refused(packet(Operation::SendOnly, psn, counting(8)), NakCode::RemoteOperational);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].wr_id, 9u);
  EXPECT_EQ(completions[0].status, verbs::Status::LocalProtection);
  again();
  // Two pieces, the second of which is not writable; the first is not written.
  post(1);
  const verbs::Sge two[] = {{0, 4, lkey}, {0, 100, rkey ^ 1}};
  rq.pop();
  rq.post({8, two});
  expect_refused(packet(Operation::SendOnly, psn, counting(8)), NakCode::RemoteOperational);
  EXPECT_EQ(Bytes(inbox(), inbox() + 8), Bytes(8, 0));
}

// proves: IB-30
TEST_F(RequestCheck, AWriteBeyondTheRegionIsRefusedAtThePacketThatLeavesIt) {
  const std::uint64_t offset = kBytes - 2 * kPmtu;
  EXPECT_EQ(next(write(Operation::WriteFirst, psn, offset, 3 * kPmtu, counting(kPmtu))),
            Verdict::Accept);
  EXPECT_EQ(next(packet(Operation::WriteMiddle, psn, counting(kPmtu, 9))), Verdict::Accept);
  EXPECT_EQ(Bytes(target() + offset + kPmtu, target() + kBytes), counting(kPmtu, 9));
  expect_refused(packet(Operation::WriteLast, psn, counting(kPmtu)), NakCode::RemoteAccess);
}

// proves: IB-31
TEST_F(RequestCheck, AFailureDoesNotChangeTheExpectedPsn) {
  const Psn expected = psn;
  const auto unmoved = [&](const ParsedPacket& p, Verdict want) {
    again();
    EXPECT_EQ(verdict(p), want);
    EXPECT_EQ(responder().state().expected, expected);
    EXPECT_EQ(responder().state().msn, Msn(0));
    responses();
    EXPECT_EQ(responder().state().expected, expected);
  };
  unmoved(packet(Operation::SendMiddle, psn, counting(kPmtu)), Verdict::InvalidRequest);
  unmoved(packet(Operation::SendOnly, psn), Verdict::NotReady);
  unmoved(packet(Operation::SendOnly, psn + 1), Verdict::OutOfSequence);
  unmoved(packet(Operation::SendOnly, psn - 1), Verdict::Duplicate);
  unmoved(read(psn, kBytes, 1), Verdict::RemoteAccess);
  const verbs::Sge sges[] = {{0, 100, lkey ^ 1}};
  rq.post({9, sges});
  unmoved(packet(Operation::SendOnly, psn, counting(8)), Verdict::Operational);
}

// The first check that fails decides.
TEST_F(RequestCheck, TheFirstCheckThatFailsDecides) {
  // Sequence before support, support before readiness.
  ParsedPacket p = write(Operation::WriteLastImm, psn, 0, 0, counting(4));
  EXPECT_EQ(verdict(p), Verdict::InvalidRequest);
  again();
  // Readiness before the key.
  p = write(Operation::WriteOnlyImm, psn, 0, 4, counting(4));
  p.header.reth.rkey ^= 1;
  EXPECT_EQ(verdict(p), Verdict::NotReady);
  again();
  // The key before the length.
  p = write(Operation::WriteOnly, psn, 0, kPmtu + 4, counting(kPmtu + 4));
  p.header.reth.rkey ^= 1;
  EXPECT_EQ(verdict(p), Verdict::RemoteAccess);
  again();
  // The length before the receive's memory.
  const verbs::Sge sges[] = {{0, 4, lkey ^ 1}};
  rq.post({9, sges});
  EXPECT_EQ(verdict(packet(Operation::SendOnly, psn, counting(8))), Verdict::InvalidRequest);
}

}  // namespace
}  // namespace urnic::ib
