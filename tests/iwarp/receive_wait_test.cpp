// Sends without a posted receive in a stream that TCP has acknowledged, if the consumer lets them
// wait (receive_wait_ms): our own TCP, SLOW.
#include "tests/iwarp/out_logic.h"
#include "tests/iwarp/rx_path.h"

namespace urnic::test {
namespace {

constexpr Duration kWait = Duration::s(60);

struct ReceiveWait : RxPath {
  ReceiveWait() { p.options.receive_wait = kWait; }

  // Send 1 waits; Write 0 comes after it.
  void wait_with_a_write_behind() {
    up_slow();
    message = HandPeer::send_message(1, Bytes(100, 5));
    end = message.size() + kSize;
    p.send(0, joined({message, fpdus[0]}));
  }
  bool told(engine::CmEvent::Kind kind) {
    const auto& events = p.node().events;
    return std::any_of(events.begin(), events.end(),
                       [&](const engine::CmEvent& e) { return e.kind == kind; });
  }

  Bytes message;
  std::uint64_t end = 0;
};

// proves: R-116
TEST_F(ReceiveWait, ASendAndAllLaterDataWaitForItsReceive) {
  wait_with_a_write_behind();
  EXPECT_EQ(p.rcv_nxt(), end) << "acknowledged";
  EXPECT_TRUE(p.untouched());
  const auto more = p.send(end, fpdus[1]);
  EXPECT_EQ(p.rcv_nxt(), end + kSize);
  EXPECT_TRUE(p.untouched());
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 0u);
  EXPECT_EQ(p.stats().iwarp.receive_waits, 1u);
  // Without any poll.
  ASSERT_TRUE(p.post_receive(77, 20000, 900));
  EXPECT_EQ(p.at(20000, 100), Bytes(100, 5));
  EXPECT_TRUE(placed(0));
  EXPECT_TRUE(placed(1));
  ASSERT_EQ(good_receives(p), 1u);
  EXPECT_EQ(p.receives()[0].completion.wr_id, 77u);
  // From here on everything works as usual.
  p.send(end + kSize, fpdus[2]);
  EXPECT_TRUE(placed(2));
  p.pass(kWait + Duration::s(1));
  EXPECT_EQ(p.qp->state, verbs::QpState::Rts);
}

// proves: R-116
TEST_F(ReceiveWait, TheWindowClosesAndSendingContinues) {
  p.options.tcp.receive_buffer = 64 << 10;
  wait_with_a_write_behind();
  std::uint64_t at = end;
  const Bytes w = p.write(0, Bytes(1200, 7));
  std::uint32_t window = 65535;
  for (int i = 0; i < 200 && window >= w.size(); ++i) {
    const auto a = p.send(at, w);
    ASSERT_FALSE(a.empty());
    window = a.back().seg.window;
    at += w.size();
    ASSERT_EQ(a.back().ack, at);
  }
  EXPECT_LT(window, w.size());
  EXPECT_TRUE(p.untouched());
  // A Send of ours leaves in the meantime.
  const verbs::Sge sge{p.to(0), 300, p.stag};
  verbs::SendWr wr;
  wr.op = verbs::WrOp::Send;
  wr.sges = {&sge, 1};
  ASSERT_EQ(p.node().post_send(*p.qp, wr, p.now), verbs::Post::Ok);
  const auto out = p.pass(Duration::us(10));
  ASSERT_FALSE(out.empty());
  EXPECT_GT(out.front().payload.size(), 300u);
  ASSERT_TRUE(p.post_receive(1, 20000, 900));
  const auto opened = p.pass(Duration::us(10));
  ASSERT_FALSE(opened.empty()) << "the peer is told that the window is open";
  EXPECT_GT(opened.back().seg.window, 32u << 10);
  EXPECT_EQ(p.at(0, 1200), Bytes(1200, 7));
}

// proves: R-116
TEST_F(ReceiveWait, EachSendWaitsForAReceiveOfItsOwn) {
  up_slow();
  Bytes all;
  std::uint64_t at = 0;
  for (std::uint32_t msn = 1; msn <= 5; ++msn) {
    const Bytes m = HandPeer::send_message(msn, Bytes(100, static_cast<std::uint8_t>(msn)));
    p.send(at, m);
    at += m.size();
  }
  for (std::uint32_t i = 1; i <= 5; ++i) {
    EXPECT_EQ(good_receives(p), i - 1);
    ASSERT_TRUE(p.post_receive(i, i * 1000, 900));
    EXPECT_EQ(p.at(i * 1000, 100), Bytes(100, static_cast<std::uint8_t>(i)));
  }
  EXPECT_EQ(good_receives(p), 5u);
  EXPECT_EQ(p.stats().iwarp.receive_waits, 5u);
}

// proves: R-116
TEST_F(ReceiveWait, AWaitThatLastsTooLongEndsTheConnection) {
  wait_with_a_write_behind();
  p.pass(kWait - Duration::s(1));
  EXPECT_EQ(p.qp->state, verbs::QpState::Rts);
  const auto a = p.pass(Duration::s(2));
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 1u);
  EXPECT_EQ(p.qp->state, verbs::QpState::Error);
  EXPECT_TRUE(told(engine::CmEvent::Kind::Failed));
  EXPECT_TRUE(std::any_of(a.begin(), a.end(), [](const Answer& x) { return !x.payload.empty(); }));
  EXPECT_TRUE(p.untouched());
}

