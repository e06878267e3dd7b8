// UC and UD through the public API: two devices over memif, within the process and over the
// kernel's UDP; and attributes that a service does not have.
#include "tests/device/roce_ends.h"
#include "tests/support/loopback_network.h"

namespace urnic::test {
namespace {

constexpr std::uint32_t kQkey = 0x11223344;

class RoceUnreliable : public RoceDevices {
 protected:
  static bool udp() { return std::string(GetParam()) == "udp"; }
  Agreed agreed() const {
    Agreed a;
    if (udp()) a.network = loopback_network();
    return a;
  }
  QueuePair make(int i, Service service) {
    QpOptions o = ends[i].options(Transport::roce);
    o.service = service;
    return ends[i].make(o);
  }
  static void expect_refused(const Result<void>& r, Errc code, const std::string& text) {
    ASSERT_FALSE(r.ok()) << text;
    EXPECT_EQ(r.error().code, code) << r.error().message;
    EXPECT_NE(r.error().message.find(text), std::string::npos) << r.error().message;
  }
  static void step(QueuePair& qp, QpState to, const QpAttributes& a) {
    const auto moved = qp.modify(to, a);
    ASSERT_TRUE(moved.ok()) << moved.error().message;
  }
  // The attributes of RC's moves that UC takes.
  void connect_uc() {
    for (int i = 0; i < 2; ++i) {
      step(qps[i], QpState::init, agreed().to_init());
      QpAttributes rtr = agreed().to_rtr(i, qps[1 - i].number());
      rtr.responder_depth.reset();
      rtr.min_rnr_timer.reset();
      step(qps[i], QpState::rtr, rtr);
      QpAttributes rts;
      rts.sq_psn = agreed().psn[i];
      step(qps[i], QpState::rts, rts);
    }
  }
  void ready_ud(QueuePair& qp) {
    QpAttributes a;
    a.qkey = kQkey;
    step(qp, QpState::init, a);
    step(qp, QpState::rtr, {});
    QpAttributes rts;
    rts.sq_psn = 5;
    step(qp, QpState::rts, rts);
  }
  void up_ud() {
    open();
    for (int i = 0; i < 2; ++i) {
      qps[i] = make(i, Service::ud);
      ready_ud(qps[i]);
    }
  }
  AddressHandle handle(int from, int to, bool v6 = false) {
    Agreed a = agreed();
    a.v6 = v6;
    QpPath path;
    path.remote = a.address(to);
    auto made = ends[from].device.create_address_handle(ends[from].pd, path);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    return made.ok() ? std::move(*made) : AddressHandle();
  }
  SendRequest datagram(std::uint64_t id, const Sge& sge, const AddressHandle& to) const {
    SendRequest r;
    r.wr_id = id;
    r.sges = {&sge, 1};
    r.address_handle = &to;
    r.remote_qp = qps[1].number();
    r.remote_qkey = kQkey;
    return r;
  }
};

// proves: IB-98
TEST_P(RoceUnreliable, UcSendsAndWrites) {
  open();
  for (int i = 0; i < 2; ++i) qps[i] = make(i, Service::uc);
  connect_uc();
  const Sge into = ends[1].sge(100'000, 9000), from = ends[0].sge(0, 3000);
  ASSERT_TRUE(qps[1].post_receive({7, {&into, 1}}).ok());
  ASSERT_TRUE(qps[0].post_send(request(Opcode::write, 1, from, 50'000)).ok());
  SendRequest send = request(Opcode::send_with_immediate, 2, from, 0);
  send.immediate = 99;
  ASSERT_TRUE(qps[0].post_send(send).ok());
  for (const Completion& c : ends[0].wait(2)) EXPECT_EQ(c.status, WcStatus::success);
  const Completion came = ends[1].one();
  EXPECT_EQ(came.wr_id, 7u);
  EXPECT_EQ(came.byte_len, 3000u);
  EXPECT_EQ(came.immediate, 99u);
  EXPECT_FALSE(came.has_grh);
  ends[1].in_order();
  EXPECT_EQ(std::memcmp(&ends[1].memory[100'000], ends[0].memory.data(), 3000), 0);
  EXPECT_EQ(std::memcmp(&ends[1].memory[50'000], ends[0].memory.data(), 3000), 0);
  EXPECT_EQ(qps[1].stats().roce.requests_executed, 6u);
  EXPECT_EQ(qps[1].stats().roce.acks_sent, 0u);
}

// proves: IB-103, IB-144
TEST_P(RoceUnreliable, UdSendsAndAnswersTheSender) {
  up_ud();
  for (const bool v6 : {false, true}) {
    if (v6 && udp()) continue;
    SCOPED_TRACE(v6);
    const AddressHandle there = handle(0, 1, v6), back = handle(1, 0, v6);
    const Sge into = ends[1].sge(100'000, 2000), from = ends[0].sge(0, 1000);
    ASSERT_TRUE(qps[1].post_receive({7, {&into, 1}}).ok());
    SendRequest r = datagram(1, from, there);
    r.opcode = Opcode::send_with_immediate;
    r.immediate = 4711;
    ASSERT_TRUE(qps[0].post_send(r).ok());
    EXPECT_EQ(ends[0].one().status, WcStatus::success);
    const Completion came = ends[1].one();
    EXPECT_EQ(came.status, WcStatus::success);
    EXPECT_EQ(came.byte_len, 1040u);
    EXPECT_TRUE(came.has_grh);
    EXPECT_EQ(came.grh_is_ipv4, !v6);
    EXPECT_EQ(came.source_qp, qps[0].number());
    EXPECT_EQ(came.immediate, 4711u);
    ends[1].in_order();
    EXPECT_EQ(std::memcmp(&ends[1].memory[100'040], ends[0].memory.data(), 1000), 0);
    EXPECT_EQ(ends[1].memory[v6 ? 100'000 : 100'020] >> 4, v6 ? 6 : 4);
    // Back to the sender, inline.
    const Sge answer = ends[0].sge(200'000, 100);
    ASSERT_TRUE(qps[0].post_receive({8, {&answer, 1}}).ok());
    char text[] = "an answer";
    const Sge loose{reinterpret_cast<std::uintptr_t>(text), sizeof text, 0};
    r = datagram(2, loose, back);
    r.flags |= send_inline;
    r.remote_qp = came.source_qp;
    ASSERT_TRUE(qps[1].post_send(r).ok());
    EXPECT_EQ(ends[1].one().status, WcStatus::success);
    EXPECT_EQ(ends[0].one().source_qp, qps[1].number());
    ends[0].in_order();
    EXPECT_EQ(std::memcmp(&ends[0].memory[200'040], text, sizeof text), 0);
  }
}

TEST_P(RoceUnreliable, ADatagramToTheOwnAddressIsDelivered) {
  up_ud();
  const AddressHandle here = handle(0, 0);
  const Sge into = ends[0].sge(100'000, 200), from = ends[0].sge(0, 100);
  ASSERT_TRUE(qps[0].post_receive({7, {&into, 1}}).ok());
  SendRequest r = datagram(1, from, here);
  r.remote_qp = qps[0].number();
  ASSERT_TRUE(qps[0].post_send(r).ok());
  for (const Completion& c : ends[0].wait(2)) EXPECT_EQ(c.status, WcStatus::success);
  ends[0].in_order();
  EXPECT_EQ(std::memcmp(&ends[0].memory[100'040], ends[0].memory.data(), 100), 0);
}

// proves: IB-100
TEST_P(RoceUnreliable, UnsupportedRequestsOfAServiceAreRefusedInOneLine) {
  up_ud();
  AddressHandle there = handle(0, 1);
  const Sge sge = ends[0].sge(0, 100), longer = ends[0].sge(0, 4097);
  const auto refused = [&](auto&& spoil, const char* text) {
    SendRequest r = datagram(1, sge, there);
    spoil(r);
    expect_refused(qps[0].post_send(r), Errc::invalid_argument, text);
  };
  refused([](SendRequest& r) { r.opcode = Opcode::write; }, "supports only Send");
  refused([](SendRequest& r) { r.opcode = Opcode::local_invalidate; }, "supports only Send");
  refused([](SendRequest& r) { r.address_handle = nullptr; }, "address_handle: required");
  const AddressHandle empty;
  refused([&](SendRequest& r) { r.address_handle = &empty; }, "address_handle: required");
  const ProtectionDomain other = *ends[0].device.alloc_pd();
  QpPath path;
  path.remote = agreed().address(1);
  const AddressHandle foreign = *ends[0].device.create_address_handle(other, path);
  refused([&](SendRequest& r) { r.address_handle = &foreign; }, "another protection domain");
  refused([](SendRequest& r) { r.remote_qp = 1u << 24; }, "remote_qp: must be between 0 and");
  refused([&](SendRequest& r) { r.sges = {&longer, 1}; }, "not be longer than the path MTU");
  // Neither service can be connected.
  expect_refused(qps[0].connect_start("10.77.0.2:18515"), Errc::unsupported, "need service rc");
  QueuePair uc = make(0, Service::uc), rc = make(0, Service::rc);
  expect_refused(uc.connect_start("10.77.0.2:18515"), Errc::unsupported, "need service rc");
  // Attributes.
  QpAttributes a;
  a.access = 0u;
  expect_refused(make(0, Service::ud).modify(QpState::init, a), Errc::invalid_argument,
                 "also needs qkey");
  a.qkey = 1;
  expect_refused(make(0, Service::ud).modify(QpState::init, a), Errc::invalid_argument,
                 "not allowed in a change from state RESET to INIT: access");
  expect_refused(uc.modify(QpState::init, a), Errc::invalid_argument, ": qkey");
  qps[1] = QueuePair();
  // UC and RC.
  QpAttributes init;
  init.access = 0u;
  for (QueuePair* qp : {&uc, &rc}) step(*qp, QpState::init, init);
  const Agreed how = agreed();
  QpAttributes rtr = how.to_rtr(0, 9), rts;
  step(rc, QpState::rtr, rtr);
  step(rc, QpState::rts, how.to_rts(0));
  rtr.responder_depth.reset();
  expect_refused(uc.modify(QpState::rtr, rtr), Errc::invalid_argument, ": min_rnr_timer");
  rtr.min_rnr_timer.reset();
  step(uc, QpState::rtr, rtr);
  expect_refused(uc.modify(QpState::rts, how.to_rts(0)), Errc::invalid_argument,
                 "not allowed in a change");
  rts.sq_psn = 1;
  step(uc, QpState::rts, rts);
  for (const Opcode op : {Opcode::read, Opcode::fetch_add, Opcode::compare_swap, Opcode::swap,
                          Opcode::send_with_invalidate}) {
    SendRequest r = request(op, 1, sge, 0);
    expect_refused(uc.post_send(r), Errc::invalid_argument, "does not support RDMA Read");
  }
  SendRequest r = request(Opcode::send, 1, sge, 0);
  r.address_handle = &there;
  expect_refused(uc.post_send(r), Errc::invalid_argument, "only on a UD queue pair");
  expect_refused(rc.post_send(r), Errc::invalid_argument, "only on a UD queue pair");
}

TEST_P(RoceUnreliable, HandlesNeedARoceDeviceAndAValidPath) {
  open();
  Device& device = ends[0].device;
  QpPath path;
  const auto refused = [&](Errc code, const char* text) {
    const auto made = device.create_address_handle(ends[0].pd, path);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, code);
    EXPECT_NE(made.error().message.find(text), std::string::npos) << made.error().message;
  };
  path.remote = "nowhere";
  refused(Errc::invalid_argument, "invalid IP address");
  path.remote = agreed().address(1);
  path.hop_limit = 0;
  refused(Errc::invalid_argument, "hop_limit");
  path.hop_limit = 64;
  path.remote = "224.0.0.1";
  path.local = agreed().address(0);
  refused(Errc::invalid_argument, "two unicast addresses");
  EXPECT_FALSE(device.create_address_handle(ends[1].pd, path).ok()) << "a domain of another device";
  EXPECT_FALSE(Device().create_address_handle(ends[0].pd, path).ok());
}

TEST_P(RoceUnreliable, EachTransportHasItsOwnServices) {
  open();
  QpOptions o = ends[0].options(Transport::iwarp);
  o.service = Service::ud;
  const auto made = ends[0].device.create_qp(ends[0].pd, o);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Errc::unsupported);
  o.transport = Transport::roce;
  o.service = static_cast<Service>(9);
  EXPECT_EQ(ends[0].device.create_qp(ends[0].pd, o).error().code, Errc::invalid_argument);
  // A device that only speaks iWARP has no handles.
  RoceEnd other(
      {{"port", "mem:name=unreliable-iwarp"}, {"stat", "off"}, {"address", "10.78.0.1/24"}});
  QpPath path;
  path.remote = "10.78.0.2";
  const auto handle = other.device.create_address_handle(other.pd, path);
  ASSERT_FALSE(handle.ok());
  EXPECT_EQ(handle.error().code, Errc::unsupported);
}

// proves: IB-114
TEST_P(RoceUnreliable, AFailedSendMovesToSqeAndRtsMovesBack) {
  up_ud();
  const AddressHandle there = handle(0, 1);
  Sge sge = ends[0].sge(0, 100);
  sge.lkey ^= 0x5500;
  ASSERT_TRUE(qps[0].post_send(datagram(1, sge, there)).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::local_protection);
  EXPECT_EQ(qps[0].state(), QpState::sqe);
  ASSERT_TRUE(qps[0].post_send(datagram(2, sge, there)).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::flushed);
  ASSERT_TRUE(qps[0].modify(QpState::rts).ok());
  sge = ends[0].sge(0, 100);
  const Sge into = ends[1].sge(100'000, 200);
  ASSERT_TRUE(qps[1].post_receive({7, {&into, 1}}).ok());
  ASSERT_TRUE(qps[0].post_send(datagram(3, sge, there)).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::success);
  EXPECT_EQ(ends[1].one().wr_id, 7u);
}

// A handle destroyed while its requests wait, and one that outlives its device's handles.
TEST_P(RoceUnreliable, AHandleMayBeDestroyedAtAnyTime) {
  up_ud();
  const Sge sge = ends[0].sge(0, 100);
  for (int i = 0; i < 50; ++i) {
    AddressHandle there = handle(0, 1);
    ASSERT_TRUE(qps[0].post_send(datagram(1, sge, there)).ok());
    if (i % 2 == 0) there = AddressHandle();
  }
  for (const Completion& c : ends[0].wait(50)) EXPECT_EQ(c.status, WcStatus::success);
  AddressHandle last = handle(0, 1);
  qps[0] = QueuePair();
  ends[0].mr = MemoryRegion();
  ends[0].pd = ProtectionDomain();
  ends[0] = RoceEnd();
  EXPECT_TRUE(static_cast<bool>(last));
}

INSTANTIATE_TEST_SUITE_P(Devices, RoceUnreliable, ::testing::Values("memif", "mem", "udp"));

}  // namespace
}  // namespace urnic::test
