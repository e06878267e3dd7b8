// Datagrams by address and port, of the public API: Device::resolve, listeners for Service::ud, and
// UD queue pairs that find each other this way. Over memif, within the process and over kernel UDP.
#include <cstring>
#include <string>

#include "tests/device/roce_ends.h"
#include "tests/support/loopback_network.h"

namespace urnic::test {
namespace {

constexpr std::uint32_t kQkey = 0x01234567;

std::span<const std::uint8_t> bytes(const std::string& s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}
std::string text(std::span<const std::uint8_t> s) {
  return {reinterpret_cast<const char*>(s.data()), s.size()};
}
std::string padded(std::string s, std::size_t n) {
  s.resize(n);
  return s;
}

// The second end serves datagrams, the first one sends requests.
class DatagramService : public RoceDevices {
 protected:
  static std::string address(int which) {
    Agreed a;
    if (std::string(GetParam()) == "udp") a.network = loopback_network();
    return a.address(which);
  }
  static BindOptions datagrams() {
    BindOptions o;
    o.transport = Transport::roce;
    o.service = Service::ud;
    return o;
  }
  void begin(const Settings& more = {}) {
    open(more);
    for (int i = 0; i < 2; ++i) {
      qps[i] = make(i);
      ready(qps[i]);
    }
    auto at = ends[1].device.bind(address(1) + ":0", datagrams());
    ASSERT_TRUE(at.ok()) << at.error().message;
    auto made = ends[1].device.listen(*at);
    ASSERT_TRUE(made.ok()) << made.error().message;
    listener = std::move(*made);
  }
  QueuePair make(int i, Service service = Service::ud) {
    QpOptions o = ends[i].options(Transport::roce);
    o.service = service;
    return ends[i].make(o);
  }
  static void ready(QueuePair& qp) {
    QpAttributes init, rts;
    init.qkey = kQkey;
    rts.sq_psn = 7;
    ASSERT_TRUE(qp.modify(QpState::init, init).ok());
    ASSERT_TRUE(qp.modify(QpState::rtr).ok());
    ASSERT_TRUE(qp.modify(QpState::rts, rts).ok());
  }
  std::string there() const { return address(1) + ":" + std::to_string(listener.port()); }
  Result<Resolution> ask(const ResolveOptions& o = {}) {
    return ends[0].device.resolve_start(there(), ends[0].events, &tag, o);
  }
  // Also drives devices without a thread of their own.
  Result<ConnectRequest> asked() {
    const auto end = std::chrono::steady_clock::now() + kSoon;
    while (std::chrono::steady_clock::now() < end) {
      ends[0].device.progress();
      auto request = listener.next(2);
      if (request.ok()) return request;
    }
    return Error{Errc::timed_out, "nobody asks"};
  }
  std::optional<Event> next(EventKind kind) {
    Event e;
    const auto end = std::chrono::steady_clock::now() + kSoon;
    while (std::chrono::steady_clock::now() < end) {
      ends[1].device.progress();
      if (ends[0].events.wait(&e, 2)) {
        EXPECT_EQ(e.kind, kind) << e.error.message;
        return e;
      }
    }
    return std::nullopt;
  }
  static void expect_refused(const Error& e, Errc code, const std::string& what) {
    EXPECT_EQ(e.code, code) << e.message;
    EXPECT_NE(e.message.find(what), std::string::npos) << e.message;
  }
  template <class R>
  static void expect_refused(const R& r, Errc code, const std::string& what) {
    ASSERT_FALSE(r.ok()) << what;
    expect_refused(r.error(), code, what);
  }

  Listener listener;
  int tag = 0;
};

// proves: IB-141
TEST_P(DatagramService, TheClientSendsToTheQueuePairThatAccepts) {
  begin();
  ResolveOptions o;
  const std::string mine = "who takes datagrams?", its = "this one";
  o.private_data = bytes(mine);
  auto question = ask(o);
  ASSERT_TRUE(question.ok()) << question.error().message;
  auto request = asked();
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->service(), Service::ud);
  EXPECT_EQ(request->peer(), question->local());
  EXPECT_EQ(request->local(), there());
  EXPECT_EQ(text(request->private_data()), padded(mine, 180));
  ConnectionOptions answer;
  answer.private_data = bytes(its);
  ASSERT_TRUE(request->accept(qps[1], answer).ok());
  const auto e = next(EventKind::resolved);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->context, &tag);
  EXPECT_EQ(e->private_data, padded(its, 136));
  EXPECT_EQ(e->peer.qp, qps[1].number());
  EXPECT_EQ(e->peer.qkey, kQkey);
  EXPECT_EQ(e->peer.path.remote, address(1));
  EXPECT_EQ(e->peer.path.local, address(0));

