// Which attributes Modify QP of RoCE takes and refuses through the public API, what a device does
// not support, and how queue pairs end: in each state, with traffic, when the peer or the link has
// gone.
#include <atomic>

#include "tests/device/roce_ends.h"

namespace urnic::test {
namespace {

using RoceModify = RoceDevices;

void expect_refused(const Result<void>& r, Errc code, const std::string& text) {
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, code) << r.error().message;
  EXPECT_NE(r.error().message.find(text), std::string::npos) << r.error().message;
}

// ---- arguments

// proves: IB-109, IB-110
TEST_P(RoceModify, WrongMovesAndValuesAreReportedAndChangeNothing) {
  open();
  const Agreed agreed;
  QueuePair qp = ends[0].make();
  EXPECT_EQ(qp.state(), QpState::reset);
  for (const QpState to :
       {QpState::rtr, QpState::rts, QpState::sqd, QpState::sqe, QpState::error}) {
    expect_refused(qp.modify(to), Errc::wrong_state, "from state RESET");
  }
  expect_refused(qp.modify(QpState::init), Errc::invalid_argument, "also needs access");
  const auto refused = [&](QpState to, QpAttributes a, auto&& spoil, const char* text,
                           Errc code = Errc::invalid_argument) {
    const QpState was = qp.state();
    spoil(a);
    expect_refused(qp.modify(to, a), code, text);
    EXPECT_EQ(qp.state(), was);
  };
  using A = QpAttributes;
  const A init = agreed.to_init(), rtr = agreed.to_rtr(0, 77), rts = agreed.to_rts(0);
  refused(
      QpState::init, init, [](A& a) { a.access = access_local_write; }, "access: only");
  refused(
      QpState::init, init, [](A& a) { a.port = 2; }, "port: must be 1");
  refused(
      QpState::init, init, [](A& a) { a.pkey_index = 1; }, "pkey_index: must be 0");
  refused(
      QpState::init, init, [](A& a) { a.sq_psn = 1; }, ": sq_psn");
  ASSERT_TRUE(qp.modify(QpState::init, init).ok());
  const auto no_rtr = [&](auto&& spoil, const char* text, Errc code = Errc::invalid_argument) {
    refused(QpState::rtr, rtr, spoil, text, code);
  };
  no_rtr([](A& a) { a.dest_qp = 1u << 24; }, "dest_qp: must be between 0 and 16777215");
  no_rtr([](A& a) { a.rq_psn = 1u << 24; }, "rq_psn: must be");
  no_rtr([](A& a) { a.rq_psn.reset(); }, "also needs rq_psn");
  no_rtr([](A& a) { a.path.reset(); }, "also needs path");
  no_rtr([](A& a) { a.path_mtu = 1000; }, "path_mtu: must be 256");
  no_rtr([](A& a) { a.responder_depth = 17; }, "responder_depth: must be between 0 and 16");
  no_rtr([](A& a) { a.min_rnr_timer = 32; }, "min_rnr_timer: must be between 0 and 31");
  no_rtr([](A& a) { a.path->remote = "nowhere"; }, "invalid IP address 'nowhere'");
  no_rtr([](A& a) { a.path->remote = "224.0.0.1", a.path->local = "10.77.0.1"; },
         "two unicast addresses");
  no_rtr([](A& a) { a.path->remote = "192.0.2.1"; }, "no route to", Errc::unreachable);
  no_rtr([](A& a) { a.path->local = "10.77.0.9"; }, "is not an address of this device");
  no_rtr([](A& a) { a.path->local = "fd77::1"; }, "of one IP version");
  no_rtr([](A& a) { a.path->local = "?"; }, "path.local: invalid IP address");
  no_rtr([](A& a) { a.path->traffic_class = 256; }, "traffic_class: must be");
  no_rtr([](A& a) { a.path->hop_limit = 0; }, "hop_limit: must be");
  no_rtr([](A& a) { a.path->source_port = 4791; }, "source_port: must be");
  no_rtr([](A& a) { a.retry_count = 1; }, ": retry_count");
  ASSERT_TRUE(qp.modify(QpState::rtr, rtr).ok());
  const auto no_rts = [&](auto&& spoil, const char* text) {
    refused(QpState::rts, rts, spoil, text);
  };
  no_rts([](A& a) { a.sq_psn = 1u << 24; }, "sq_psn: must be");
  no_rts([](A& a) { a.ack_timeout = 32; }, "ack_timeout: must be between 0 and 31");
  no_rts([](A& a) { a.retry_count = 8; }, "retry_count: must be between 0 and 7");
  no_rts([](A& a) { a.rnr_retry = 8; }, "rnr_retry: must be between 0 and 7");
  no_rts([](A& a) { a.initiator_depth = 17; }, "initiator_depth: must be between 0 and 16");
  no_rts([](A& a) { a.rnr_retry.reset(), a.retry_count.reset(); }, "needs retry_count, rnr_retry");
  ASSERT_TRUE(qp.modify(QpState::rts, rts).ok());
  refused(
      QpState::init, {}, [](A&) {}, "from state RTS", Errc::wrong_state);
}

TEST_P(RoceModify, APathMtuLargerThanTheWireIsRefused) {
  open({{"mtu", "1500"}});
  Agreed agreed;
  agreed.path_mtu = 2048;
  QueuePair qp = ends[0].make();
  ASSERT_TRUE(qp.modify(QpState::init, agreed.to_init()).ok());
  expect_refused(qp.modify(QpState::rtr, agreed.to_rtr(0, 7)), Errc::invalid_argument,
                 "IP MTU 1500 of the route to");
}

// proves: IB-105
TEST_P(RoceModify, OtherTransportsAndServicesAreUnsupported) {
  ends[0] = RoceEnd(settings(0, {{"transport", "iwarp"}}));
  ends[1] = RoceEnd(settings(1, {{"transport", "roce"}}));
  const auto create = [&](int which, std::optional<Transport> t, std::uint32_t number = 0) {
    QpOptions o = ends[which].options(Transport::iwarp);
    o.transport = t;
    o.number = number;
    auto made = ends[which].device.create_qp(ends[which].pd, o);
    if (made)
      return Result<void>(made->state() == QpState::reset
                              ? Result<void>()
                              : Result<void>(Error{Errc::io, "of iWARP"}));
    return Result<void>(made.error());
  };
  expect_refused(create(0, Transport::roce), Errc::unsupported, "transport = roce or both");
  expect_refused(create(1, Transport::iwarp), Errc::unsupported, "transport = iwarp or both");
  expect_refused(create(0, std::nullopt), Errc::io, "of iWARP");
  EXPECT_TRUE(create(1, std::nullopt).ok()) << "what the device speaks";
  expect_refused(create(1, Transport::roce, 77), Errc::unsupported, "the device chooses it");
  expect_refused(create(1, static_cast<Transport>(9)), Errc::invalid_argument,
                 "transport: must be iwarp or roce");
  BindOptions place;
  place.transport = Transport::iwarp;
  const auto bound = ends[1].device.bind("[::]:0", place);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code, Errc::unsupported);
  place.transport = Transport::roce;
  EXPECT_FALSE(ends[0].device.bind("[::]:0", place).ok());
  QueuePair qp = ends[1].make();
  qp.disconnect();
  qp.abort();
  EXPECT_EQ(qp.state(), QpState::reset);
  qp.take_early_sends(true);
  ASSERT_TRUE(qp.modify(QpState::init, Agreed().to_init()).ok());
  expect_refused(qp.post_send(SendRequest{}), Errc::wrong_state, "not connected");
  EXPECT_EQ(qp.stats().transport, "roce");
}

