// An XRC responder: the shared receive queue that a request is for, and the memory it can access.
#include "ib/xrc.h"

#include <memory>
#include <vector>

#include "base/rng.h"
#include "ib/requester_bench.h"
#include "ib/responder_fixture.h"
#include "ib/xrc_queues.h"
#include "verbs/completion_queue.h"

namespace urnic::ib::test {
namespace {

std::uint8_t* as_bytes(std::uint64_t* words) {
  return reinterpret_cast<std::uint8_t*>(words);
}

struct Xrc : ResponderFixture {
  static constexpr std::uint32_t kDomain = 3;

  Xrc() {
    qp.service = ServiceType::Xrc;
    qp.tells_credits = false;
    qp.xrc = {true, kDomain, &queues};
    queue = &rq_of_xrc;
    EXPECT_TRUE(queues.open(&first, kDomain, &cq));
    EXPECT_TRUE(queues.open(&second, kDomain, &cq));
    EXPECT_TRUE(queues.open(&foreign, kDomain + 1, &cq));
  }
  void post(verbs::SharedReceiveQueue* to, std::uint64_t wr_id, std::uint32_t bytes = 1000) {
    const verbs::Sge sge{1000 * wr_id, bytes, lkey};
    ASSERT_EQ(to->post({wr_id, {&sge, 1}}), verbs::SharedReceiveQueue::Post::Ok);
  }
  static ParsedPacket to(const verbs::SharedReceiveQueue& queue, ParsedPacket p) {
    p.header.srq = queue.xrc.number;
    return p;
  }
  ParsedPacket send(const verbs::SharedReceiveQueue& q, Operation o, Bytes payload) {
    return to(q, packet(o, psn, std::move(payload)));
  }

  BufferPool buffers;
  verbs::CompletionQueue cq{4};
  XrcQueues queues{SipKey{5, 6}};
  verbs::SharedReceiveQueue first{kPd, 4, 1}, second{kPd, 4, 1}, foreign{kPd, 4, 1};
  verbs::ReceiveQueue rq_of_xrc{&buffers, 0};
};

// proves: IB-162
TEST_F(Xrc, AMessageUsesAReceiveOfTheQueueItNames) {
  post(&first, 1);
  post(&second, 2);
  post(&first, 3);
  EXPECT_EQ(next(send(second, Operation::SendOnly, counting(7, 5))), Verdict::Accept);
  EXPECT_EQ(next(send(first, Operation::SendFirst, counting(kPmtu))), Verdict::Accept);
  EXPECT_EQ(first.available(), 1u) << "in use";
  EXPECT_EQ(next(send(first, Operation::SendLast, counting(9))), Verdict::Accept);
  EXPECT_EQ(next(send(first, Operation::SendOnly, {})), Verdict::Accept);
  ASSERT_EQ(completions.size(), 3u);
  EXPECT_EQ(completions[0].wr_id, 2u);
  EXPECT_EQ(completions[0].byte_len, 7u);
  EXPECT_EQ(completions[1].wr_id, 1u);
  EXPECT_EQ(completions[1].byte_len, kPmtu + 9);
  EXPECT_EQ(completions[2].wr_id, 3u);
  EXPECT_EQ(Bytes(inbox() + 2000, inbox() + 2007), counting(7, 5));
  EXPECT_EQ(only_response().syndrome, Syndrome::ack(kNoCredits));
}

// proves: IB-162
TEST_F(Xrc, AQueueWithoutAReceiveDrawsAnRnrNakForItsOwnRequests) {
  post(&first, 1);
  EXPECT_EQ(verdict(send(second, Operation::SendOnly, counting(7))), Verdict::NotReady);
  EXPECT_EQ(only_response().syndrome, Syndrome::rnr_nak(qp.min_rnr_timer));
  EXPECT_EQ(first.available(), 1u);
  post(&second, 2);
  EXPECT_EQ(next(send(second, Operation::SendOnly, counting(7))), Verdict::Accept);
  EXPECT_EQ(completions.at(0).wr_id, 2u);
}

// proves: IB-162
TEST_F(Xrc, RequestsAccessMemoryOfTheQueuesProtectionDomain) {
  verbs::SharedReceiveQueue other(kPd + 1, 4, 1);
  ASSERT_TRUE(queues.open(&other, kDomain, &cq));
  alignas(8) std::uint64_t theirs[64]{};
  const std::uint32_t key = table.register_memory(kPd + 1, {as_bytes(theirs), 0, 512}, kAll);
  ParsedPacket mine = to(other, write_only(psn, 8, counting(4)));
  mine.header.reth = {8, key, 4};
  EXPECT_EQ(next(mine), Verdict::Accept);
  EXPECT_EQ(next(to(first, write_only(psn, 8, counting(4)))), Verdict::Accept);
  EXPECT_EQ(Bytes(as_bytes(theirs) + 8, as_bytes(theirs) + 12), counting(4));
  // A response is still due when the next request names another queue.
  ParsedPacket read = to(other, packet(Operation::ReadRequest, psn));
  read.header.reth = {8, key, 4};
  EXPECT_EQ(next(read), Verdict::Accept);
  EXPECT_EQ(next(to(first, fetch_add(psn, 0, 1))), Verdict::Accept);
  const auto answers = responses();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].operation, Operation::ReadResponseOnly);
  EXPECT_EQ(answers[0].payload, counting(4));
  EXPECT_EQ(answers[1].operation, Operation::AtomicAcknowledge);
  ParsedPacket wrong = to(first, write_only(psn, 8, counting(4)));
  wrong.header.reth = {8, key, 4};
  expect_refused(wrong, NakCode::RemoteAccess);
}

