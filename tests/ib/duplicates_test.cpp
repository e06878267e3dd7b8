// Duplicates: executed once and answered twice.
#include "responder_fixture.h"

namespace urnic::ib {
namespace {

using test::Bytes;
using test::counting;
using test::Response;

struct Duplicates : test::ResponderFixture {
  // A duplicate must not change this state.
  void expect_untouched(const ParsedPacket& p) {
    const Psn expected = responder().state().expected;
    const Msn msn = responder().state().msn;
    const Family open = responder().state().message.family;
    EXPECT_EQ(verdict(p), Verdict::Duplicate);
    EXPECT_EQ(responder().state().expected, expected);
    EXPECT_EQ(responder().state().msn, msn);
    EXPECT_EQ(responder().state().message.family, open);
  }
  std::uint64_t& number(std::uint64_t offset) {
    return *reinterpret_cast<std::uint64_t*>(target() + offset);
  }
};

// proves: IB-42, IB-123
TEST_F(Duplicates, ASendOrWriteIsNotExecutedAgainAndTheLastCompletedIsAcknowledged) {
  post(1);
  post(2);
  const ParsedPacket send = packet(Operation::SendOnly, psn, counting(8));
  next(send);
  const ParsedPacket written_once = write_only(psn, 0, counting(8));
  next(written_once);
  const ParsedPacket imm = write(Operation::WriteOnlyImm, psn, 64, 4, counting(4));
  next(imm);
  EXPECT_EQ(responses().size(), 1u);
  target()[0] = 0x77;
  inbox()[1000] = 0x77;
  for (ParsedPacket p : {send, written_once, imm}) {
    if (p.header.row().family == Family::Send) {
      p.header.bth.psn = qp.rq_psn;
    } else {
      p.header.bth.psn = p.header.row().has(kImmDt) ? qp.rq_psn + 2 : qp.rq_psn + 1;
    }
    p.header.bth.ack_request = false;  // a duplicate is always answered
    EXPECT_EQ(verdict(p), Verdict::Duplicate);
    const Response ack = only_response();
    EXPECT_TRUE(ack.is_ack());
    EXPECT_EQ(ack.psn, qp.rq_psn + 2);
    EXPECT_EQ(ack.msn, Msn(3));
  }
  EXPECT_EQ(completions.size(), 2u);
  EXPECT_EQ(rq.posted(), 0u);
  EXPECT_EQ(target()[0], 0x77);
  EXPECT_EQ(inbox()[1000], 0x77);
}

// proves: IB-43
TEST_F(Duplicates, AReadIsReadAgain) {
  const Psn first = psn;
  const ParsedPacket r = read(psn, 0, 2 * kPmtu);
  next(r);
  EXPECT_EQ(responses().size(), 2u);
  next(write_only(psn, 4000, counting(4)));
  responses();
  target()[0] = 0xaa;
  EXPECT_EQ(verdict(read(first, 0, 2 * kPmtu)), Verdict::Duplicate);
  const auto all = responses();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].operation, Operation::ReadResponseFirst);
  EXPECT_EQ(all[0].psn, first);
  EXPECT_EQ(all[1].psn, first + 1);
  EXPECT_EQ(all[0].payload[0], 0xaa);
  EXPECT_EQ(all[0].msn, Msn(2));
}

// proves: IB-44, IB-150
TEST_F(Duplicates, APartOfAReadIsServedButNothingOutsideOfIt) {
  const Psn first = psn;
  next(read(psn, 1024, 4 * kPmtu));
  EXPECT_EQ(responses().size(), 4u);
  // From the third packet on, as requested by a peer that misses it.
  EXPECT_EQ(verdict(read(first + 2, 1024 + 2 * kPmtu, 2 * kPmtu)), Verdict::Duplicate);
  auto all = responses();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].operation, Operation::ReadResponseFirst);
  EXPECT_EQ(all[0].psn, first + 2);
  EXPECT_EQ(all[0].payload, Bytes(target() + 1024 + 2 * kPmtu, target() + 1024 + 3 * kPmtu));
  EXPECT_EQ(all[1].operation, Operation::ReadResponseLast);
  // All of it again.
  EXPECT_EQ(verdict(read(first, 1024, 4 * kPmtu)), Verdict::Duplicate);
  EXPECT_EQ(responses().size(), 4u);

  const auto silent = [this](const ParsedPacket& p) {
    EXPECT_EQ(verdict(p), Verdict::Duplicate);
    EXPECT_TRUE(responses().empty());
  };
  silent(read(first + 2, 1024 + 2 * kPmtu, 2 * kPmtu + 1));  // beyond the last byte
  silent(read(first, 1024 + 8, 4 * kPmtu - 7));              // the same, within its PSNs
  silent(read(first, 1024 - 1, 8));                          // before the first
  silent(read(first + 3, 1024, 2 * kPmtu));                  // beyond the last PSN
  silent(read(first - 1, 1024, 8));                          // before the first
  ParsedPacket key = read(first, 1024, 8);
  key.header.reth.rkey ^= 1;
  silent(key);
  EXPECT_FALSE(responder().failed());
}