// proves: IB-122
TEST_P(RoceModify, IwarpIgnoresAttributes) {
  open();
  QueuePair qp = ends[0].make(Transport::iwarp);
  QpAttributes a;
  a.sq_psn = ~0u;
  EXPECT_TRUE(qp.modify(QpState::error, a).ok());
}

// ---- states

// proves: IB-112
TEST_P(RoceModify, SqdDrainsAndReportsItAndRtsContinues) {
  up();
  QpAttributes tell;
  tell.tell_drained = true;
  const Sge sge = ends[0].sge(0, 60000);
  ASSERT_TRUE(qps[0].post_send(request(Opcode::write, 1, sge, 0)).ok());
  while (qps[0].stats().roce.requests_sent == 0) std::this_thread::yield();
  ASSERT_TRUE(qps[0].modify(QpState::sqd, tell).ok());
  EXPECT_TRUE(ends[0].next(EventKind::send_queue_drained));
  EXPECT_EQ(ends[0].one().status, WcStatus::success);
  ASSERT_TRUE(qps[0].post_send(request(Opcode::write, 2, sge, 0)).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Completion c[1];
  EXPECT_EQ(ends[0].cq.poll(c), 0) << "nothing begins";
  ASSERT_TRUE(qps[0].modify(QpState::rts).ok());
  EXPECT_EQ(ends[0].one().wr_id, 2u);
}

// proves: IB-120, IB-108
TEST_P(RoceModify, ARequestInRtrIsServedAndReported) {
  open();
  const Agreed agreed;
  for (int i = 0; i < 2; ++i) qps[i] = ends[i].make();
  agreed.move(qps[1], 1, qps[0].number(), QpState::rtr);
  agreed.move(qps[0], 0, qps[1].number());
  const Sge sge = ends[0].sge(0, 100);
  ASSERT_TRUE(qps[0].post_send(request(Opcode::write, 1, sge, 0)).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::success);
  EXPECT_TRUE(ends[1].next(EventKind::communication_established));
  EXPECT_EQ(qps[1].state(), QpState::rtr);
  const Sge back = ends[1].sge(0, 100);
  expect_refused(qps[1].post_send(request(Opcode::write, 2, back, 0)), Errc::wrong_state,
                 "not connected");
}

// proves: IB-106
TEST_P(RoceModify, IsConnectedAgainAfterReset) {
  up();
  Agreed agreed;
  const Sge sge = ends[0].sge(0, 3000);
  for (std::uint32_t life = 0; life < 3; ++life) {
    SCOPED_TRACE(life);
    ASSERT_TRUE(qps[0].post_send(request(Opcode::write, life, sge, 0)).ok());
    const Completion c = ends[0].one();
    EXPECT_EQ(c.status, WcStatus::success);
    EXPECT_EQ(c.wr_id, life);
    for (QueuePair& qp : qps) ASSERT_TRUE(qp.modify(QpState::error).ok());
    for (QueuePair& qp : qps) ASSERT_TRUE(qp.modify(QpState::reset).ok());
    agreed.psn[0] += 1000;
    agreed.psn[0] &= 0xffffff;
    agreed.connect(qps[0], qps[1]);
    for (QueuePair& qp : qps) EXPECT_EQ(qp.connections(), life + 2);
  }
}

// ---- ends

// proves: IB-115
TEST_P(RoceModify, AnAccessWithoutRightsEndsBothEndsWithEvents) {
  up();
  const Sge sge = ends[0].sge(0, 100);
  SendRequest bad = request(Opcode::write, 1, sge, 0);
  bad.rkey ^= 0x5500;
  ASSERT_TRUE(qps[0].post_send(bad).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::remote_access);
  const auto here = ends[0].next(EventKind::failed), there = ends[1].next(EventKind::failed);
  ASSERT_TRUE(here && there);
  EXPECT_EQ(here->error.code, Errc::reset);
  EXPECT_EQ(here->context, &ends[0].tag);
  EXPECT_EQ(here->connection, 1u);
  EXPECT_EQ(there->error.code, Errc::protocol);
  EXPECT_TRUE(ends[1].next(EventKind::access_error));
  for (QueuePair& qp : qps) EXPECT_EQ(qp.state(), QpState::error);
}

TEST_P(RoceModify, APeerThatHasGoneIsRetriedAndGivenUp) {
  Agreed agreed;
  agreed.ack_timeout = 8;
  agreed.retry_count = 2;
  up(agreed);
  qps[1] = QueuePair();
  const Sge sge = ends[0].sge(0, 100);
  ASSERT_TRUE(qps[0].post_send(request(Opcode::write, 1, sge, 0)).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::retry_exceeded);
  EXPECT_TRUE(ends[0].next(EventKind::failed));
  const auto strays = [&] { return ends[1].device.stats().roce.rx_no_queue_pair; };
  EXPECT_TRUE(soon([&] { return strays() != 0; })) << "that end may not have run yet";
}

// Idle, and without a timer of its own.
// proves: E-43
TEST_P(RoceModify, ALinkDownForTooLongEndsIt) {
  Agreed agreed;
  agreed.ack_timeout = 0;
  // Long enough for a link that a busy machine brings up slowly.
  up(agreed, {{"link_timeout_ms", "3000"}});
  const Sge sge = ends[0].sge(0, 100);
  ASSERT_TRUE(qps[0].post_send(request(Opcode::write, 1, sge, 0)).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::success);
  qps[1] = QueuePair();
  ends[1] = RoceEnd();
  const auto failed = ends[0].next(EventKind::failed);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->error.code, Errc::unreachable);
  EXPECT_NE(failed->error.message.find("the link has been down"), std::string::npos);
  EXPECT_EQ(qps[0].state(), QpState::error);
}

