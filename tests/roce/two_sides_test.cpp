// Two sides with several queue pairs each, and a wire between them that loses, duplicates and
// reorders RoCE frames in both directions: all kinds of requests, with every byte checked. Then
// failures: the status at both ends, while others go on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "roce/side_end.h"
#include "tests/support/faulty_wire.h"

namespace urnic::roce::test {
namespace {

using verbs::Status;
using verbs::WrOp;

// Both ends, the wire and the time.
class Net {
 public:
  Net(std::uint64_t seed, const urnic::test::WireFaults& faults)
      : wire_(seed, faults), clean_(seed, {}) {}

  // Runs until nothing more happens, or `until`.
  void run(Instant until = Instant::from_ns(0) + Duration::s(600)) {
    for (int steps = 0; steps < 2'000'000; ++steps) {
      exchange();
      Instant next = earlier(wire_.next(), clean_.next());
      if (next.is_never()) next = quiet();
      for (SideEnd* e : {&a, &b}) next = earlier(next, e->side.next_deadline());
      if (next.is_never() || next > until) return;
      now = std::max(now, next);
      for (urnic::test::FaultyWire* w : {&wire_, &clean_}) {
        if (w->next() > now) continue;
        const auto [to, frame] = w->take();
        end(to).arrive(frame);
      }
    }
    FAIL() << "it does not end";
  }
  SideEnd& end(int i) { return i == 0 ? a : b; }
  const urnic::test::FaultyWire& wire() const { return wire_; }

  Instant now = Instant::from_ns(1000);
  SideEnd a{0, SideEnd::keyed(1)}, b{1, SideEnd::keyed(2)};

 private:
  // ARP may still have work; timers of the neighbor cache alone do not count.
  Instant quiet() {
    return a.side.wants_to_send() || b.side.wants_to_send() ? now + Duration::us(10)
                                                            : Instant::never();
  }
  void exchange() {
    for (int i = 0; i < 2; ++i) {
      end(i).poll(now);
      for (Bytes& frame : end(i).sent()) {
        const bool udp = frame[12] == 8 ? frame[13] == 0 && frame[23] == 17 : frame[20] == 17;
        (udp ? wire_ : clean_).send(now, 1 - i, std::move(frame));
      }
    }
  }
  urnic::test::FaultyWire wire_, clean_;
};

constexpr std::uint32_t kSlot = 5000;

// One queue pair of a pair and its memory.
struct Half {
  Half(SideEnd& e, std::uint32_t slots, verbs::SharedReceiveQueue* srq = nullptr)
      : end(&e),
        local(slots * kSlot),
        target(slots * kSlot),
        inbox(slots * kSlot),
        qp(e.queue_pair({.max_send_wr = 256, .max_recv_wr = 256, .shared_rq = srq})) {
    lkey = e.memory.register_memory(kPd, local.data(), local.size(), verbs::kLocalWrite);
    inbox_key = e.memory.register_memory(kPd, inbox.data(), inbox.size(), verbs::kLocalWrite);
    rkey = e.memory.register_memory(
        kPd, {target.data(), 0, target.size()},
        verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic);
  }
  void post(std::uint32_t id, WrOp op, std::uint32_t length, const Half& peer,
            std::uint64_t value = 0, std::uint64_t offset = ~0ull) {
    verbs::SendWr wr;
    wr.wr_id = id;
    wr.op = op;
    wr.flags = verbs::kSignaled;
    wr.remote_address = offset == ~0ull ? std::uint64_t{id} * kSlot : offset;
    wr.rkey = wrong_key != 0 ? wrong_key : peer.rkey;
    wr.immediate = value;
    wr.inv_key = static_cast<std::uint32_t>(value);
    wr.atomic.data = value;
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(&local[id * kSlot]), length, lkey};
    wr.sges = {&sge, length != 0 ? 1u : 0u};
    ASSERT_EQ(qp->sq.post(wr), verbs::Post::Ok);
  }
  void receive(std::uint32_t id, std::uint32_t length = kSlot) {
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(&inbox[id * kSlot]), length, inbox_key};
    ASSERT_EQ(qp->rq.post({id, {&sge, 1}}), verbs::ReceiveQueue::Post::Ok);
  }
  void fill(std::uint64_t seed) {
    Rng rng(seed);
    for (Bytes* b : {&local, &target}) {
      for (std::uint8_t& byte : *b) byte = static_cast<std::uint8_t>(rng.next());
    }
  }

