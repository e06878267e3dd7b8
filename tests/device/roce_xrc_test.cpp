// XRC through the public API: two devices over memif, within the process and over the kernel's UDP,
// connected by hand and by connection management; and wrong use.
#include <cstring>

#include "tests/device/roce_ends.h"
#include "tests/support/loopback_network.h"

namespace urnic::test {
namespace {

class RoceXrc : public RoceDevices {
 protected:
  void TearDown() override {
    queues[0] = queues[1] = {};
    domain = {};
    RoceDevices::TearDown();
  }
  static bool udp() { return std::string(GetParam()) == "udp"; }
  Agreed agreed() const {
    Agreed a;
    if (udp()) a.network = loopback_network();
    return a;
  }
  QpOptions sending(int i) {
    QpOptions o = ends[i].options(Transport::roce);
    o.service = Service::xrc_send;
    o.receive_cq = {};
    return o;
  }
  QpOptions receiving(int i, const XrcDomain& of) {
    QpOptions o = ends[i].options(Transport::roce);
    o.service = Service::xrc_receive;
    o.send_cq = o.receive_cq = {};
    o.xrc_domain = of;
    return o;
  }
  SharedReceiveQueue shared(const XrcDomain& of) {
    SrqOptions o;
    o.xrc_domain = of;
    o.receive_cq = ends[1].cq;
    auto made = ends[1].device.create_srq(ends[1].pd, o);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    return made.ok() ? *made : SharedReceiveQueue();
  }
  static void step(QueuePair& qp, QpState to, const QpAttributes& a) {
    const auto moved = qp.modify(to, a);
    ASSERT_TRUE(moved.ok()) << moved.error().message;
    ASSERT_EQ(qp.state(), to);
  }
  // Each end takes its own part of RC's moves. The receiving end does not have to go to rts.
  void connect(QueuePair& from, QueuePair& to) const {
    step(from, QpState::init, agreed().to_init());
    QpAttributes a = agreed().to_rtr(0, to.number());
    a.responder_depth.reset();
    a.min_rnr_timer.reset();
    step(from, QpState::rtr, a);
    step(from, QpState::rts, agreed().to_rts(0));
    step(to, QpState::init, agreed().to_init());
    step(to, QpState::rtr, agreed().to_rtr(1, from.number()));
  }
  void up() {
    open();
    domain = *ends[1].device.open_xrc_domain();
    for (SharedReceiveQueue& q : queues) q = shared(domain);
    qps[0] = ends[0].make(sending(0));
    qps[1] = ends[1].make(receiving(1, domain));
    connect(qps[0], qps[1]);
  }
  SendRequest to(const SharedReceiveQueue& queue, Opcode op, std::uint64_t id, const Sge& sge,
                 std::size_t offset = 0) const {
    SendRequest r = request(op, id, sge, offset);
    r.remote_srq = queue.number();
    return r;
  }
  void post(SharedReceiveQueue& queue, std::uint64_t id, std::size_t offset) {
    const Sge into = ends[1].sge(offset, 8000);
    ASSERT_TRUE(queue.post_receive({id, {&into, 1}}).ok());
  }
  static void expect_refused(const Error& e, Errc code, const std::string& text) {
    EXPECT_EQ(e.code, code) << e.message;
    EXPECT_NE(e.message.find(text), std::string::npos) << e.message;
  }

