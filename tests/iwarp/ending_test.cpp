// How connections end: the peer is notified, the consumer gets its events, and no state is left.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/iwarp/hand_wire.h"
#include "tests/iwarp/out_logic.h"
#include "tests/iwarp/rx_path.h"

namespace urnic::test {
namespace {

using Kind = CmEvent::Kind;

// A simulated peer that connects, and an engine with work for it.
struct ConnectionEnd : RxPath {
  engine::Engine& engine() { return p.node().engine(); }
  // The engine may send from now on. The data that the peer has sent so far ends at start().
  void begin() {
    ASSERT_TRUE(p.up());
    const Bytes first = p.write(0, Bytes(100, 1));
    p.send(0, first);
    start = first.size();
    p.acknowledge(start);
    p.node().events.clear();
  }
  // Sends a Write of ours, which the peer does not acknowledge.
  void write_unacknowledged() {
    const verbs::Sge sge{p.to(0), 3000, p.stag};
    verbs::SendWr wr;
    wr.wr_id = 7;
    wr.op = verbs::WrOp::Write;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, 1};
    wr.rkey = 0x1234;
    ASSERT_EQ(p.node().post_send(*p.qp, wr, p.now), verbs::Post::Ok);
    p.burst({});
    const auto& snd = p.connection()->tcb.snd;
    in_flight = static_cast<std::uint32_t>(snd.nxt - snd.una);
    ASSERT_GT(in_flight, 3000u);
  }
  // A violation, which causes a Terminate.
  static Bytes offence() {
    return make_fpdu(ddp::test::write_segment(0xdeadbeef, 0, Bytes(100, 1)));
  }
  static Bytes terminate(std::uint8_t layer, std::uint8_t etype) {
    auto ulpdu = ddp::test::terminate_segment(ddp::Violation::TaggedBounds);
    ulpdu.resize(ulpdu.size() - 3);
    ulpdu.back() = static_cast<std::uint8_t>(layer << 4 | etype);
    ulpdu.insert(ulpdu.end(), {0, 0, 0});
    return make_fpdu(ulpdu);
  }
  std::vector<Answer> arrive(std::uint64_t at, Bytes bytes, std::uint16_t flags,
                             std::uint32_t behind) {
    Cut c;
    c.at = at;
    c.bytes = std::move(bytes);
    c.flags = flags;
    c.behind = behind;
    return p.burst({c});
  }
  std::uint64_t start = 0;
  std::uint32_t in_flight = 0;
};

// ---- the stream has ended, but TCP has not

// proves: E-50
TEST_F(ConnectionEnd, AFinAfterDiscardedBytesIsAccepted) {
  begin();
  const Bytes bad = offence();
  p.send(start, bad);
  const std::uint64_t at = start + bad.size();
  const auto got = arrive(at, Bytes(100, 9), tcp::kAck | tcp::kFin, 0);
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(got.back().ack, at + 100 + 1);
  EXPECT_EQ(engine().iwarp().state().connections.size(), 0u);
  EXPECT_EQ(engine().tables().time_wait, 1u);
  ASSERT_FALSE(p.node().events.empty());
  EXPECT_EQ(p.node().events.back().kind, Kind::Disconnected);
}

// The peer accepts the Terminate, or has sent one, and then sends nothing any more.
// proves: E-50
TEST_F(ConnectionEnd, APeerThatDoesNotCloseAfterATerminateIsGivenUpSoon) {
  for (const bool ours : {true, false}) {
    SCOPED_TRACE(ours ? "ours" : "the peer's");
    ConnectionEnd_APeerThatDoesNotCloseAfterATerminateIsGivenUpSoon_Test one;
    one.begin();
    const Bytes last = ours ? offence() : terminate(1, 1);
    one.p.send(one.start, last);
    const std::uint64_t at = one.start + last.size();
    one.p.acknowledge(at);
    EXPECT_EQ(one.engine().tables().connections, 1u);
    const auto words = one.p.pass(Duration::s(12));
    EXPECT_EQ(one.engine().tables().connections, 0u);
    EXPECT_TRUE(std::any_of(words.begin(), words.end(),
                            [](const Answer& a) { return a.seg.has(tcp::kRst); }));
  }
}

// Only the peer knows the reason: errors of layers RDMAP and DDP are access errors, all others
// failed operations.
// proves: E-50
TEST_F(ConnectionEnd, TheErrorOfATerminateIsTheStatusOfTheRequestAtFault) {
  const struct {
    std::uint8_t layer, etype;
    verbs::Status status;
  } kRows[] = {{0, 1, verbs::Status::RemoteAccess},
               {1, 1, verbs::Status::RemoteAccess},
               {0, 2, verbs::Status::RemoteOperation},
               {2, 1, verbs::Status::RemoteOperation}};
  for (const auto& row : kRows) {
    SCOPED_TRACE(static_cast<int>(row.layer * 16 + row.etype));
    ConnectionEnd_TheErrorOfATerminateIsTheStatusOfTheRequestAtFault_Test one;
    one.begin();
    one.write_unacknowledged();
    one.arrive(one.start, terminate(row.layer, row.etype), tcp::kAck, one.in_flight);
    ASSERT_EQ(one.p.sends().size(), 1u);
    EXPECT_EQ(one.p.sends()[0].completion.status, row.status);
    EXPECT_EQ(one.p.stats().iwarp.ddp.terminates_received, 1u);
  }
}

// TCP must deliver every byte it has numbered.
// proves: E-50
TEST_F(ConnectionEnd, DataSentBeforeATerminateIsResentIfLost) {
  begin();
  write_unacknowledged();
  const Bytes last = terminate(1, 1);
  arrive(start, last, tcp::kAck, in_flight);
  std::size_t again = 0;
  for (const Answer& a : p.pass(Duration::s(3))) again += a.payload.size();
  EXPECT_GE(again, 1000u);
}

// ---- FIN

// RFC 5040 5.1: with work outstanding, the end is not orderly.
// proves: E-50
TEST_F(ConnectionEnd, AFinWithOurWorkOutstandingFailsTheConnection) {
  begin();
  write_unacknowledged();
  const auto got = arrive(start, {}, tcp::kAck | tcp::kFin, in_flight);
  ASSERT_EQ(p.node().events.size(), 1u);
  EXPECT_EQ(p.node().events[0].kind, Kind::Failed);
  EXPECT_EQ(p.node().events[0].code, Errc::reset);
  EXPECT_EQ(engine().tables().connections, 0u);
  ASSERT_FALSE(got.empty());
  EXPECT_TRUE(got.back().seg.has(tcp::kRst));
}

// The last completions can still be polled.
// proves: E-50
TEST_F(ConnectionEnd, AnOrderlyFinWaitsForCloseWait) {
  begin();
  p.connection()->close_wait_ms = 1000;
  arrive(start, {}, tcp::kAck | tcp::kFin, 0);
  EXPECT_EQ(p.qp->state, verbs::QpState::Rts);
  p.pass(Duration::ms(999));
  EXPECT_EQ(p.qp->state, verbs::QpState::Rts);
  EXPECT_EQ(p.node().events.size(), 0u);
  p.pass(Duration::ms(2));
  EXPECT_EQ(p.qp->state, verbs::QpState::Sqd);
  p.acknowledge(start + 1);
}

// proves: E-50
TEST_F(ConnectionEnd, AFinWithWorkOutstandingDoesNotWait) {
  begin();
  p.connection()->close_wait_ms = 1000;
  write_unacknowledged();
  arrive(start, {}, tcp::kAck | tcp::kFin, in_flight);
  ASSERT_EQ(p.node().events.size(), 1u);
  EXPECT_EQ(p.node().events[0].kind, Kind::Failed);
}

// proves: E-50
TEST_F(ConnectionEnd, AFinAfterTheConsumersDisconnectDoesNotWait) {
  begin();
  p.connection()->close_wait_ms = 1000;
  arrive(start, {}, tcp::kAck | tcp::kFin, 0);
  engine().iwarp().disconnect(*p.qp, p.now);
  EXPECT_EQ(p.qp->state, verbs::QpState::Sqd);
  EXPECT_TRUE(p.connection()->fin_queued);
}

// The bytes arrived before; the new information is that they were the last.
// proves: E-50
TEST_F(ConnectionEnd, AFinAfterDuplicateBytesIsAccepted) {
  begin();
  const auto got = arrive(0, p.write(0, Bytes(100, 1)), tcp::kAck | tcp::kFin, 0);
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(got.back().ack, start + 1);
  EXPECT_EQ(p.qp->state, verbs::QpState::Sqd);
}

// ---- RST

// The rejecting Reply is lost every time, and so is everything the peer sends: the peer still gets
// a RST.
// proves: E-50
TEST(EndingByReset, AFailedLingerEndsByReset) {
  HandWire w;
  ASSERT_TRUE(w.right.engine().iwarp().listen(7000, 4));
  auto* qp = w.left.node->make_qp();
  ASSERT_TRUE(w.ask(*qp));
  std::size_t resets = 0;
  w.watch = [&](Bytes f, bool to_right) -> std::vector<Bytes> {
    const auto s = WireSegment::of(f);
    if (!s) return {std::move(f)};  // its host exists
    resets += !to_right && s->seg.has(tcp::kRst);
    return {};
  };
  w.right.engine().iwarp().reject(w.right.node->events.front().request.id, {}, w.now);
  EXPECT_EQ(w.right.engine().tables().pending, 0u) << "the consumer has answered";
  w.run_for(Duration::s(9));
  EXPECT_EQ(w.right.engine().tables().connections, 1u);
  EXPECT_EQ(resets, 0u);
  w.run_for(Duration::s(2));
  EXPECT_EQ(w.right.engine().tables().connections, 0u);
  EXPECT_EQ(resets, 1u);
}

// The port accepts no frames any more, so the peer cannot be notified. The engine does not wait for
// ever.
// proves: E-50, E-51
TEST(EndingByReset, AResetWithoutRoomIsGivenUpSoon) {
  Receiver r(receiver(ConnectionType::Fast));
  r.full = true;
  r.engine().iwarp().abort(r.qp(), r.now());
  EXPECT_EQ(r.engine().tables().connections, 1u);
  r.pass(Duration::ms(1500));
  EXPECT_EQ(r.engine().tables().connections, 0u);
  EXPECT_EQ(r.engine().tables().timers, 0u);
}

// proves: E-51
TEST(EndingByReset, ATimerRunsEvenIfNothingCanBeSent) {
  Receiver r(receiver(ConnectionType::Fast));
  r.node().events.clear();
  r.full = true;
  r.arrive(0, {}, true);
  EXPECT_EQ(r.qp().state, verbs::QpState::Sqd);
  r.pass(Duration::s(12));
  ASSERT_EQ(r.node().events.size(), 1u);
  EXPECT_EQ(r.node().events[0].code, Errc::timed_out);
}

// A start-up fails while the port is full. Its RST waits for room. It no longer belongs to the
// listener, which may be closed before it is sent.
// proves: E-50
TEST(EndingByReset, AListenerMayCloseWhileAResetOfItsConnectionWaits) {
  Receiver r(receiver(ConnectionType::Fast));
  engine::Listener* const listener = r.engine().iwarp().listen(7001, 4).value();
  const auto arrive = [&](std::uint16_t flags, std::uint32_t seq, std::uint32_t ack,
                          const Bytes& payload) {
    tcp::Segment s;
    s.flags = flags;
    s.seq = tcp::Seq(seq);
    s.ack = tcp::Seq(ack);
    s.src_port = 4000;
    s.dst_port = 7001;
    s.window = 60000;
    r.put(s, payload);
    r.run();
  };
  arrive(tcp::kSyn, 99, 0, {});
  ASSERT_EQ(r.engine().tables().half_open, 1u);
  std::uint32_t iss = 0;
  r.engine().iwarp().state().connections.for_each([&](engine::Connection& c) {
    if (c.key.local_port == 7001) iss = c.tcb.snd.iss.value();
  });
  r.full = true;
  arrive(tcp::kAck, 100, iss + 1, Bytes(100, 0x47));
  ASSERT_EQ(r.engine().tables().connections, 2u) << "its RST has not left";
  ASSERT_EQ(r.engine().tables().pending, 0u);
  r.engine().iwarp().close_listener(listener, r.now());
  r.pass(Duration::ms(1500));
  EXPECT_EQ(r.engine().tables().connections, 1u);
}

// Our FIN is not answered: a connection that TCP gives up has not ended in order.
// proves: E-50
TEST(EndingByReset, ACloseThatTcpGivesUpFailsTheConnection) {
  sim::PairOptions o = receiver(ConnectionType::Fast);
  o.right.tcp.data_retries = 2;
  Receiver r(o);
  r.node().events.clear();
  r.engine().iwarp().disconnect(r.qp(), r.now());
  r.pass(Duration::s(9));
  ASSERT_EQ(r.node().events.size(), 1u);
  EXPECT_EQ(r.node().events[0].kind, Kind::Failed);
  EXPECT_NE(r.node().events[0].message.find("stopped responding"), std::string::npos)
      << r.node().events[0].message;
}

// The peer's address is not answered any more either: the engine does not wait.
// proves: E-50
TEST(EndingByReset, ALingeringConnectionEndsWhenItsNeighbourIsGone) {
  HandWire w;
  ASSERT_TRUE(w.right.engine().iwarp().listen(7000, 4));
  auto* qp = w.left.node->make_qp();
  ASSERT_TRUE(w.ask(*qp));
  w.watch = [](const Bytes&, bool) { return std::vector<Bytes>(); };
  w.right.engine().iwarp().reject(w.right.node->events.front().request.id, {}, w.now);
  EXPECT_EQ(w.right.engine().tables().connections, 1u);
  w.run_for(Duration::s(9));
  EXPECT_EQ(w.right.engine().tables().connections, 0u);
}

// ---- before it is established

// The program gives up while TCP opens, or while the peer's program has the MPA Request before it.
// proves: E-50
TEST(EndingEarly, ADisconnectDuringStartUpFailsTheConnectionAtOnce) {
  for (const bool asked : {false, true}) {
    SCOPED_TRACE(asked ? "MPA start-up" : "TCP opens");
    HandWire w;
    engine::Engine &left = w.left.engine(), &right = w.right.engine();
    auto& control = right.iwarp_control();
    auto listener = control.bind({.at = {IpAddress::any_v6(), 7000}}, verbs::Service::Rc);
    ASSERT_TRUE(listener.ok());
    ASSERT_TRUE(control.listen(**listener, 4).ok());
    auto* const qp = w.left.node->make_qp();
    const auto params = left.iwarp().default_params();
    ASSERT_TRUE(left.iwarp().connect(*qp, {IpAddress::v4(10, 0, 0, 2), 7000}, params, w.now).ok());
    auto& requests = w.right.node->events;
    if (asked) {
      ASSERT_TRUE(w.run_until([&] { return !requests.empty(); }, Duration::s(1)));
    }
    ASSERT_EQ(left.iwarp().find(qp->connection)->stage,
              asked ? iwarp::Stage::Startup : iwarp::Stage::Opening);
    left.iwarp().disconnect(*qp, w.now);
    EXPECT_EQ(qp->state, verbs::QpState::Error);
    const auto& told = w.left.node->events;
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].kind, Kind::ConnectFailed);
    EXPECT_EQ(told[0].code, Errc::closed);
    EXPECT_EQ(told[0].message, "the connection was closed before it was established");
    EXPECT_EQ(left.tables().connections, 0u);
    w.run_for(Duration::ms(1));  // less than any time-out
    EXPECT_EQ(right.tables().connections, 0u) << "it has heard of it";
    EXPECT_EQ(right.tables().pending, 0u);
    w.run_for(Duration::s(20));
    EXPECT_EQ(told.size(), 1u);
    EXPECT_EQ(left.iwarp().state().counters.failed, 1u);
  }
}

// ---- counters

// proves: E-48, E-50
TEST_F(ConnectionEnd, TheCountersOfAConnectionOutliveIt) {
  begin();
  write_unacknowledged();
  const auto sent = p.stats().verbs.writes_sent;
  ASSERT_EQ(sent, 1u);
  ASSERT_EQ(engine().iwarp_control().move(*p.qp, verbs::QpState::Reset, verbs::kQpAttrState, p.now),
            verbs::QpVerdict::Ok);
  EXPECT_EQ(p.stats().verbs.writes_sent, sent) << "of the queue pair, the last one it had";
  p.burst({});
  EXPECT_EQ(p.engine_stats().ended.verbs.writes_sent, sent) << "of all that have ended";
}

}  // namespace
}  // namespace urnic::test