// proves: IB-162
TEST_F(Xrc, WritesReadsAndImmediateDataWorkAsWithRc) {
  post(&second, 7);
  EXPECT_EQ(next(to(first, write(Operation::WriteFirst, psn, 0, kPmtu + 4, counting(kPmtu, 9)))),
            Verdict::Accept);
  ParsedPacket last = to(first, packet(Operation::WriteLast, psn, counting(4)));
  EXPECT_EQ(next(last), Verdict::Accept);
  EXPECT_EQ(Bytes(target() + kPmtu, target() + kPmtu + 4), counting(4));
  ParsedPacket imm = to(second, write(Operation::WriteOnlyImm, psn, 100, 3, counting(3)));
  imm.header.immediate = 77;
  EXPECT_EQ(next(imm), Verdict::Accept);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].wr_id, 7u);
  EXPECT_EQ(completions[0].immediate, 77u);
  EXPECT_EQ(completions[0].op, verbs::WrOp::WriteImm);
}

// proves: IB-163
TEST_F(Xrc, AQueueOfAnotherDomainDrawsNakCodeFour) {
  post(&foreign, 1);
  expect_refused(send(foreign, Operation::SendOnly, counting(7)), NakCode::InvalidRdRequest);
  EXPECT_EQ(responder().counters().wrong_domains, 1u);
  EXPECT_EQ(responder().counters().unknown_queues, 0u);
  EXPECT_EQ(responder().failure(), Verdict::WrongDomain);
  EXPECT_EQ(foreign.available(), 1u);
  EXPECT_TRUE(completions.empty());
}

// proves: IB-163
TEST_F(Xrc, WritesToAQueueOfAnotherDomainAreRefusedAsWell) {
  expect_refused(to(foreign, write_only(psn, 0, counting(4))), NakCode::InvalidRdRequest);
  again();
  expect_refused(to(foreign, read(psn, 0, 4)), NakCode::InvalidRdRequest);
  again();
  expect_refused(to(foreign, fetch_add(psn, 0, 4)), NakCode::InvalidRdRequest);
}

// proves: IB-163
TEST_F(Xrc, AnUnknownQueueIsAnInvalidRequest) {
  verbs::SharedReceiveQueue ordinary(kPd, 4, 1);
  EXPECT_EQ(ordinary.xrc.number, 0u) << "one of another kind has no number";
  expect_refused(send(ordinary, Operation::SendOnly, {}), NakCode::InvalidRequest);
  EXPECT_EQ(responder().counters().unknown_queues, 1u);
  again();
  post(&first, 1);
  ParsedPacket gone = send(first, Operation::SendOnly, {});
  queues.close(&first);
  expect_refused(gone, NakCode::InvalidRequest);
}