  SideEnd* end;
  Bytes local, target, inbox;
  std::uint32_t lkey = 0, rkey = 0, inbox_key = 0, wrong_key = 0;
  std::unique_ptr<verbs::QueuePair> qp;
};

struct Couple {
  Couple(Net& net, const Pairing& p, std::uint32_t slots,
         verbs::SharedReceiveQueue* srq_of_b = nullptr)
      : a(net.a, slots), b(net.b, slots, srq_of_b) {
    connect(net.a, *a.qp, p, 0, b.qp->number(), net.now);
    connect(net.b, *b.qp, p, 1, a.qp->number(), net.now);
  }
  ~Couple() {
    a.end->side.destroy(std::move(a.qp));
    b.end->side.destroy(std::move(b.qp));
  }
  void go(Instant now) {
    for (const Half* half : {&a, &b}) {
      half->end->side.receives_posted(*half->qp, now);
      half->end->side.sends_posted(*half->qp, now);
    }
  }
  Half a, b;
};

// Completions by queue pair, sends and receives apart.
struct Done {
  explicit Done(SideEnd& end) {
    for (const verbs::Cqe& c : end.completions()) {
      (c.completion.receive ? received : sent)[c.qp_number].push_back(c.completion);
    }
  }
  std::map<std::uint32_t, std::vector<verbs::Completion>> sent, received;
};

// ---- all operations over a faulty wire

constexpr std::uint32_t kMessages = 40;

// The expected effect of each request of a to b.
struct Plan {
  Plan(Couple& of, std::uint64_t seed, bool shared) : c(of), rng(seed) {
    c.a.fill(seed);
    c.b.fill(seed + 1);
    local = c.a.local;
    target = c.b.target;
    constexpr WrOp kOps[] = {WrOp::Send, WrOp::SendImm,  WrOp::SendInv, WrOp::Write,
                             WrOp::Read, WrOp::WriteImm, WrOp::FetchAdd};
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      const WrOp op = kOps[rng.below(std::size(kOps))];
      ops.push_back(op);
      constexpr std::uint32_t kLengths[] = {0, 1, 255, 1024, 1025, 4999};
      std::uint32_t n = op == WrOp::FetchAdd ? 8 : kLengths[rng.below(std::size(kLengths))];
      std::uint64_t value = rng.next();
      lengths.push_back(n);
      std::uint8_t* const mine = &local[i * kSlot];
      std::uint8_t* const theirs = &target[i * kSlot];
      if (op == WrOp::SendInv) {
        value = c.b.end->memory.register_memory(kPd, c.b.inbox.data(), 8, verbs::kLocalWrite);
        gone.push_back(static_cast<std::uint32_t>(value));
      }
      values.push_back(value);
      if (op == WrOp::Write || op == WrOp::WriteImm) std::memcpy(theirs, mine, n);
      if (op == WrOp::Read) std::memcpy(mine, theirs, n);
      if (op == WrOp::FetchAdd) {
        std::uint64_t cell;
        std::memcpy(&cell, theirs, 8);
        std::memcpy(mine, theirs, 8);
        cell += value;
        std::memcpy(theirs, &cell, 8);
      }
      c.a.post(i, op, n, c.b, value);
      if (op != WrOp::Write && op != WrOp::Read && op != WrOp::FetchAdd) {
        if (!shared) c.b.receive(static_cast<std::uint32_t>(takes.size()));
        takes.push_back(i);
      }
    }
  }
  void check(Done& at_a, Done& at_b, bool shared) {
    const auto& sent = at_a.sent[c.a.qp->number()];
    ASSERT_EQ(sent.size(), kMessages);
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      EXPECT_EQ(sent[i].wr_id, i);
      EXPECT_EQ(sent[i].status, Status::Success);
      EXPECT_EQ(sent[i].op, ops[i]);
    }
    const auto& received = at_b.received[c.b.qp->number()];
    ASSERT_EQ(received.size(), takes.size());
    for (std::size_t k = 0; k < takes.size(); ++k) {
      const std::uint32_t i = takes[k];
      const verbs::Completion& r = received[k];
      EXPECT_EQ(r.status, Status::Success);
      EXPECT_EQ(r.byte_len, lengths[i]);
      EXPECT_EQ(r.with_immediate, ops[i] == WrOp::SendImm || ops[i] == WrOp::WriteImm);
      EXPECT_EQ(r.immediate, r.with_immediate ? values[i] & 0xffffffff : 0u);
      EXPECT_EQ(r.with_invalidate, ops[i] == WrOp::SendInv);
      if (shared) continue;
      EXPECT_EQ(r.wr_id, k);
      const std::uint32_t n = ops[i] == WrOp::WriteImm ? 0 : lengths[i];
      EXPECT_EQ(std::memcmp(&c.b.inbox[k * kSlot], &local[i * kSlot], n), 0);
      EXPECT_TRUE(std::all_of(&c.b.inbox[k * kSlot + n], &c.b.inbox[(k + 1) * kSlot - 1],
                              [](std::uint8_t byte) { return byte == 0; }));
    }
    EXPECT_EQ(c.a.local, local);
    EXPECT_EQ(c.b.target, target);
    for (const std::uint32_t key : gone) EXPECT_EQ(c.b.end->memory.find(key), nullptr);
  }

  Couple& c;
  Rng rng;
  std::vector<WrOp> ops;
  std::vector<std::uint32_t> lengths, takes, gone;
  std::vector<std::uint64_t> values;
  Bytes local, target;
};