  auto handle = ends[0].device.create_address_handle(ends[0].pd, e->peer.path);
  ASSERT_TRUE(handle.ok()) << handle.error().message;
  const Sge into = ends[1].sge(4096, 1000), from = ends[0].sge(0, 500);
  ASSERT_TRUE(qps[1].post_receive({9, {&into, 1}}).ok());
  SendRequest r;
  r.wr_id = 1;
  r.sges = {&from, 1};
  r.address_handle = &*handle;
  r.remote_qp = e->peer.qp;
  r.remote_qkey = e->peer.qkey;
  ASSERT_TRUE(qps[0].post_send(r).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::success);
  const Completion came = ends[1].one();
  EXPECT_EQ(came.wr_id, 9u);
  EXPECT_EQ(came.source_qp, qps[0].number());
  EXPECT_EQ(std::memcmp(&ends[1].memory[4096 + 40], ends[0].memory.data(), 500), 0);
}

// proves: IB-141
TEST_P(DatagramService, TheBlockingCallReturnsTheAnswer) {
  begin();
  std::thread server([&] {
    auto request = listener.next(20000);
    ASSERT_TRUE(request.ok());
    ConnectionOptions o;
    const std::string data = "hello";
    o.private_data = bytes(data);
    o.roce.qkey = 0x77;
    EXPECT_TRUE(request->accept(qps[1], o).ok());
  });
  const auto peer = ends[0].device.resolve(there());
  server.join();
  ASSERT_TRUE(peer.ok()) << peer.error().message;
  EXPECT_EQ(peer->qp, qps[1].number());
  EXPECT_EQ(peer->qkey, 0x77u) << "as was said";
  EXPECT_EQ(peer->private_data, padded("hello", 136));
}

// proves: IB-141
TEST_P(DatagramService, ARefusalCarriesItsReason) {
  begin();
  auto question = ask();
  ASSERT_TRUE(question.ok());
  auto request = asked();
  ASSERT_TRUE(request.ok());
  request->reject(bytes("not today"));
  auto e = next(EventKind::resolve_failed);
  ASSERT_TRUE(e);
  expect_refused(e->error, Errc::rejected, "rejected");
  EXPECT_EQ(e->private_data, padded("not today", 136));

  question = ask();
  { auto dropped = asked(); }
  e = next(EventKind::resolve_failed);
  ASSERT_TRUE(e);
  expect_refused(e->error, Errc::rejected, "rejected");

  const std::string gone = there();
  listener = Listener();
  const auto no = ends[0].device.resolve(gone);
  ASSERT_FALSE(no.ok());
  expect_refused(no, Errc::refused, "no UD service on that port");
}

// A destroyed resolution delivers no event, whatever is done with its request.
// proves: IB-141
TEST_P(DatagramService, ADestroyedResolutionDeliversNoEvent) {
  begin();
  auto question = ask();
  ASSERT_TRUE(question.ok());
  auto request = asked();
  ASSERT_TRUE(request.ok());
  *question = Resolution();
  ASSERT_TRUE(request->accept(qps[1]).ok());
  Event e;
  EXPECT_FALSE(ends[0].events.wait(&e, 50));
  // Its queued events are removed too.
  question = ask();
  ASSERT_TRUE(question.ok());
  request = asked();
  ASSERT_TRUE(request.ok());
  ASSERT_TRUE(request->accept(qps[1]).ok());
  EXPECT_TRUE(soon([&] {
    ends[0].device.progress();
    return ends[0].device.stats().roce.cm_received >= 2;
  }));
  *question = Resolution();
  EXPECT_FALSE(ends[0].events.wait(&e, 10));
}

// proves: IB-141
TEST_P(DatagramService, ARequestIsAcceptedOnlyOnAReadyUdQueuePair) {
  begin();
  auto question = ask();
  ASSERT_TRUE(question.ok());
  auto request = asked();
  ASSERT_TRUE(request.ok());
  QueuePair reliable = make(1, Service::rc), fresh = make(1);
  expect_refused(request->accept(reliable), Errc::invalid_argument, "UD queue pair");
  expect_refused(request->accept(fresh), Errc::wrong_state, "rtr or rts");
  ConnectionOptions o;
  const std::string large(137, 'x');
  o.private_data = bytes(large);
  expect_refused(request->accept(qps[1], o), Errc::invalid_argument, "at most 136 bytes");
  ASSERT_TRUE(request->accept(qps[1]).ok()) << "none of these was an answer";
  expect_refused(request->accept(qps[1]), Errc::wrong_state, "already");
  ASSERT_TRUE(next(EventKind::resolved));
}