  XrcDomain domain;
  SharedReceiveQueue queues[2];
};

// proves: IB-162
TEST_P(RoceXrc, SendsGoToTheQueueTheyNameAndCompleteThere) {
  up();
  EXPECT_NE(queues[0].number(), queues[1].number());
  post(queues[0], 10, 100'000);
  post(queues[1], 11, 120'000);
  const Sge from = ends[0].sge(0, 5000);
  ASSERT_TRUE(qps[0].post_send(to(queues[1], Opcode::send, 1, from)).ok());
  SendRequest second = to(queues[0], Opcode::send_with_immediate, 2, from);
  second.immediate = 4711;
  ASSERT_TRUE(qps[0].post_send(second).ok());
  for (const Completion& c : ends[0].wait(2)) {
    EXPECT_EQ(c.status, WcStatus::success);
    EXPECT_EQ(c.qp_number, qps[0].number());
  }
  const auto came = ends[1].wait(2);
  EXPECT_EQ(came[0].wr_id, 11u);
  EXPECT_EQ(came[1].wr_id, 10u);
  EXPECT_EQ(came[1].immediate, 4711u);
  for (const Completion& c : came) {
    EXPECT_EQ(c.opcode, Opcode::receive);
    EXPECT_EQ(c.byte_len, 5000u);
    EXPECT_EQ(c.qp_number, qps[1].number());
  }
  ends[1].in_order();
  EXPECT_EQ(std::memcmp(&ends[1].memory[100'000], ends[0].memory.data(), 5000), 0);
  EXPECT_EQ(std::memcmp(&ends[1].memory[120'000], ends[0].memory.data(), 5000), 0);
  EXPECT_EQ(qps[1].state(), QpState::rtr);
}

// proves: IB-162
TEST_P(RoceXrc, WritesReadsAndAtomicsReachMemoryOfTheDomainOfTheQueue) {
  up();
  const Sge from = ends[0].sge(0, 5000), into = ends[0].sge(10'000, 5000),
            cell = ends[0].sge(20'000, 8);
  std::uint64_t before = 0;
  std::memcpy(&before, &ends[1].memory[60'000 / 8 * 8], 8);
  ends[1].in_order();
  ASSERT_TRUE(qps[0].post_send(to(queues[0], Opcode::write, 1, from, 40'000)).ok());
  ASSERT_TRUE(qps[0].post_send(to(queues[1], Opcode::read, 2, into, 40'000)).ok());
  SendRequest add = to(queues[0], Opcode::fetch_add, 3, cell, 60'000);
  add.remote_address = (ends[1].at(60'000) + 7) / 8 * 8;
  add.atomic.data = 5;
  ASSERT_TRUE(qps[0].post_send(add).ok());
  for (const Completion& c : ends[0].wait(3)) EXPECT_EQ(c.status, WcStatus::success);
  EXPECT_EQ(std::memcmp(&ends[0].memory[10'000], ends[0].memory.data(), 5000), 0);
  // A queue with another protection domain gives no access to it.
  const auto pd = *ends[1].device.alloc_pd();
  SrqOptions o;
  o.xrc_domain = domain;
  o.receive_cq = ends[1].cq;
  const auto other = *ends[1].device.create_srq(pd, o);
  ASSERT_TRUE(qps[0].post_send(to(other, Opcode::write, 4, from, 40'000)).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::remote_access);
}

// One receiving end for each peer, or each connection, and one queue for all of them.
TEST_P(RoceXrc, ManyReceivingEndsOfADomainUseOneQueue) {
  up();
  auto from = ends[0].make(sending(0));
  auto to_other = ends[1].make(receiving(1, domain));
  connect(from, to_other);
  post(queues[0], 1, 100'000);
  post(queues[0], 2, 120'000);
  const Sge sge = ends[0].sge(0, 100);
  ASSERT_TRUE(qps[0].post_send(to(queues[0], Opcode::send, 1, sge)).ok());
  EXPECT_EQ(ends[1].one().qp_number, qps[1].number());
  ASSERT_TRUE(from.post_send(to(queues[0], Opcode::send, 2, sge)).ok());
  const Completion c = ends[1].one();
  EXPECT_EQ(c.qp_number, to_other.number());
  EXPECT_EQ(c.wr_id, 2u);
  EXPECT_EQ(queues[0].query().posted, 0u);
}

// proves: IB-163
TEST_P(RoceXrc, AQueueOfAnotherDomainEndsBothEndsWithItsOwnStatus) {
  up();
  const XrcDomain foreign = *ends[1].device.open_xrc_domain();
  SharedReceiveQueue queue = shared(foreign);
  post(queue, 1, 100'000);
  const Sge sge = ends[0].sge(0, 100);
  ASSERT_TRUE(qps[0].post_send(to(queue, Opcode::send, 1, sge)).ok());
  const Completion c = ends[0].one();
  EXPECT_EQ(c.status, WcStatus::remote_invalid_rd_request);
  EXPECT_NE(std::string(to_string(c.status)).find("domain"), std::string::npos);
  EXPECT_TRUE(ends[0].next(EventKind::failed));
  EXPECT_TRUE(ends[1].next(EventKind::request_error));
  EXPECT_EQ(qps[0].state(), QpState::error);
  EXPECT_EQ(qps[1].state(), QpState::error);
  EXPECT_EQ(queue.query().posted, 1u);
  EXPECT_EQ(qps[1].stats().roce.xrc.wrong_domain, 1u);
  EXPECT_EQ(qps[1].stats().roce.xrc.no_queue, 0u);
}

// proves: IB-163
TEST_P(RoceXrc, AMissingOrOrdinaryQueueIsAnInvalidRequest) {
  up();
  const auto ordinary = *ends[1].device.create_srq(ends[1].pd);
  EXPECT_EQ(ordinary.number(), 0u);
  const Sge sge = ends[0].sge(0, 100);
  ASSERT_TRUE(qps[0].post_send(to(ordinary, Opcode::send, 1, sge)).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::remote_invalid_request);
  EXPECT_TRUE(ends[1].next(EventKind::request_error));
  EXPECT_EQ(qps[1].stats().roce.xrc.no_queue, 1u);
}

TEST_P(RoceXrc, ADestroyedQueueIsAnInvalidRequest) {
  up();
  post(queues[0], 1, 100'000);
  SendRequest r;
  const Sge sge = ends[0].sge(0, 100);
  r = to(queues[0], Opcode::send, 1, sge);
  ASSERT_TRUE(qps[0].post_send(r).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::success);
  EXPECT_EQ(ends[1].one().status, WcStatus::success);
  queues[0] = {};
  ASSERT_TRUE(qps[0].post_send(r).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::remote_invalid_request);
}

// A receiving end that is reset discards its completions, and can be connected again.
TEST_P(RoceXrc, ResetDiscardsAndAllowsAnotherConnection) {
  up();
  post(queues[0], 1, 100'000);
  post(queues[0], 2, 100'000);
  const Sge sge = ends[0].sge(0, 100);
  ASSERT_TRUE(qps[0].post_send(to(queues[0], Opcode::send, 1, sge)).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::success);
  for (QueuePair& qp : qps) step(qp, QpState::reset, {});
  connect(qps[0], qps[1]);
  ASSERT_TRUE(qps[0].post_send(to(queues[0], Opcode::send, 2, sge)).ok());
  EXPECT_EQ(ends[0].one().wr_id, 2u);
  EXPECT_EQ(ends[1].one().wr_id, 2u) << "the first one's is forgotten";
}

// Completions that were not polled are discarded with the end, in whichever queue they are.
TEST_P(RoceXrc, DiscardingAReceivingEndDiscardsItsCompletions) {
  up();
  post(queues[0], 1, 100'000);
  const Sge sge = ends[0].sge(0, 100);
  ASSERT_TRUE(qps[0].post_send(to(queues[0], Opcode::send, 1, sge)).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::success);
  qps[1].discard();
  EXPECT_FALSE(qps[1]);
  Completion c;
  EXPECT_EQ(ends[1].cq.poll({&c, 1}), 0);
}

// E-47: a queue pair must not receive if its completions would be lost.
TEST_P(RoceXrc, AnOverrunEndsTheReceivingEndsOfItsDomain) {
  open();
  domain = *ends[1].device.open_xrc_domain();
  SrqOptions o;
  o.xrc_domain = domain;
  o.receive_cq = *ends[1].device.create_cq(1);
  queues[0] = *ends[1].device.create_srq(ends[1].pd, o);
  qps[0] = ends[0].make(sending(0));
  qps[1] = ends[1].make(receiving(1, domain));
  auto idle = ends[1].make(receiving(1, domain));
  auto other = ends[1].make(receiving(1, *ends[1].device.open_xrc_domain()));
  connect(qps[0], qps[1]);
  for (QueuePair* qp : {&idle, &other}) {
    step(*qp, QpState::init, agreed().to_init());
    step(*qp, QpState::rtr, agreed().to_rtr(1, 77));
  }
  const Sge sge = ends[0].sge(0, 100);
  for (std::uint64_t i = 0; i < 2; ++i) {
    post(queues[0], i, 100'000);
    ASSERT_TRUE(qps[0].post_send(to(queues[0], Opcode::send, i, sge)).ok());
  }
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(ends[1].next(EventKind::failed)) << i;
  EXPECT_EQ(qps[1].state(), QpState::error);
  EXPECT_EQ(idle.state(), QpState::error);
  EXPECT_EQ(other.state(), QpState::rtr);
}

TEST_P(RoceXrc, ANamedDomainIsFoundAsLongAsItExists) {
  open();
  Device& device = ends[1].device;
  XrcDomain a = *device.open_xrc_domain("storage");
  const XrcDomain b = *device.open_xrc_domain("storage"), c = *device.open_xrc_domain("other");
  domain = a;
  queues[0] = shared(a);
  for (const auto& [of, works] : {std::pair{&b, true}, std::pair{&c, false}}) {
    qps[0] = ends[0].make(sending(0));
    qps[1] = ends[1].make(receiving(1, *of));
    connect(qps[0], qps[1]);
    post(queues[0], 1, 100'000);
    const Sge sge = ends[0].sge(0, 100);
    ASSERT_TRUE(qps[0].post_send(to(queues[0], Opcode::send, 1, sge)).ok());
    EXPECT_EQ(ends[0].one().status,
              works ? WcStatus::success : WcStatus::remote_invalid_rd_request);
  }
  queues[0] = {};
  for (QueuePair& qp : qps) qp = {};
}

// proves: IB-164
TEST_P(RoceXrc, EachXrcEndHasOneHalf) {
  up();
  const Sge sge = ends[0].sge(0, 100), into = ends[1].sge(0, 100);
  step(qps[1], QpState::rts, [] {
    QpAttributes a;
    a.sq_psn = Agreed().psn[1];
    a.ack_timeout = 14;
    return a;
  }());
  auto no = qps[1].post_send(to(queues[0], Opcode::send, 1, sge));
  ASSERT_FALSE(no.ok());
  expect_refused(no.error(), Errc::invalid_argument, "no send queue");
  no = qps[1].post_receive({1, {&into, 1}});
  ASSERT_FALSE(no.ok());
  expect_refused(no.error(), Errc::invalid_argument, "no receive queue");
  no = qps[0].post_receive({1, {&sge, 1}});
  ASSERT_FALSE(no.ok());
  expect_refused(no.error(), Errc::invalid_argument, "no receive queue");
  SendRequest wide = to(queues[0], Opcode::send, 1, sge);
  wide.remote_srq = 1 << 24;
  no = qps[0].post_send(wide);
  ASSERT_FALSE(no.ok());
  expect_refused(no.error(), Errc::invalid_argument, "remote_srq");
}

TEST_P(RoceXrc, MovesOfTheOtherEndAreRefused) {
  open();
  domain = *ends[1].device.open_xrc_domain();
  qps[0] = ends[0].make(sending(0));
  qps[1] = ends[1].make(receiving(1, domain));
  for (QueuePair& qp : qps) step(qp, QpState::init, agreed().to_init());
  auto no = qps[0].modify(QpState::rtr, agreed().to_rtr(0, 77));
  ASSERT_FALSE(no.ok());
  EXPECT_EQ(no.error().code, Errc::invalid_argument);
  step(qps[1], QpState::rtr, agreed().to_rtr(1, 77));
  no = qps[1].modify(QpState::rts, agreed().to_rts(1));
  ASSERT_FALSE(no.ok());
  EXPECT_EQ(no.error().code, Errc::invalid_argument);
}

TEST_P(RoceXrc, InvalidXrcObjectsAreRefusedWithAMessage) {
  open();
  Device& device = ends[1].device;
  domain = *device.open_xrc_domain();
  const auto refused = [&](const QpOptions& o, const std::string& text) {
    const auto made = device.create_qp(ends[1].pd, o);
    ASSERT_FALSE(made.ok()) << text;
    expect_refused(made.error(), Errc::invalid_argument, text);
  };
  QpOptions o = receiving(1, {});
  refused(o, "xrc_domain is required");
  o = receiving(1, *ends[0].device.open_xrc_domain());
  refused(o, "another device");
  o = receiving(1, domain);
  o.receive_cq = ends[1].cq;
  refused(o, "receive_cq are not allowed");
  o = receiving(1, domain);
  o.srq = shared(domain);
  refused(o, "srq: not allowed with XRC");
  o = sending(1);
  o.send_cq = {};
  refused(o, "send_cq is required");
  o = sending(1);
  o.xrc_domain = domain;
  refused(o, "allowed only with service xrc_receive");
  o = ends[1].options(Transport::roce);
  o.xrc_domain = domain;
  refused(o, "allowed only with service xrc_receive");
  SrqOptions s;
  s.xrc_domain = domain;
  auto srq = device.create_srq(ends[1].pd, s);
  ASSERT_FALSE(srq.ok());
  expect_refused(srq.error(), Errc::invalid_argument, "both xrc_domain and receive_cq");
  s.receive_cq = ends[0].cq;
  srq = device.create_srq(ends[1].pd, s);
  ASSERT_FALSE(srq.ok());
  expect_refused(srq.error(), Errc::invalid_argument, "another device");
  // An XRC queue cannot be used by other queue pairs.
  o = ends[1].options(Transport::roce);
  o.srq = shared(domain);
  refused(o, "XRC shared receive queue");
  if (udp()) return;
  o = sending(1);
  o.transport = Transport::iwarp;
  const auto made = device.create_qp(ends[1].pd, o);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Errc::unsupported);
}

// ---- by connection management

class RoceXrcConnection : public RoceXrc {
 protected:
  void listen(Service service) {
    BindOptions o;
    o.transport = Transport::roce;
    o.service = service;
    auto at = ends[1].device.bind("[::]:0", o);
    ASSERT_TRUE(at.ok()) << at.error().message;
    auto made = ends[1].device.listen(*at);
    ASSERT_TRUE(made.ok()) << made.error().message;
    listener = std::move(*made);
  }
  void TearDown() override {
    listener = {};
    RoceXrc::TearDown();
  }
  void begin(Service service) {
    open();
    domain = *ends[1].device.open_xrc_domain();
    queues[0] = shared(domain);
    qps[0] = ends[0].make(sending(0));
    qps[1] = ends[1].make(receiving(1, domain));
    listen(service);
  }
  std::string there() const { return agreed().address(1) + ":" + std::to_string(listener.port()); }
  Result<ConnectRequest> asked() {
    for (int i = 0; i < 5000; ++i) {
      ends[0].device.progress();
      auto request = listener.next(2);
      if (request.ok()) return request;
    }
    return Error{Errc::timed_out, "nobody asks"};
  }
  std::optional<Event> next(int which, EventKind kind, int ms = 20000) {
    Event e;
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    while (std::chrono::steady_clock::now() < until) {
      ends[1 - which].device.progress();
      if (ends[which].events.wait(&e, 2) && e.kind == kind) return e;
    }
    return std::nullopt;
  }
  Listener listener;
};

// proves: IB-166
TEST_P(RoceXrcConnection, AnXrcConnectionIsMadeUsedAndEnded) {
  begin(Service::xrc_receive);
  ASSERT_TRUE(qps[0].connect_start(there()).ok());
  auto request = asked();
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->service(), Service::xrc_receive);
  auto wrong = ends[1].make();
  const auto no = request->accept(wrong);
  ASSERT_FALSE(no.ok());
  expect_refused(no.error(), Errc::invalid_argument, "xrc_receive");
  ASSERT_TRUE(request->accept(qps[1]).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(next(i, EventKind::established)) << i;
  EXPECT_EQ(qps[0].state(), QpState::rts);
  EXPECT_EQ(qps[1].state(), QpState::rts);
  post(queues[0], 7, 100'000);
  const Sge from = ends[0].sge(0, 5000), into = ends[0].sge(10'000, 5000);
  ASSERT_TRUE(qps[0].post_send(to(queues[0], Opcode::send, 1, from)).ok());
  ASSERT_TRUE(qps[0].post_send(to(queues[0], Opcode::read, 2, into, 100'000)).ok());
  for (const Completion& c : ends[0].wait(2)) EXPECT_EQ(c.status, WcStatus::success);
  EXPECT_EQ(ends[1].one().wr_id, 7u);
  EXPECT_EQ(std::memcmp(&ends[0].memory[10'000], ends[0].memory.data(), 5000), 0);
  EXPECT_TRUE(qps[0].stats().roce.selective) << "agreed to by connection management";
  qps[0].disconnect();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(next(i, EventKind::disconnected)) << i;
  EXPECT_EQ(qps[1].state(), QpState::error);
}

// proves: IB-166
TEST_P(RoceXrcConnection, OtherServicesAreRefusedBothWays) {
  begin(Service::xrc_receive);
  auto rc = ends[0].make();
  ASSERT_TRUE(rc.connect_start(there()).ok());
  auto refused = next(0, EventKind::connect_failed);
  ASSERT_TRUE(refused);
  EXPECT_NE(refused->error.message.find("REJ 9"), std::string::npos) << refused->error.message;
  listener = {};
  listen(Service::rc);
  ASSERT_TRUE(qps[0].connect_start(there()).ok());
  refused = next(0, EventKind::connect_failed);
  ASSERT_TRUE(refused);
  EXPECT_NE(refused->error.message.find("REJ 9"), std::string::npos) << refused->error.message;
  // A receiving end cannot connect, and cannot accept a request of RC.
  const auto no = qps[1].connect_start(there());
  ASSERT_FALSE(no.ok());
  expect_refused(no.error(), Errc::unsupported, "to accept a connection");
  auto again = ends[0].make();
  ASSERT_TRUE(again.connect_start(there()).ok());
  auto request = asked();
  ASSERT_TRUE(request.ok());
  const auto wrong = request->accept(qps[1]);
  ASSERT_FALSE(wrong.ok());
  expect_refused(wrong.error(), Errc::invalid_argument, "service rc");
}

INSTANTIATE_TEST_SUITE_P(Devices, RoceXrc, ::testing::Values("memif", "mem", "udp"));
INSTANTIATE_TEST_SUITE_P(Devices, RoceXrcConnection, ::testing::Values("memif", "udp"));

}  // namespace
}  // namespace urnic::test
