// XRC over frames: a sending end on one side, a receiving end with shared receive queues on the
// other, and a clean wire. Also packets for other queue pairs, and a message whose queue is
// destroyed.
#include <array>
#include <vector>

#include "ib/xrc_queues.h"
#include "roce/side_end.h"
#include "roce/xrc.h"

namespace urnic::roce::test {
namespace {

using verbs::QpState;
using verbs::Service;

constexpr std::uint32_t kDomain = 9;

struct XrcSides : ::testing::Test {
  XrcSides() {
    for (int i = 0; i < 2; ++i) {
      memory[i].resize(40'000);
      for (std::size_t k = 0; k < memory[i].size(); ++k) {
        memory[i][k] = static_cast<std::uint8_t>(k * 7 + k / 256 + i);
      }
      key[i] = ends[i].memory.register_memory(
          kPd, memory[i].data(), memory[i].size(),
          verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead);
    }
    EXPECT_TRUE(queues.open(&queue, kDomain, &cq));
    from = make(0, Service::XrcSend);
    to = make(1, Service::XrcReceive);
  }
  ~XrcSides() override {
    for (auto* qp : {&from, &other_from}) {
      if (*qp) ends[0].side.destroy(std::move(*qp));
    }
    for (auto* qp : {&to, &other_to}) {
      if (*qp) ends[1].side.destroy(std::move(*qp));
    }
  }
  Options selective() {
    Options o = SideEnd::keyed(1);
    o.xrc = &queues;
    o.selective = true;
    o.loss.type = ib::ConnectionType::Fast;
    return o;
  }
  std::unique_ptr<verbs::QueuePair> make(int i, Service service) {
    verbs::CompletionQueue* const send = service == Service::XrcReceive ? nullptr : &ends[i].cq;
    verbs::CompletionQueue* const receive = verbs::is_xrc(service) ? nullptr : &ends[i].cq;
    return ends[i].side.create(service, kPd, {}, send, receive, nullptr, kDomain);
  }
  // Moves it with the attributes that its service has.
  void move(int i, verbs::QueuePair& qp, std::uint32_t dest, QpState to_state) {
    QpChange c = to_state == QpState::Init  ? to_init(pairing)
                 : to_state == QpState::Rtr ? to_rtr(pairing, i, dest)
                                            : to_rts(pairing, i);
    const verbs::QpMask takes = verbs::attributes(qp.state.service(), qp.state, to_state);
    c.mask &= verbs::kQpAttrState | takes.required | takes.optional;
    ASSERT_EQ(ends[i].side.modify(qp, c, now), Modified::Ok);
  }
  void ready(int i, verbs::QueuePair& qp, std::uint32_t dest, QpState last = QpState::Rts) {
    for (const QpState state : {QpState::Init, QpState::Rtr, QpState::Rts}) {
      if (state <= last) move(i, qp, dest, state);
    }
  }
  void up(QpState receiving = QpState::Rtr) {
    ready(0, *from, to->number());
    ready(1, *to, from->number(), receiving);
    run();  // path resolution and hellos
  }
  verbs::Sge sge(int i, std::size_t at, std::uint32_t length) const {
    return {reinterpret_cast<std::uintptr_t>(&memory[i][at]), length, key[i]};
  }
  void post(int i, verbs::QueuePair& qp, verbs::WrOp op, std::uint32_t length,
            std::uint32_t number) {
    const verbs::Sge piece = sge(i, 0, length);
    verbs::SendWr wr;
    wr.op = op;
    wr.flags = verbs::kSignaled;
    wr.sges = {&piece, 1};
    wr.remote_address = sge(1 - i, 20'000, 0).addr;
    wr.rkey = key[1 - i];
    wr.remote_srq = number;
    ASSERT_EQ(qp.sq.post(wr), verbs::Post::Ok);
    ends[i].side.sends_posted(qp, now);
  }
  void receive(std::uint64_t id) {
    const verbs::Sge piece = sge(1, 30'000, 8000);
    ASSERT_EQ(queue.post({id, {&piece, 1}}), verbs::SharedReceiveQueue::Post::Ok);
  }
  // Runs until nothing moves any more; at most `most` packets reach the second end.
  void run(unsigned most = ~0u) {
    for (int idle = 0; idle < 3;) {
      bool any = false;
      for (int i = 0; i < 2; ++i) {
        ends[i].poll(now);
        for (Bytes& frame : ends[i].sent()) {
          any = true;
          const bool packet = frame[12] == 8 && frame[13] == 0;
          if (i == 0 && packet && most == 0) continue;
          if (i == 0 && packet) --most;
          ends[1 - i].arrive(frame);
        }
      }
      idle = any ? 0 : idle + 1;
      now = now + Duration::us(1);
    }
  }
  std::vector<verbs::Cqe> received() {
    std::vector<verbs::Cqe> all(64);
    all.resize(static_cast<std::size_t>(std::max(0, cq.poll(all))));
    return all;
  }
  std::uint64_t wrong_service(int i) {
    return ends[i].side.statistics().drops.of(ib::Drop::WrongService);
  }

  Pairing pairing;
  Instant now = Instant::from_ns(1000);
  verbs::CompletionQueue cq{64};
  verbs::SharedReceiveQueue queue{kPd, 8, 1};
  ib::XrcQueues queues{SipKey{1, 2}};
  SideEnd ends[2] = {SideEnd(0, selective()), SideEnd(1, selective())};
  std::array<Bytes, 2> memory;
  std::uint32_t key[2] = {};
  std::unique_ptr<verbs::QueuePair> from, to, other_from, other_to;
};

// proves: IB-162
TEST_F(XrcSides, AReceiveCompletesOnItsSharedQueuesCqWithTheQueuePairNumber) {
  up();
  receive(5);
  post(0, *from, verbs::WrOp::Send, 3000, queue.xrc.number);
  run();
  const auto came = received();
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(came[0].completion.wr_id, 5u);
  EXPECT_EQ(came[0].qp_number, to->number());
  EXPECT_EQ(came[0].places, nullptr);
  ASSERT_EQ(ends[0].completions().size(), 1u);
  EXPECT_TRUE(std::equal(memory[0].begin(), memory[0].begin() + 3000, memory[1].begin() + 30'000));
}

// proves: IB-164
TEST_F(XrcSides, PacketsForTheOtherHalfOrOfRcAreDroppedAndCounted) {
  ends[1].like_last = true;
  up(QpState::Rts);
  post(0, *from, verbs::WrOp::Write, 100, queue.xrc.number);
  run();
  ASSERT_EQ(ends[0].completions().size(), 1u);
  const Bytes before = memory[1];
  // RC packets to the receiving end, with the PSN it expects; also on the fast path.
  other_from = make(0, Service::Rc);
  pairing.psn[0] += 1;
  ready(0, *other_from, to->number());
  std::fill(memory[0].begin(), memory[0].begin() + 1000, std::uint8_t{0xee});
  post(0, *other_from, verbs::WrOp::Write, 1000, 0);
  run();
  EXPECT_GE(wrong_service(1), 1u);
  EXPECT_EQ(ends[1].short_ways, 0);
  EXPECT_EQ(memory[1], before);
  // Requests to a sending end.
  other_to = make(1, Service::XrcSend);
  ready(1, *other_to, from->number());
  post(1, *other_to, verbs::WrOp::Write, 100, queue.xrc.number);
  run();
  EXPECT_GE(wrong_service(0), 1u);
}

// proves: IB-163
TEST_F(XrcSides, AQueueMayBeDestroyedInTheMiddleOfAMessage) {
  up();
  receive(5);
  receive(6);
  post(0, *from, verbs::WrOp::Send, 4000, queue.xrc.number);
  run(1);
  ASSERT_EQ(to->rq.posted(), 1u) << "in use";
  close_xrc(&queues, ends[1].side.contexts(), &queue);
  ASSERT_EQ(to->rq.posted(), 0u);
  ASSERT_EQ(to->rq.shared(), nullptr);
  for (int i = 0; i < 20; ++i) {  // lost packets are repeated
    now = now + Duration::ms(5);
    run();
  }
  EXPECT_EQ(to->state, QpState::Error);
  const auto failed = ends[0].completions();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].completion.status, verbs::Status::RemoteInvalidRequest);
  EXPECT_TRUE(received().empty());
}

// The receive in use is flushed to its own completion queue; other queues keep theirs.
TEST_F(XrcSides, AnEndInErrorFlushesOnlyTheReceiveInUse) {
  up();
  receive(5);
  receive(6);
  post(0, *from, verbs::WrOp::Send, 4000, queue.xrc.number);
  run(1);
  ASSERT_EQ(to->rq.posted(), 1u);
  EXPECT_TRUE(ends[1].side.fail(*to));
  const auto flushed = received();
  ASSERT_EQ(flushed.size(), 1u);
  EXPECT_EQ(flushed[0].completion.wr_id, 5u);
  EXPECT_EQ(flushed[0].completion.status, verbs::Status::Flushed);
  EXPECT_EQ(flushed[0].qp_number, to->number());
  EXPECT_EQ(queue.available(), 1u);
  EXPECT_EQ(ends[1].log.last_receives, 0);
}

// proves: IB-106
TEST_F(XrcSides, ResetForgetsItsReceivesOnTheQueuesOfTheDomain) {
  up();
  receive(5);
  post(0, *from, verbs::WrOp::Send, 100, queue.xrc.number);
  run();
  ASSERT_EQ(ends[0].completions().size(), 1u);
  ASSERT_EQ(cq.size(), 1u);
  ASSERT_EQ(ends[1].side.modify(*to, {}, now), Modified::Ok);
  EXPECT_TRUE(received().empty());
}

// S-7: by hellos, whether the receiving end is in Rts or stays in Rtr.
TEST_F(XrcSides, BothEndsDetectThatThePeerIsUrnic) {
  for (const QpState last : {QpState::Rtr, QpState::Rts}) {
    up(last);
    run();
    EXPECT_TRUE(context_of(*from).attributes.peer_selective);
    EXPECT_TRUE(context_of(*to).attributes.peer_selective);
    QpChange reset;
    ASSERT_EQ(ends[0].side.modify(*from, reset, now), Modified::Ok);
    ASSERT_EQ(ends[1].side.modify(*to, reset, now), Modified::Ok);
  }
}

// Its packets are four bytes longer: an MTU that is enough for RC may be too small.
TEST_F(XrcSides, ThePathMtuLeavesRoomForTheXrceth) {
  SideEnd narrow(0, SideEnd::keyed(1), 1024 + 20 + kMostAround);
  for (const auto& [service, fits] : {std::pair{Service::Rc, true}, {Service::XrcSend, false}}) {
    auto qp = narrow.side.create(service, kPd, {}, &narrow.cq,
                                 service == Service::Rc ? &narrow.cq : nullptr);
    ASSERT_EQ(narrow.side.modify(*qp, to_init(pairing), now), Modified::Ok);
    QpChange c = to_rtr(pairing, 0, 77);
    const verbs::QpMask takes = verbs::attributes(service, QpState::Init, QpState::Rtr);
    c.mask &= verbs::kQpAttrState | takes.required;
    EXPECT_EQ(narrow.side.modify(*qp, c, now), fits ? Modified::Ok : Modified::BadValue);
    narrow.side.destroy(std::move(qp));
  }
}

}  // namespace
}  // namespace urnic::roce::test