// proves: R-116
TEST_F(ReceiveWait, AFinAfterAWaitingSendIsProcessedAfterIt) {
  wait_with_a_write_behind();
  p.burst({{end, {}, false, tcp::kAck | tcp::kFin}});
  p.pass(Duration::s(5));
  EXPECT_FALSE(told(engine::CmEvent::Kind::Disconnected));
  EXPECT_EQ(p.qp->state, verbs::QpState::Rts);
  ASSERT_TRUE(p.post_receive(1, 20000, 900));
  EXPECT_EQ(good_receives(p), 1u);
  EXPECT_TRUE(placed(0));
  p.pass(Duration::us(10));
  p.acknowledge(end + 1);
  EXPECT_TRUE(told(engine::CmEvent::Kind::Disconnected));
  EXPECT_FALSE(told(engine::CmEvent::Kind::Failed));
}

// proves: R-116
TEST_F(ReceiveWait, AFinAfterAWaitingSendBoundsTheWait) {
  wait_with_a_write_behind();
  p.burst({{end, {}, false, tcp::kAck | tcp::kFin}});
  p.pass(p.options.linger_timeout + Duration::s(1));
  EXPECT_TRUE(told(engine::CmEvent::Kind::Failed));
}

// The receive was posted at the last moment, and its doorbell is still on the way. The waiting data
// is accepted, and the wait is over.
// proves: R-116
TEST_F(ReceiveWait, AReceivePostedBeforeTheWaitEndsIsUsed) {
  wait_with_a_write_behind();
  const verbs::Sge sge{p.to(20000), 900, p.stag};
  ASSERT_EQ(p.qp->rq.post({1, {&sge, 1}}), verbs::ReceiveQueue::Post::Ok);
  p.pass(kWait * 2);
  EXPECT_EQ(good_receives(p), 1u);
  EXPECT_TRUE(placed(0));
  EXPECT_EQ(p.qp->state, verbs::QpState::Rts);
  EXPECT_FALSE(told(engine::CmEvent::Kind::Failed));
}

// proves: R-116
TEST_F(ReceiveWait, AResetEndsTheWaitAtOnce) {
  wait_with_a_write_behind();
  p.burst({{end, {}, false, tcp::kRst}});
  EXPECT_TRUE(told(engine::CmEvent::Kind::Failed));
  EXPECT_EQ(p.qp->state, verbs::QpState::Error);
  p.pass(kWait * 2);
  EXPECT_EQ(p.engine_stats().connections.size(), 0u);
}