// proves: E-47
TEST_P(RoceModify, AnOverrunEndsEveryQueuePairOnTheQueue) {
  open({}, 4);
  for (int i = 0; i < 2; ++i) qps[i] = ends[i].make();
  Agreed().connect(qps[0], qps[1]);
  QueuePair other = ends[0].make(Transport::iwarp);
  ASSERT_TRUE(ends[0].device.deliver_events(ends[0].events).ok());
  const Sge sge = ends[0].sge(0, 10);
  for (std::uint64_t i = 0; i < 8; ++i) {
    const auto posted = qps[0].post_send(request(Opcode::write, i, sge, 0));
    if (!posted.ok()) break;
  }
  EXPECT_TRUE(ends[0].next(EventKind::cq_overrun));
  const auto failed = ends[0].next(EventKind::failed);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->error.code, Errc::queue_full);
  EXPECT_EQ(qps[0].state(), QpState::error);
  // The program may get the first event before the last queue pair has ended.
  EXPECT_TRUE(soon([&] { return other.state() == QpState::error; }));
}

// Destroyed in each state, at either end, while a thread polls and traffic flows.
TEST_P(RoceModify, IsDestroyedInEveryStateWhileOthersWork) {
  up();
  const Agreed agreed;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> done{0};
  const std::uint32_t lasting = qps[0].number();
  std::thread polling([&] {
    Completion c[16];
    while (!stop) {
      const int n = ends[0].cq.poll(c);
      for (int i = 0; i < n; ++i) {
        if (c[i].qp_number != lasting) continue;
        EXPECT_EQ(c[i].status, WcStatus::success);
        ++done;
      }
    }
  });
  const Sge sge = ends[0].sge(0, 20000);
  std::uint64_t posted = 0;
  for (const QpState state :
       {QpState::reset, QpState::init, QpState::rtr, QpState::rts, QpState::sqd, QpState::error}) {
    for (const bool at_once : {true, false}) {
      QueuePair a = ends[0].make(), b = ends[1].make();
      agreed.move(b, 1, a.number());
      agreed.move(a, 0, b.number(),
                  state == QpState::sqd || state == QpState::error ? QpState::rts : state);
      for (int i = 0; i < 4; ++i) {
        static_cast<void>(a.post_receive({1, {}}));
        static_cast<void>(a.post_send(request(Opcode::write, 1, sge, 32768)));
        if (qps[0].post_send(request(Opcode::write, 1, sge, 0)).ok()) ++posted;
      }
      if (state == QpState::sqd || state == QpState::error) {
        EXPECT_TRUE(a.modify(state).ok());
      }
      if (!at_once) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (at_once) {
        a = QueuePair();
      } else {
        b = QueuePair();
        a.discard();
      }
    }
  }
  EXPECT_TRUE(soon([&] { return done >= posted; }));
  stop = true;
  polling.join();
  EXPECT_EQ(done, posted);
  EXPECT_EQ(qps[0].state(), QpState::rts);
}

INSTANTIATE_TEST_SUITE_P(Devices, RoceModify, ::testing::Values("memif", "mem"));

}  // namespace
}  // namespace urnic::test
