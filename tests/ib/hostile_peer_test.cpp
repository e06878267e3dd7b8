// A peer that sends responses without a request, and wrong responses: only its own queue pair is
// affected, which ends with the right status or continues.
#include <gmock/gmock.h>

#include <algorithm>

#include "base/rng.h"
#include "ib/requester_bench.h"
#include "ib/responder_fixture.h"

namespace urnic::ib {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using verbs::Status;
using verbs::WrOp;

class HostilePeer : public RequesterBench {
 protected:
  // Any fields of a response, near the window or anywhere.
  ParsedPacket any_response(Rng* rng) {
    constexpr Operation kOperations[] = {
        Operation::ReadResponseFirst, Operation::ReadResponseMiddle,
        Operation::ReadResponseLast,  Operation::ReadResponseOnly,
        Operation::Acknowledge,       Operation::AtomicAcknowledge,
        Operation::SendOnly,          Operation::Resync};
    const SendState& s = r().state();
    const std::uint32_t base = s.una.psn.value();
    std::uint32_t psn = 0;
    switch (rng->below(4)) {
      case 0:
        psn = static_cast<std::uint32_t>(rng->next());
        break;
      case 1:
        psn = base + (1u << 23) - 3 + static_cast<std::uint32_t>(rng->below(6));
        break;
      default:
        psn = base - 3 + static_cast<std::uint32_t>(rng->below(s.outstanding() + 6));
        break;
    }
    ParsedPacket p = response(kOperations[rng->below(std::size(kOperations))], psn);
    // Mostly positive, or no queue pair would live long.
    const bool ack = rng->chance(0.8);
    p.header.aeth.syndrome.byte = static_cast<std::uint8_t>(rng->below(ack ? 32 : 256));
    p.header.aeth.msn = Msn(s.ssn.value() + 3 - static_cast<std::uint32_t>(rng->below(8)));
    p.header.original = rng->next();
    constexpr std::uint32_t kLengths[] = {0, 0, kPmtu, kPmtu, kPmtu - 1, kPmtu + 4, 4, 4096};
    p.payload = ByteView(noise).first(kLengths[rng->below(std::size(kLengths))]);
    return p;
  }

  std::vector<std::uint8_t> noise = std::vector<std::uint8_t>(4096, 0xee);
};

TEST_F(HostilePeer, ResponsesWithoutARequestHaveNoEffect) {
  for (const std::uint32_t psn : {0u, 99u, 100u, 101u, 100u + (1u << 23), 99u - (1u << 23)}) {
    ack(psn, 1);
    nak(psn, NakCode::RemoteAccess);
    nak(psn, NakCode::SequenceError);
    rnr(psn, 1);
    data(Operation::ReadResponseOnly, psn, bytes_of(8, 0xee));
    result(psn, 7);
  }
  EXPECT_FALSE(r().failed());
  EXPECT_TRUE(r().due().is_never());
  EXPECT_THAT(leave(), IsEmpty());
  post(WrOp::Send, 1);
  EXPECT_THAT(psns(leave()), ElementsAre(100));
  ack(100, 1);
  EXPECT_THAT(done(), ElementsAre(1));
}

// Requests of all kinds with any responses, many times over: each completes once and in order. The
// first that fails has a status of its own, and those after it are flushed. Only sinks change, and
// another queue pair with the same memory continues.
TEST_F(HostilePeer, AnyResponsesAffectOnlyTheirOwnQueuePair) {
  std::uint64_t ended = 0, completed = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Rng rng(seed);
    verbs::SendQueue queue(16, 4, 0, sizeof(SendPart));
    QpAttributes attributes = qp;
    attributes.sq_psn = Psn(static_cast<std::uint32_t>(rng.next()));
    rules.obey_credits = rng.chance(0.5);
    rules.window = static_cast<std::uint32_t>(rng.between(1, 10));
    std::fill(memory.begin(), memory.end(), 0x11);
    Requester mine(attributes, rules, &queue, &table);
    use(&mine);
    std::vector<verbs::Completion> got;
    const auto sink = [&got](const verbs::Completion& c) { got.push_back(c); };
    std::uint64_t posted = 0;
    for (int step = 0; step < 60 && !mine.failed(); ++step) {
      constexpr WrOp kOps[] = {WrOp::Send, WrOp::Write, WrOp::Read, WrOp::CmpSwap, WrOp::WriteImm};
      while (posted < 40 && rng.chance(0.6)) {
        const WrOp op = kOps[rng.below(std::size(kOps))];
        const std::uint32_t n =
            verbs::is_atomic(op) ? 8 : static_cast<std::uint32_t>(rng.below(900));
        verbs::SendWr wr = request(op, n, verbs::awaits_response(op) ? 32'768 : 0);
        wr.wr_id = posted;
        if (queue.post(wr) != verbs::Post::Ok) break;
        ++posted;
      }
      RequestPacket p;
      for (int i = 0; i < 5 && mine.next_packet(now, true, &p); ++i) {
      }
      mine.take(any_response(&rng), now);
      if (rng.chance(0.1) && !mine.due().is_never()) {
        now = std::max(now, mine.due());
        mine.on_time(now);
      }
      mine.report(sink);
    }
    completed += got.size();
    ended += mine.failed() ? 1 : 0;
    mine.stop();
    mine.flush(sink);
    ASSERT_EQ(got.size(), posted) << "seed " << seed;
    bool failed = false;
    for (std::uint64_t i = 0; i < posted; ++i) {
      ASSERT_EQ(got[i].wr_id, i) << "seed " << seed;
      ASSERT_TRUE(!failed || got[i].status == Status::Flushed) << "seed " << seed;
      failed = failed || (got[i].status != Status::Success && got[i].status != Status::Flushed);
    }
    ASSERT_TRUE(std::all_of(memory.begin(), memory.begin() + 32'768,
                            [](std::uint8_t byte) { return byte == 0x11; }))
        << "seed " << seed;
    ASSERT_TRUE(std::all_of(memory.begin() + 32'768 + 900, memory.end(),
                            [](std::uint8_t byte) { return byte == 0x11; }))
        << "seed " << seed;
  }
  EXPECT_GT(ended, 1000u);
  EXPECT_GT(completed, 1000u) << "and they live long enough to be harmed";
  use(nullptr);
  post(WrOp::Send, 1);
  leave();
  ack(100);
  EXPECT_EQ(done().size(), 1u);
}

class PatientResponder : public test::ResponderFixture {};

// proves: IB-148
TEST_F(PatientResponder, EveryRepetitionOfADuplicateIsAnswered) {
  take(write_only(qp.rq_psn, 0, test::counting(8)));
  for (int i = 0; i < 1000; ++i) {
    take(write_only(qp.rq_psn, 0, test::counting(8)));
    ResponsePacket p;
    ASSERT_TRUE(responder().next_response(&p)) << i;
    EXPECT_EQ(p.header.bth.psn, qp.rq_psn);
  }
}

}  // namespace
}  // namespace urnic::ib