// proves: R-116
TEST_F(ReceiveWait, DisconnectDropsTheWaitingData) {
  wait_with_a_write_behind();
  p.node().engine().iwarp().disconnect(*p.qp, p.now);
  p.pass(Duration::us(10));
  EXPECT_TRUE(placed(0)) << "what is behind it is taken, and the window opens";
  p.burst({{end, {}, false, tcp::kAck | tcp::kFin}});
  p.pass(Duration::us(10));
  EXPECT_TRUE(told(engine::CmEvent::Kind::Disconnected));
  EXPECT_FALSE(told(engine::CmEvent::Kind::Failed));
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 0u);
}

TEST_F(ReceiveWait, DestructionDuringTheWaitEndsTheConnection) {
  wait_with_a_write_behind();
  p.node().engine().iwarp_control().destroy(p.qp, p.now);
  p.qp = nullptr;
  p.pass(kWait * 2);
  EXPECT_EQ(p.engine_stats().connections.size(), 0u);
}

// After a disconnect the end is orderly, and the closed window opens for the FIN.
// proves: R-116, E-50
TEST_F(ReceiveWait, DestructionAfterADisconnectDropsTheWaitingSend) {
  p.options.tcp.receive_buffer = 64 << 10;
  wait_with_a_write_behind();
  std::uint64_t at = end;
  const Bytes w = p.write(0, Bytes(1200, 7));
  for (std::uint32_t window = 65535; window >= w.size(); at += w.size()) {
    const auto a = p.send(at, w);
    ASSERT_FALSE(a.empty());
    window = a.back().seg.window;
  }
  p.node().engine().iwarp().disconnect(*p.qp, p.now);
  p.node().engine().iwarp_control().destroy(p.qp, p.now);
  p.qp = nullptr;
  const auto out = p.pass(Duration::us(10));
  ASSERT_FALSE(out.empty());
  EXPECT_GT(out.back().seg.window, 32u << 10) << "there is room for what stands before its FIN";
  EXPECT_TRUE(
      std::any_of(out.begin(), out.end(), [](const Answer& x) { return x.seg.has(tcp::kFin); }));
  EXPECT_TRUE(
      std::none_of(out.begin(), out.end(), [](const Answer& x) { return x.seg.has(tcp::kRst); }));
  EXPECT_TRUE(p.untouched());
}

// FAST: a Send that TCP has not acknowledged is dropped, whether or not Sends may wait.
// proves: R-113
TEST_F(ReceiveWait, OnFastTheSendIsStillDropped) {
  ASSERT_TRUE(p.up());
  p.send(0, HandPeer::send_message(1, Bytes(100, 5)));
  EXPECT_EQ(p.rcv_nxt(), 0u);
  EXPECT_EQ(p.stats().iwarp.empty_rq_drops, 1u);
  EXPECT_EQ(p.stats().iwarp.receive_waits, 0u);
}

verbs::SharedReceiveQueue* shared_queue(sim::Node& node) {
  return node.engine().queue_pairs().create_shared(node.pd, 8, 1);
}

// proves: R-116
TEST(ReceiveWaitShared, AReceiveOfASharedQueueCompletesAWaitingSend) {
  sim::PairOptions o = receiver(ConnectionType::Slow);
  o.right.receive_wait = kWait;
  Receiver r(o, 0, shared_queue);
  const Bytes m1 = send_fpdu(r.first, 20), m2 = send_fpdu(r.first + 1, 30);
  r.arrive(0, m1);
  r.arrive(m1.size(), m2);
  EXPECT_EQ(r.stats().iwarp.receive_waits, 1u);
  ASSERT_TRUE(r.post(1));
  EXPECT_EQ(r.done().size(), 1u);
  EXPECT_EQ(r.stats().iwarp.receive_waits, 2u);
  ASSERT_TRUE(r.post(2));
  EXPECT_EQ(r.done().size(), 2u);
  EXPECT_EQ(r.stats().iwarp.ddp.terminates_sent, 0u);
}

}  // namespace
}  // namespace urnic::test