// proves: IB-141
TEST_P(DatagramService, ConnectionsAndDatagramsHaveSeparatePorts) {
  begin();
  QueuePair reliable = make(0, Service::rc);
  ConnectionOptions o;
  const auto no = reliable.connect(there(), o);
  ASSERT_FALSE(no.ok());
  EXPECT_EQ(no.error().code, Errc::refused);
  BindOptions b;
  b.transport = Transport::roce;
  auto at = ends[1].device.bind(there(), b);
  ASSERT_TRUE(at.ok()) << "another space of ports: " << at.error().message;
  auto connections = ends[1].device.listen(*at);
  ASSERT_TRUE(connections.ok());
  listener = Listener();
  const auto other = ends[0].device.resolve(address(1) + ":" + std::to_string(connections->port()));
  ASSERT_FALSE(other.ok());
  expect_refused(other, Errc::refused, "no UD service on that port");
}

TEST_P(DatagramService, UsesTheSourceThatTheProgramNames) {
  begin();
  auto source = ends[0].device.bind(address(0) + ":4711", datagrams());
  ASSERT_TRUE(source.ok());
  BindOptions b;
  b.transport = Transport::roce;
  auto wrong = ends[0].device.bind(address(0) + ":4711", b);
  ASSERT_TRUE(wrong.ok());
  ResolveOptions o;
  o.source = &*wrong;
  expect_refused(ask(o), Errc::invalid_argument, "not for datagrams");
  QueuePair reliable = make(0, Service::rc);
  ConnectionOptions c;
  c.source = &*source;
  expect_refused(reliable.connect_start(there(), c), Errc::invalid_argument, "source");
  o.source = &*source;
  auto question = ask(o);
  ASSERT_TRUE(question.ok()) << question.error().message;
  EXPECT_EQ(question->local(), address(0) + ":4711");
  auto request = asked();
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->peer(), address(0) + ":4711");
}

TEST_P(DatagramService, ReportsInvalidArgumentsAtOnce) {
  begin();
  Device& d = ends[0].device;
  ResolveOptions o;
  const std::string large(181, 'x');
  o.private_data = bytes(large);
  expect_refused(ask(o), Errc::invalid_argument, "at most 180 bytes");
  o = {};
  o.refusal_retry_ms = 101;
  expect_refused(ask(o), Errc::invalid_argument, "refusal_retry_ms");
  expect_refused(d.resolve("nowhere"), Errc::invalid_argument, "invalid address");
  expect_refused(d.resolve_start(there(), {}).error(), Errc::invalid_argument, "event queue");
  expect_refused(d.resolve_start(there(), ends[1].events).error(), Errc::invalid_argument,
                 "another device");
  expect_refused(Device().resolve(there()), Errc::invalid_argument, "empty");
  BindOptions b = datagrams();
  b.service = Service::uc;
  expect_refused(d.bind(address(0) + ":0", b).error(), Errc::unsupported, "also ud or xrc_receive");
  EXPECT_FALSE(Resolution());
  EXPECT_EQ(Resolution().local(), "");
  EXPECT_EQ(ConnectRequest().service(), Service::rc);
}

INSTANTIATE_TEST_SUITE_P(Devices, DatagramService, ::testing::Values("memif", "mem", "udp"),
                         [](const auto& i) { return std::string(i.param); });

class DatagramsDriven : public DatagramService {};
TEST_P(DatagramsDriven, TheAnswerArrivesHoweverTheEngineIsDriven) {
  for (const char* progress : {"auto", "poll", "thread"}) {
    SCOPED_TRACE(progress);
    begin({{"progress", progress}});
    auto question = ask();
    ASSERT_TRUE(question.ok());
    auto request = asked();
    ASSERT_TRUE(request.ok());
    ASSERT_TRUE(request->accept(qps[1]).ok());
    ASSERT_TRUE(next(EventKind::resolved));
    *question = Resolution();
    request = ConnectRequest();
    listener = Listener();
    for (QueuePair& qp : qps) qp = QueuePair();
    for (RoceEnd& e : ends) e = RoceEnd();
  }
}
INSTANTIATE_TEST_SUITE_P(Devices, DatagramsDriven, ::testing::Values("memif"),
                         [](const auto& i) { return std::string(i.param); });

// An iWARP device has no datagrams.
TEST(DatagramServiceOfIwarp, IsRefused) {
  Config c;
  ASSERT_TRUE(c.set("port", "mem:name=datagrams-of-iwarp").ok());
  ASSERT_TRUE(c.set("address", "10.77.0.1/24").ok());
  ASSERT_TRUE(c.set("stat", "off").ok());
  auto d = Device::open(c);
  ASSERT_TRUE(d.ok()) << d.error().message;
  const auto no = d->resolve("10.77.0.2:7");
  ASSERT_FALSE(no.ok());
  EXPECT_EQ(no.error().code, Errc::unsupported);
  EXPECT_NE(no.error().message.find("transport"), std::string::npos);
  BindOptions b;
  b.service = Service::ud;
  EXPECT_EQ(d->bind("10.77.0.1:7", b).error().code, Errc::unsupported);
}

}  // namespace
}  // namespace urnic::test