void run_mixed(std::uint64_t seed, std::uint64_t* lost) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  const urnic::test::WireFaults faults{0.01 * static_cast<double>(rng.below(8)),
                                       0.01 * static_cast<double>(rng.below(8)),
                                       0.01 * static_cast<double>(rng.below(8))};
  const auto net = std::make_unique<Net>(seed, faults);
  verbs::SharedReceiveQueue srq(kPd, 512, 4);
  {
    Pairing p4, p6;
    p6.v6 = true;
    p6.mtu = ib::PathMtu::k256;
    p4.psn[0] = static_cast<std::uint32_t>(rng.next() & ib::kMask24);
    Couple one(*net, p4, kMessages), two(*net, p6, kMessages), three(*net, p4, kMessages, &srq);
    Plan first(one, seed, false), second(two, seed + 7, false), third(three, seed + 9, true);
    Bytes shared_inbox(kMessages * kSlot);
    const std::uint32_t key = net->b.memory.register_memory(
        kPd, shared_inbox.data(), shared_inbox.size(), verbs::kLocalWrite);
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(&shared_inbox[i * kSlot]), kSlot, key};
      ASSERT_EQ(srq.post({i, {&sge, 1}}), verbs::SharedReceiveQueue::Post::Ok);
    }
    for (Couple* c : {&one, &two, &three}) c->go(net->now);
    net->run();
    Done at_a(net->a), at_b(net->b);
    first.check(at_a, at_b, false);
    second.check(at_a, at_b, false);
    third.check(at_a, at_b, true);
    const auto& received = at_b.received[three.b.qp->number()];
    for (std::size_t k = 0; k < received.size(); ++k) {
      const std::uint32_t i = third.takes[k];
      if (third.ops[i] == WrOp::WriteImm) continue;
      EXPECT_EQ(std::memcmp(&shared_inbox[received[k].wr_id * kSlot], &third.local[i * kSlot],
                            third.lengths[i]),
                0);
    }
  }
  const Statistics s = net->a.side.statistics();
  EXPECT_EQ(s.drops.of(ib::Drop::BadIcrc) + s.drops.of(ib::Drop::Malformed), 0u);
  EXPECT_GE(s.requesters.packets, 3 * kMessages);
  EXPECT_EQ(s.sent, s.requesters.packets);
  *lost += net->wire().lost;
}

// proves: IB-76
TEST(TwoSides, EveryOperationOverAFaultyWireCompletesOnceInOrderAndIntact) {
  std::uint64_t lost = 0;
  const std::uint64_t seeds = std::getenv("URNIC_TEST_LONG") != nullptr ? 2000 : 40;
  for (std::uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    run_mixed(seed, &lost);
  }
  EXPECT_GT(lost, 10 * seeds);
}

// ---- failures