// proves: IB-163
TEST_F(Xrc, AMessageMustNotChangeItsQueue) {
  post(&first, 1);
  post(&second, 2);
  EXPECT_EQ(next(send(first, Operation::SendFirst, counting(kPmtu))), Verdict::Accept);
  expect_refused(send(second, Operation::SendLast, counting(9)), NakCode::InvalidRequest);
  EXPECT_EQ(responder().counters().unknown_queues, 1u);
  EXPECT_EQ(second.available(), 1u);
  EXPECT_TRUE(completions.empty());
}

// proves: IB-163
TEST_F(Xrc, TheRestOfAMessageIsRefusedWhenItsQueueIsClosed) {
  post(&first, 1);
  post(&first, 2);
  EXPECT_EQ(next(send(first, Operation::SendFirst, counting(kPmtu))), Verdict::Accept);
  const ParsedPacket rest = send(first, Operation::SendLast, counting(9));
  queues.close(&first);
  rq_of_xrc.forget_queue(&first);
  EXPECT_EQ(rq_of_xrc.posted(), 0u);
  EXPECT_EQ(rq_of_xrc.shared(), nullptr);
  expect_refused(rest, NakCode::InvalidRequest);
}

// Any packets of a peer, for any queue, while queues come and go: at most one receive is in use,
// none is lost, and memory outside of the allowed regions is unchanged.
TEST_F(Xrc, AnyPacketsOfAPeerLeaveTheQueuesConsistent) {
  Rng rng(11);
  verbs::SharedReceiveQueue* const all[] = {&first, &second, &foreign};
  constexpr Operation kOps[] = {
      Operation::SendFirst, Operation::SendMiddle,   Operation::SendLast,
      Operation::SendOnly,  Operation::WriteFirst,   Operation::WriteLast,
      Operation::WriteOnly, Operation::WriteOnlyImm, Operation::ReadRequest,
      Operation::FetchAdd,  Operation::SendOnlyInv,  Operation::Resync};
  qp.loss.type = ConnectionType::Fast;
  std::uint64_t posted = 0, used = 0;
  for (int round = 0; round < 5000; ++round) {
    rq_of_xrc.reset(0);
    again();
    for (int i = 0; i < 30; ++i) {
      verbs::SharedReceiveQueue& q = *all[rng.below(3)];
      const verbs::Sge sge{1000, 300, lkey};
      if (rng.chance(0.3)) posted += q.post({1, {&sge, 1}}) == verbs::SharedReceiveQueue::Post::Ok;
      if (rng.chance(0.05)) {
        queues.close(&q);
        rq_of_xrc.forget_queue(&q);
        ASSERT_TRUE(queues.open(&q, &q == &foreign ? kDomain + 1 : kDomain, &cq));
      }
      ParsedPacket p = packet(kOps[rng.below(std::size(kOps))],
                              responder().state().expected + (rng.chance(0.1) ? 1 : 0),
                              counting(rng.chance(0.5) ? kPmtu : rng.below(kPmtu)));
      p.header.reth = {kTarget + rng.below(kBytes), rkey,
                       static_cast<std::uint32_t>(rng.below(600))};
      p.header.atomic = {kTarget + 8 * rng.below(kBytes / 8), rkey, 1, 0};
      p.header.srq =
          rng.chance(0.9) ? q.xrc.number : static_cast<std::uint32_t>(rng.below(1 << 24));
      take(p);
      ASSERT_LE(rq_of_xrc.posted(), 1u);
    }
    responses();
    used += completions.size();
    completions.clear();
    payloads.clear();
  }
  EXPECT_GT(used, 100u);
  EXPECT_GT(posted, used);
  rq_of_xrc.reset(0);
  for (verbs::SharedReceiveQueue* q : all) {
    std::uint32_t room = 0;
    const verbs::Sge sge{1000, 300, lkey};
    const std::uint32_t there = q->available();
    while (q->post({1, {&sge, 1}}) == verbs::SharedReceiveQueue::Post::Ok) ++room;
    EXPECT_EQ(there + room, q->max_wr()) << "none is lost";
  }
}