// proves: IB-45
TEST_F(Duplicates, AnAtomicIsAnsweredWithTheSavedResult) {
  number(64) = 10;
  const Psn first = psn;
  next(fetch_add(psn, 64, 1));
  EXPECT_EQ(only_response().original, 10u);
  next(fetch_add(psn, 64, 1));
  EXPECT_EQ(only_response().original, 11u);
  EXPECT_EQ(verdict(fetch_add(first, 64, 1)), Verdict::Duplicate);
  const Response r = only_response();
  EXPECT_EQ(r.operation, Operation::AtomicAcknowledge);
  EXPECT_EQ(r.psn, first);
  EXPECT_EQ(r.original, 10u);
  EXPECT_EQ(r.msn, Msn(2));
  EXPECT_EQ(number(64), 12u);
}

// proves: IB-46
TEST_F(Duplicates, AnAtomicWithoutASavedResultIsDropped) {
  const Psn first = psn;
  next(fetch_add(psn, 64, 1));
  next(write_only(psn, 0, counting(4)));
  for (int i = 0; i < 4; ++i) {
    next(read(psn, 0, 8));
    responses();
  }
  const std::uint64_t before = number(64);
  for (const Psn at : {first, first + 1, first + 2, first - 5}) {
    EXPECT_EQ(verdict(fetch_add(at, 64, 1)), Verdict::Duplicate);
    EXPECT_TRUE(responses().empty());
  }
  EXPECT_EQ(number(64), before);
}

// proves: IB-47
TEST_F(Duplicates, MoveNeitherTheExpectedPsnNorTheMsn) {
  post(1);
  const Psn first = psn;
  next(write_only(psn, 0, counting(4)));
  next(read(psn, 0, 300));
  next(fetch_add(psn, 64, 1));
  // In the middle of a message, which continues.
  next(packet(Operation::SendFirst, psn, counting(kPmtu)));
  expect_untouched(write_only(first, 0, counting(4)));
  expect_untouched(read(first + 1, 0, 300));
  expect_untouched(fetch_add(first + 3, 64, 1));
  expect_untouched(packet(Operation::SendFirst, first + 4, counting(kPmtu)));
  expect_untouched(packet(Operation::SendLast, first - 9, counting(4)));
  for (const Response& r : responses()) EXPECT_EQ(r.msn, Msn(3));
  EXPECT_EQ(next(packet(Operation::SendLast, psn, counting(4))), Verdict::Accept);
  EXPECT_EQ(responder().state().msn, Msn(4));
}

// proves: IB-48
TEST_F(Duplicates, AReadIsAnsweredBeforeALaterSendIsAcknowledged) {
  post(1);
  const Psn first = psn;
  next(read(psn, 0, 2 * kPmtu));
  next(packet(Operation::SendOnly, psn, counting(4)));
  responses();
  verdict(packet(Operation::SendOnly, first + 2, counting(4)));
  verdict(read(first, 0, 2 * kPmtu));
  const auto all = responses();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].operation, Operation::ReadResponseFirst);
  EXPECT_EQ(all[1].operation, Operation::ReadResponseLast);
  EXPECT_TRUE(all[2].is_ack());
  EXPECT_EQ(all[2].psn, first + 2);
}

// proves: IB-49
TEST_F(Duplicates, AnEarlierDuplicatePreemptsAReadInProgress) {
  const Psn first = psn;
  next(read(psn, 0, kPmtu));
  const Psn second = psn;
  next(read(psn, 1024, 3 * kPmtu));
  Response r;
  ASSERT_TRUE(response(&r));
  ASSERT_TRUE(response(&r));
  EXPECT_EQ(r.psn, second);
  verdict(read(first, 0, kPmtu));
  ASSERT_TRUE(response(&r));
  EXPECT_EQ(r.psn, first);
  // The interrupted response begins anew.
  const auto all = responses();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].operation, Operation::ReadResponseFirst);
  EXPECT_EQ(all[0].psn, second);
}

