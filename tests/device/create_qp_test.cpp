// The results of creating a queue pair, over both transports.
#include "tests/device/roce_ends.h"

namespace urnic::test {
namespace {

using CreateQp = RoceDevices;

class Asking {
 public:
  Asking(RoceEnd& end, Transport transport) : end_(end), transport_(transport) {}
  // The error for these options after `spoil` has changed them; ok if there is none.
  template <class Spoil>
  Result<void> operator()(Spoil&& spoil) const {
    return of(end_.device, end_.pd, spoil);
  }
  template <class Spoil>
  Result<void> of(Device& device, const ProtectionDomain& pd, Spoil&& spoil) const {
    QpOptions o = end_.options(transport_);
    spoil(o);
    auto made = device.create_qp(pd, o);
    return made.ok() ? Result<void>() : Result<void>(made.error());
  }

 private:
  RoceEnd& end_;
  Transport transport_;
};

Errc code(const Result<void>& r) {
  EXPECT_FALSE(r.ok());
  return r.ok() ? Errc::io : r.error().code;
}

using O = QpOptions;

// proves: IB-119
TEST_P(CreateQp, UnsupportedOptionsAreRefusedWithTheRightError) {
  open();
  for (const Transport t : {Transport::iwarp, Transport::roce}) {
    SCOPED_TRACE(t == Transport::roce ? "RoCE" : "iWARP");
    const Asking ask(ends[0], t);
    EXPECT_TRUE(ask([](O&) {}).ok());
    // Work requests and SGEs beyond the limits are refused; the limits themselves are accepted.
    EXPECT_TRUE(ask([](O& o) { o.max_send = o.max_receive = 65536; }).ok());
    EXPECT_EQ(code(ask([](O& o) { o.max_send = 65537; })), Errc::invalid_argument);
    EXPECT_EQ(code(ask([](O& o) { o.max_receive = 65537; })), Errc::invalid_argument);
    EXPECT_TRUE(ask([](O& o) { o.max_send_sge = o.max_receive_sge = 32; }).ok());
    EXPECT_EQ(code(ask([](O& o) { o.max_send_sge = 33; })), Errc::invalid_argument);
    EXPECT_EQ(code(ask([](O& o) { o.max_receive_sge = 33; })), Errc::invalid_argument);
    EXPECT_EQ(code(ask([](O& o) { o.max_inline = 4097; })), Errc::invalid_argument);
    // Errors: no device, another device's completion queues, no protection domain, another
    // device's.
    Device none;
    EXPECT_EQ(code(ask.of(none, ends[0].pd, [](O&) {})), Errc::invalid_argument);
    EXPECT_EQ(code(ask([&](O& o) { o.send_cq = ends[1].cq; })), Errc::invalid_argument);
    EXPECT_EQ(code(ask([&](O& o) { o.receive_cq = ends[1].cq; })), Errc::invalid_argument);
    EXPECT_EQ(code(ask.of(ends[0].device, ProtectionDomain(), [](O&) {})), Errc::invalid_argument);
    EXPECT_EQ(code(ask.of(ends[0].device, ends[1].pd, [](O&) {})), Errc::invalid_argument);
    // A service that does not exist, or does not exist on this transport.
    EXPECT_EQ(code(ask([](O& o) { o.service = static_cast<Service>(9); })), Errc::invalid_argument);
    const Result<void> ud = ask([](O& o) { o.service = Service::ud; });
    if (t == Transport::roce) {
      EXPECT_TRUE(ud.ok());
    } else {
      EXPECT_EQ(code(ud), Errc::unsupported);
    }
  }
}

// proves: IB-119
TEST_P(CreateQp, ANewQueuePairHasTheRequestedSizesAndItsFirstState) {
  open();
  for (const Transport t : {Transport::iwarp, Transport::roce}) {
    SCOPED_TRACE(t == Transport::roce ? "RoCE" : "iWARP");
    QpOptions o = ends[0].options(t);
    o.max_receive = 37;
    o.max_receive_sge = 5;
    QueuePair qp = ends[0].make(o);
    // iWARP's Idle accepts receives.
    EXPECT_EQ(qp.state(), t == Transport::roce ? QpState::reset : QpState::init);
    EXPECT_NE(qp.number(), 0u);
    ASSERT_TRUE(
        qp.modify(QpState::init, t == Transport::roce ? Agreed().to_init() : QpAttributes()).ok());
    const std::vector<Sge> pieces(5, ends[0].sge(0, 8));
    ReceiveRequest r;
    r.sges = pieces;
    for (int i = 0; i < 37; ++i) EXPECT_TRUE(qp.post_receive(r).ok()) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, CreateQp, ::testing::Values("mem"));

}  // namespace
}  // namespace urnic::test