// Numbers cannot be guessed from another, and are reused only when all have been used.
TEST(XrcQueues, ANumberFindsItsQueueUntilItIsClosed) {
  XrcQueues queues(SipKey{1, 2});
  verbs::CompletionQueue cq(1);
  verbs::SharedReceiveQueue a(1, 1, 1), b(1, 1, 1);
  ASSERT_TRUE(queues.open(&a, 1, &cq) && queues.open(&b, 2, &cq));
  EXPECT_NE(a.xrc.number, 0u);
  EXPECT_LE(a.xrc.number, kMask24);
  EXPECT_NE(a.xrc.number + 1, b.xrc.number);
  EXPECT_EQ(queues.find(a.xrc.number), &a);
  EXPECT_EQ(queues.find(b.xrc.number), &b);
  EXPECT_EQ(queues.find(0), nullptr);
  const std::uint32_t was = a.xrc.number;
  queues.close(&a);
  EXPECT_EQ(queues.find(was), nullptr);
  EXPECT_EQ(a.xrc.number, 0u);
  EXPECT_EQ(a.xrc.completions, nullptr);
  ASSERT_TRUE(queues.open(&a, 1, &cq));
  EXPECT_NE(a.xrc.number, was);
}

TEST(XrcQueues, AreLimitedInNumber) {
  XrcQueues queues(SipKey{1, 2});
  verbs::CompletionQueue cq(1);
  std::vector<std::unique_ptr<verbs::SharedReceiveQueue>> all;
  for (std::uint32_t i = 0; i < XrcQueues::kMost; ++i) {
    all.push_back(std::make_unique<verbs::SharedReceiveQueue>(1, 1, 1));
    ASSERT_TRUE(queues.open(all.back().get(), 1, &cq));
  }
  verbs::SharedReceiveQueue more(1, 1, 1);
  EXPECT_FALSE(queues.open(&more, 1, &cq));
  EXPECT_EQ(more.xrc.number, 0u);
  queues.close(all.back().get());
  EXPECT_TRUE(queues.open(&more, 1, &cq));
  EXPECT_EQ(queues.size(), std::size_t{XrcQueues::kMost});
}

}  // namespace
}  // namespace urnic::ib::test

namespace urnic::ib {
namespace {

struct XrcRequests : RequesterBench {
  XrcRequests() { qp.service = ServiceType::Xrc; }
};

// proves: IB-161
TEST_F(XrcRequests, EachPacketNamesTheQueueOfItsRequest) {
  verbs::SendWr wr = request(verbs::WrOp::Send, 2 * kPmtu + 1);
  wr.remote_srq = 0x0a0b0c;
  post(wr);
  wr = request(verbs::WrOp::Read, 10);
  wr.remote_srq = 0x0d0e0f;
  post(wr);
  const auto sent = leave();
  ASSERT_EQ(sent.size(), 4u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sent[i].h.srq, 0x0a0b0cu);
  EXPECT_EQ(sent[0].h.bth.opcode.byte, 0xa0);
  EXPECT_EQ(sent[2].h.bth.opcode.byte, 0xa2);
  EXPECT_EQ(sent[3].h.bth.opcode.byte, 0xac);
  EXPECT_EQ(sent[3].h.srq, 0x0d0e0fu);
  // The repetition is identical.
  EXPECT_EQ(nak(101, NakCode::SequenceError), Response::SequenceNak);
  const auto again = leave();
  ASSERT_EQ(again.size(), 3u);
  EXPECT_EQ(again[0].h.srq, 0x0a0b0cu);
  EXPECT_EQ(again[2].h.srq, 0x0d0e0fu);
}

// proves: IB-163
TEST_F(XrcRequests, AQueueOfAnotherDomainFailsWithItsOwnStatus) {
  post(verbs::WrOp::Send, 8);
  post(verbs::WrOp::Send, 8);
  leave();
  EXPECT_EQ(nak(100, NakCode::InvalidRdRequest), Response::Refused);
  EXPECT_EQ(statuses(), (std::vector{verbs::Status::RemoteInvalidRd, verbs::Status::Flushed}));
}

}  // namespace
}  // namespace urnic::ib