// Like the probe of a requester that does not wait for our response.
// proves: IB-43
TEST_F(Duplicates, AResponseInProgressContinuesWhenAPartIsRequestedAgain) {
  const Psn first = psn;
  next(read(psn, 1024, 6 * kPmtu));
  Response r;
  ASSERT_TRUE(response(&r));
  ASSERT_TRUE(response(&r));
  ASSERT_TRUE(response(&r));
  // The requested part has not been sent yet, and will be sent anyway.
  verdict(read(first + 3, 1024 + 3 * kPmtu, kPmtu));
  ASSERT_TRUE(response(&r));
  EXPECT_EQ(r.psn, first + 3);
  EXPECT_EQ(r.operation, Operation::ReadResponseMiddle);
  // The requested part has been sent: the response restarts there, and continues to the end.
  verdict(read(first + 2, 1024 + 2 * kPmtu, kPmtu));
  const auto all = responses();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].operation, Operation::ReadResponseFirst);
  EXPECT_EQ(all[0].psn, first + 2);
  EXPECT_EQ(all[0].payload, Bytes(target() + 1024 + 2 * kPmtu, target() + 1024 + 3 * kPmtu));
  EXPECT_EQ(all[3].operation, Operation::ReadResponseLast);
  EXPECT_EQ(all[3].psn, first + 5);
  EXPECT_EQ(all[3].payload, Bytes(target() + 1024 + 5 * kPmtu, target() + 1024 + 6 * kPmtu));
}

// proves: IB-44
TEST_F(Duplicates, ADuplicateReadDoesNotExtendTheResponseBeyondItsEnd) {
  const Psn first = psn;
  next(read(psn, 1024, 6 * kPmtu));
  Response r;
  ASSERT_TRUE(response(&r));
  verdict(read(first + 5, 1024, kPmtu));
  const auto all = responses();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].psn, first + 5);
  // A request for more than the rest of a part is not served either.
  verdict(read(first, 1024, 2 * kPmtu));
  ASSERT_TRUE(response(&r));
  verdict(read(first + 1, 1024 + kPmtu, 5 * kPmtu));
  EXPECT_EQ(responses().size(), 5u);
}

// proves: IB-50
TEST_F(Duplicates, AreNeverNaked) {
  const Psn first = psn;
  next(read(psn, 0, 2 * kPmtu));
  next(fetch_add(psn, 64, 1));
  next(write_only(psn, 0, counting(4)));
  responses();
  const auto silent = [this](const ParsedPacket& p) {
    EXPECT_EQ(verdict(p), Verdict::Duplicate);
    EXPECT_TRUE(responses().empty());
    EXPECT_FALSE(responder().failed());
  };
  silent(packet(static_cast<Operation>(0x1f), first));
  silent(packet(Operation::SendOnly, first + 3, counting(kPmtu + 1)));
  silent(packet(Operation::SendFirst, first + 3, counting(3)));
  silent(read(first, kBytes, 4));
  // The memory is deregistered before the first packet, and after it.
  Response r;
  verdict(read(first, 0, 2 * kPmtu));
  ASSERT_TRUE(response(&r));
  table.invalidate(rkey, qp.peer());
  EXPECT_TRUE(responses().empty());
  silent(read(first, 0, 2 * kPmtu));
  EXPECT_FALSE(responder().due());
  // Neither a receive nor a right is needed.
  qp.access = 0;
  verdict(packet(Operation::SendOnly, first + 3, counting(4)));
  EXPECT_TRUE(only_response().is_ack());
}

// proves: IB-123
TEST_F(Duplicates, ManyDuplicatesAreAnsweredInTheOrderOfPsns) {
  post(1);
  const Psn first = psn;
  next(read(psn, 0, kPmtu));
  next(fetch_add(psn, 64, 1));
  next(read(psn, 512, 2 * kPmtu));
  next(packet(Operation::SendOnly, psn, counting(4)));
  const auto once = responses();
  ASSERT_EQ(once.size(), 5u);
  // In any order.
  verdict(packet(Operation::SendOnly, first + 4, counting(4)));
  verdict(read(first + 2, 512, 2 * kPmtu));
  verdict(fetch_add(first + 1, 64, 1));
  verdict(read(first, 0, kPmtu));
  const auto twice = responses();
  ASSERT_EQ(twice.size(), 5u);
  for (std::size_t i = 0; i < twice.size(); ++i) {
    EXPECT_EQ(twice[i].psn, first + static_cast<std::uint32_t>(i));
    EXPECT_EQ(twice[i].operation, once[i].operation);
  }
}

TEST_F(Duplicates, AreAnsweredWithoutLimit) {
  next(write_only(psn, 0, counting(4)));
  responses();
  for (int i = 0; i < 1000; ++i) {
    verdict(write_only(qp.rq_psn, 0, counting(4)));
    EXPECT_TRUE(only_response().is_ack());
  }
}

}  // namespace
}  // namespace urnic::ib