// Two pairs of queue pairs: one fails, the other works beside it.
struct Failing : ::testing::Test {
  void start(const Pairing& p) {
    bad = std::make_unique<Couple>(net, p, 4);
    good = std::make_unique<Couple>(net, Pairing{}, 4);
    good->a.fill(3);
    good->b.receive(0);
    good->a.post(0, WrOp::Send, 3000, good->b);
  }
  void run() {
    bad->go(net.now);
    good->go(net.now);
    net.run();
    Done at_a(net.a), at_b(net.b);
    sent = at_a.sent[bad->a.qp->number()];
    received = at_b.received[bad->b.qp->number()];
    ASSERT_EQ(at_a.sent[good->a.qp->number()].size(), 1u);
    EXPECT_EQ(at_a.sent[good->a.qp->number()][0].status, Status::Success);
    ASSERT_EQ(at_b.received[good->b.qp->number()].size(), 1u);
    EXPECT_EQ(at_b.received[good->b.qp->number()][0].status, Status::Success);
    EXPECT_EQ(std::memcmp(good->b.inbox.data(), good->a.local.data(), 3000), 0);
    EXPECT_EQ(good->a.qp->state, verbs::QpState::Rts);
    EXPECT_EQ(good->b.qp->state, verbs::QpState::Rts);
  }
  void expect_ended(Status first, std::size_t number) {
    ASSERT_EQ(sent.size(), number);
    EXPECT_EQ(sent[0].status, first);
    for (std::size_t i = 1; i < number; ++i) EXPECT_EQ(sent[i].status, Status::Flushed);
    EXPECT_EQ(bad->a.qp->state, verbs::QpState::Error);
  }
  Net net{1, {}};
  std::unique_ptr<Couple> bad, good;
  std::vector<verbs::Completion> sent, received;
};

// proves: IB-115, IB-117
TEST_F(Failing, ABadKeyIsARemoteAccessErrorAndFlushesBothEnds) {
  start({});
  bad->a.wrong_key = 0xdeadbeef;
  bad->b.receive(0);
  bad->a.post(0, WrOp::Write, 100, bad->b);
  bad->a.post(1, WrOp::Write, 100, bad->b);
  run();
  expect_ended(Status::RemoteAccess, 2);
  EXPECT_EQ(bad->b.qp->state, verbs::QpState::Error);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].status, Status::Flushed);
  EXPECT_EQ(net.b.log.count(QpEvent::RefusedAccess), 1u);
  EXPECT_EQ(net.b.side.statistics().responders.refusals, 1u);
}

TEST_F(Failing, AQueuePairWithoutRightsRefuses) {
  Pairing p;
  p.access = verbs::kRemoteRead;
  start(p);
  bad->a.post(0, WrOp::Write, 100, bad->b);
  run();
  expect_ended(Status::RemoteInvalidRequest, 1);
  EXPECT_EQ(bad->b.qp->state, verbs::QpState::Error);
}

TEST_F(Failing, ASendThatIsTooLongEndsBoth) {
  start({});
  bad->b.receive(0, 50);
  bad->a.post(0, WrOp::Send, 100, bad->b);
  run();
  expect_ended(Status::RemoteInvalidRequest, 1);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].status, Status::LocalLength);
}

// proves: IB-115
TEST_F(Failing, WithoutAReceiveRnrNaksAreSentUntilTheRetriesAreUsedUp) {
  Pairing p;
  p.rnr_retry = 2;
  start(p);
  bad->a.post(0, WrOp::Send, 100, bad->b);
  run();
  expect_ended(Status::RnrRetryExceeded, 1);
  EXPECT_EQ(net.b.side.statistics().responders.rnr_naks, 3u);
  EXPECT_EQ(bad->b.qp->state, verbs::QpState::Rts) << "nothing is wrong there";
}

TEST_F(Failing, AReceiveThatComesInTimeIsUsed) {
  start({});
  bad->a.fill(8);
  bad->a.post(0, WrOp::Send, 100, bad->b);
  bad->go(net.now);
  net.run(net.now + Duration::us(200));
  EXPECT_GE(net.b.side.statistics().responders.rnr_naks, 1u);
  bad->b.receive(0);
  run();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].status, Status::Success);
  EXPECT_EQ(std::memcmp(bad->b.inbox.data(), bad->a.local.data(), 100), 0);
}

