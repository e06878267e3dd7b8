// How the completions of Sends reach the polling program (specification 9.4, Figs 13 and 14): the
// writes, counted as defined there, and the same contents for both methods.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "ddp_rdma/send_completions.h"

namespace urnic::ddp::test {
namespace {

using verbs::CompletionQueue;
using verbs::Cqe;
using Fixture = SendCompletions;

// proves: R-103
TEST(SendCompletion, Method1WritesEachWqeAndOneCqeEach_Q30) {
  for (const bool ordered : {false, true}) {
    Fixture f(CompletionMethod::PerSend);
    if (ordered) {
      for (std::uint32_t m = 1; m <= 20; ++m) f.in_order(m);
    } else {
      for (std::uint32_t m = 2; m <= 21; ++m) f.behind(m);
      EXPECT_EQ(f.writes().wqe, 20u);
      EXPECT_EQ(f.writes().cqe, 0u) << "nothing is seen before the hole closes (R-111)";
      EXPECT_TRUE(f.poll().empty());
      f.in_order(1);
      f.close();
    }
    const std::uint64_t n = ordered ? 20 : 21;
    EXPECT_EQ(f.writes().wqe, n);
    EXPECT_EQ(f.writes().cqe, n) << "2N writes";
    EXPECT_EQ(f.cq->size(), n);
    const auto polled = f.poll();
    ASSERT_EQ(polled.size(), n);
    for (std::uint32_t i = 0; i < n; ++i) EXPECT_EQ(polled[i].completion.wr_id, i + 1);
  }
}

// proves: R-104
TEST(SendCompletion, Method2WritesOneCqeForTheRunAfterTheHole) {
  Fixture f(CompletionMethod::Shared, 0);
  for (std::uint32_t m = 2; m <= 21; ++m) f.behind(m);
  f.in_order(1);
  EXPECT_EQ(f.writes().wqe, 20u);
  EXPECT_EQ(f.writes().cqe, 1u) << "the in-order one, full";
  EXPECT_EQ(f.writes().partial, 0u);
  f.close();
  EXPECT_EQ(f.writes().wqe, 20u);
  EXPECT_EQ(f.writes().cqe, 2u) << "N + 1 for the N behind the hole";
  EXPECT_EQ(f.writes().partial, 1u);
  EXPECT_EQ(f.cq->size(), 2u);
  EXPECT_EQ(f.poll().size(), 21u);
}

// proves: R-106
TEST(SendCompletion, Method2InOrderUpdatesNoWqe) {
  Fixture f(CompletionMethod::Shared, 0);
  for (std::uint32_t m = 1; m <= 30; ++m) f.in_order(m);
  EXPECT_EQ(f.writes().wqe, 0u);
  EXPECT_EQ(f.writes().cqe, 30u);
  EXPECT_EQ(f.writes().partial, 0u);
}

// with M >= N, N CQEs and no WQE; with M = 0, N WQEs and one CQE; in between, N - M WQEs and
// M + 1 CQEs, N + 1 in all, if the stored ones are one run.
// proves: R-105
TEST(SendCompletion, Method2NeverWritesMoreThanNPlus1_Q26) {
  constexpr std::uint32_t kN = 12;
  for (std::uint32_t m = 0; m <= kN + 2; ++m) {
    Fixture f(CompletionMethod::Shared, m);
    for (std::uint32_t k = 2; k <= kN + 1; ++k) f.behind(k);
    f.in_order(1);
    const std::uint64_t before = f.writes().cqe;
    f.close();
    const std::uint64_t wqe = f.writes().wqe, cqe = f.writes().cqe - before;
    EXPECT_EQ(wqe, m >= kN ? 0 : kN - m) << "M = " << m;
    EXPECT_EQ(cqe, m >= kN ? kN : m + 1) << "M = " << m;
    EXPECT_EQ(f.writes().partial, m >= kN ? 0u : 1u);
    EXPECT_LE(wqe + cqe, kN + 1);
    const auto polled = f.poll();
    ASSERT_EQ(polled.size(), kN + 1) << "R-109";
    for (std::uint32_t i = 0; i <= kN; ++i) EXPECT_EQ(polled[i].completion.wr_id, i + 1);
  }
}

TEST(SendCompletion, ThresholdIsPerConnectionAndFreeAgainAfterDelivery_Q26) {
  Fixture f(CompletionMethod::Shared, 3);
  for (std::uint32_t k = 2; k <= 6; ++k) f.behind(k);
  EXPECT_EQ(f.stream->held.size(), 3u);
  EXPECT_EQ(f.writes().wqe, 2u);
  f.in_order(1);
  f.close();
  EXPECT_EQ(f.stream->held.size(), 0u);
  for (std::uint32_t k = 8; k <= 10; ++k) f.behind(k);
  EXPECT_EQ(f.stream->held.size(), 3u);
  EXPECT_EQ(f.writes().wqe, 2u) << "M have room again";
}

// proves: R-107
TEST(SendCompletion, EachPollTakesOneReferenceAndTheLastRemovesTheCqe) {
  Fixture f(CompletionMethod::Shared, 0);
  f.in_order(1);
  for (std::uint32_t k = 3; k <= 7; ++k) f.behind(k);
  f.in_order(2);
  f.close();
  f.poll(2);
  Cqe cqe;
  for (std::uint32_t left = 5; left > 0; --left) {
    ASSERT_TRUE(f.cq->peek(&cqe));
    EXPECT_EQ(cqe.references, left) << "544 starts at the hole's count";
    EXPECT_NE(cqe.stored, nullptr) << "546 says partial";
    EXPECT_EQ(f.cq->size(), 1u);
    const auto one = f.poll(1);
    ASSERT_EQ(one.size(), 1u);
    EXPECT_EQ(one[0].completion.wr_id, 8 - left);
  }
  EXPECT_EQ(f.cq->size(), 0u);
  EXPECT_FALSE(f.cq->peek(&cqe));
}

// proves: R-108
TEST(SendCompletion, FullAndPartialCqesPollTheSame) {
  const Opcode ops[] = {Opcode::Send, Opcode::SendSe};
  std::vector<std::vector<Cqe>> all;
  for (const auto& [method, m] : {std::pair{CompletionMethod::PerSend, 0u},
                                  {CompletionMethod::Shared, 0u},
                                  {CompletionMethod::Shared, 5u},
                                  {CompletionMethod::Shared, 64u}}) {
    Fixture f(method, m);
    for (std::uint32_t k : {4u, 3u, 9u, 2u, 8u, 10u, 7u, 6u, 5u}) f.behind(k, ops[k % 2]);
    f.in_order(1);
    f.close();
    all.push_back(f.poll());
  }
  ASSERT_EQ(all[0].size(), 10u);
  for (const auto& other : all) {
    ASSERT_EQ(other.size(), all[0].size());
    for (std::size_t i = 0; i < other.size(); ++i) {
      const verbs::Completion &a = all[0][i].completion, &b = other[i].completion;
      EXPECT_EQ(a.wr_id, b.wr_id);
      EXPECT_EQ(a.byte_len, b.byte_len);
      EXPECT_EQ(a.solicited, b.solicited);
      EXPECT_EQ(a.receive, b.receive);
      EXPECT_EQ(a.status, b.status);
      EXPECT_EQ(other[i].qp_number, all[0][i].qp_number);
      EXPECT_EQ(other[i].references, 1u);
      EXPECT_EQ(other[i].stored, nullptr);
    }
    EXPECT_TRUE(other[2].completion.solicited);
    EXPECT_EQ(other[2].completion.byte_len, 3u);
  }
}

TEST(SendCompletion, AHoleWithoutSendsPlacesNoCqe) {
  Fixture f(CompletionMethod::Shared, 0);
  f.close();
  EXPECT_EQ(f.cq->size(), 0u);
  EXPECT_EQ(f.writes().cqe, 0u);
}

// proves: R-110
TEST(SendCompletion, OneCqOfManyQueuePairsMixesWithoutLoss) {
  CompletionQueue cq(1024);
  Fixture a(CompletionMethod::Shared, 0, 64, &cq, 1), b(CompletionMethod::PerSend, 0, 64, &cq, 2),
      c(CompletionMethod::Shared, 4, 64, &cq, 3);
  Fixture* const all[] = {&a, &b, &c};
  Rng rng(5);
  for (Fixture* f : all) {
    for (std::uint32_t k = 2; k <= 40; ++k) f->behind(k);
  }
  for (Fixture* f : {&c, &a}) {  // b's hole stays open
    f->in_order(1);
    f->close();
  }
  std::vector<std::uint64_t> next(4, 1);
  while (true) {
    const auto polled = a.poll(1 + rng.below(7));
    if (polled.empty()) break;
    for (const Cqe& cqe : polled) EXPECT_EQ(cqe.completion.wr_id, next[cqe.qp_number]++);
  }
  EXPECT_EQ(next, (std::vector<std::uint64_t>{1, 41, 1, 41}));
  b.in_order(1);
  b.close();
  EXPECT_EQ(a.poll().size(), 40u);
}

TEST(SendCompletion, AReceiveIsRecycledOnlyWhenItsCompletionHasBeenPolled) {
  Fixture f(CompletionMethod::Shared, 0, 4);
  for (std::uint32_t k = 2; k <= 4; ++k) f.behind(k);
  f.in_order(1);
  EXPECT_TRUE(f.post(5)) << "its completion is whole in the CQE";
  f.close();
  EXPECT_FALSE(f.post(6)) << "three are still read by polls to come";
  EXPECT_EQ(f.poll(2).size(), 2u);
  EXPECT_TRUE(f.post(6));
  EXPECT_FALSE(f.post(7));
  EXPECT_EQ(f.poll().size(), 2u);
  EXPECT_TRUE(f.post(7));
  EXPECT_TRUE(f.post(8));
  EXPECT_FALSE(f.post(9)) << "the limit";
}

TEST(SendCompletion, CompletionsOutliveTheirQueuePairAndItsReset) {
  CompletionQueue cq(64);
  auto f = std::make_unique<Fixture>(CompletionMethod::Shared, 0, 8, &cq);
  for (std::uint32_t k = 2; k <= 5; ++k) f->behind(k);
  f->in_order(1);
  f->close();
  f->stream->reset();
  for (std::uint32_t i = 0; i < 8; ++i) ASSERT_TRUE(f->post(100 + i)) << "over the same MSNs";
  f.reset();
  std::vector<Cqe> out(10);
  ASSERT_EQ(cq.poll(out), 5);
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(out[i].completion.wr_id, i + 1);
}

TEST(SendCompletion, ACqDestroyedFirstReturnsItsReceives) {
  CompletionQueue* cq = new CompletionQueue(64);
  Fixture f(CompletionMethod::PerSend, 0, 3, cq);
  for (std::uint32_t k = 1; k <= 3; ++k) f.in_order(k);
  EXPECT_FALSE(f.post(4));
  delete cq;
  EXPECT_TRUE(f.post(4));
}

TEST(SendCompletion, SolicitedArmIsWokenByARunWithASolicitedSend) {
  Fixture f(CompletionMethod::Shared, 0);
  for (std::uint32_t k = 2; k <= 4; ++k) f.behind(k, k == 3 ? Opcode::SendSe : Opcode::Send);
  f.in_order(1);
  f.cq->arm(true);
  verbs::WqeStore* store = f.stream->rq.store();
  for (std::uint32_t k = 2; k <= 4; ++k) store->lend(k);
  EXPECT_EQ(f.cq->push({store, 2, 3, true}, 1), CompletionQueue::Notify::Yes);
  f.cq->arm(true);
  for (std::uint32_t k = 2; k <= 4; ++k) store->lend(k);
  EXPECT_EQ(f.cq->push({store, 2, 3, false}, 1), CompletionQueue::Notify::No);
  f.hole = {};
}

}  // namespace
}  // namespace urnic::ddp::test