// proves: IB-115, IB-69
TEST_F(Failing, AVanishedPeerEndsInRetryExceeded) {
  Pairing p;
  p.retry_count = 3;
  start(p);
  bad->a.post(0, WrOp::Send, 100, bad->b);
  bad->a.post(1, WrOp::Read, 100, bad->b);
  verbs::QueuePair& there = *bad->b.qp;
  QpChange reset;
  ASSERT_EQ(net.b.side.modify(there, reset, net.now), Modified::Ok);
  run();
  expect_ended(Status::RetryExceeded, 2);
  // Without credits only one Send is sent, and the READ waits after it.
  EXPECT_EQ(net.b.side.statistics().drops.of(ib::Drop::WrongState), 1u + 3);
  EXPECT_EQ(net.a.side.statistics().requesters.repeated, 3u);
}

// ---- the send queue drains

// proves: IB-112, IB-113
TEST_F(Failing, SqdFinishesBegunMessagesReportsOnceAndResumes) {
  start({});
  bad->a.fill(4);
  for (std::uint32_t i = 0; i < 3; ++i) bad->b.receive(i);
  bad->a.post(0, WrOp::Send, 4999, bad->b);
  bad->go(net.now);  // has begun
  net.run(net.now + Duration::us(5));
  verbs::QueuePair& qp = *bad->a.qp;
  QpChange sqd;
  sqd.to = verbs::QpState::Sqd;
  sqd.mask |= verbs::kQpAttrSqdNotify;
  sqd.tell_drained = true;
  net.run(net.now + Duration::us(12));  // neighbors are resolved
  ASSERT_EQ(net.a.side.modify(qp, sqd, net.now), Modified::Ok);
  bad->a.post(1, WrOp::Send, 10, bad->b);
  bad->go(net.now);
  QpChange retries = sqd;
  retries.mask = verbs::kQpAttrState | verbs::kQpAttrRetryCount;
  net.run();
  EXPECT_EQ(net.a.log.count(QpEvent::Drained), 1u);
  EXPECT_EQ(net.a.log.drained_at, 1u) << "not in the middle of a message";
  EXPECT_EQ(net.a.side.modify(qp, retries, net.now), Modified::Ok);
  EXPECT_LE(qp.sq.tail() - qp.sq.head(), 2u);
  EXPECT_NE(qp.sq.head(), qp.sq.tail()) << "what was posted in Sqd waits";
  net.run();
  EXPECT_EQ(net.a.log.count(QpEvent::Drained), 1u);
  QpChange rts;
  rts.to = verbs::QpState::Rts;
  ASSERT_EQ(net.a.side.modify(qp, rts, net.now), Modified::Ok);
  run();
  ASSERT_EQ(sent.size(), 2u);
  for (const verbs::Completion& c : sent) EXPECT_EQ(c.status, Status::Success);
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(std::memcmp(bad->b.inbox.data(), bad->a.local.data(), 4999), 0);
}

// ---- connections with an own address

TEST(OwnAddress, AQueuePairTalksToItselfAndToItsNeighbour) {
  SideEnd end(0);
  Pairing p;
  p.psn[1] = p.psn[0];
  Half a(end, 2), b(end, 2);
  Instant now = Instant::from_ns(1);
  for (Half* h : {&a, &b}) {
    const std::uint32_t dest = h == &a ? b.qp->number() : a.qp->number();
    QpChange rtr = to_rtr(p, 0, dest);
    rtr.av.remote = rtr.av.local;
    ASSERT_EQ(end.side.modify(*h->qp, to_init(p), now), Modified::Ok);
    ASSERT_EQ(end.side.modify(*h->qp, rtr, now), Modified::Ok);
    ASSERT_EQ(end.side.modify(*h->qp, to_rts(p, 0), now), Modified::Ok);
  }
  a.fill(1);
  b.receive(0);
  a.post(0, WrOp::Send, 4999, b);
  a.post(1, WrOp::Read, 700, b);
  end.side.sends_posted(*a.qp, now);
  for (int i = 0; i < 20; ++i) end.poll(now);
  const auto all = end.completions();
  ASSERT_EQ(all.size(), 3u);
  for (const auto& c : all) EXPECT_EQ(c.completion.status, Status::Success);
  EXPECT_EQ(std::memcmp(b.inbox.data(), a.local.data(), 4999), 0);
  EXPECT_EQ(std::memcmp(&a.local[kSlot], &b.target[kSlot], 700), 0);
  end.side.destroy(std::move(a.qp));
  end.side.destroy(std::move(b.qp));
}

}  // namespace
}  // namespace urnic::roce::test
