// connect, listen, accept, reject and disconnect of the public API with RoCE queue pairs: the calls
// are those of iWARP, and both may be used at once.
#include <atomic>
#include <cstring>
#include <string>

#include "tests/device/roce_ends.h"

namespace urnic::test {
namespace {

std::span<const std::uint8_t> bytes(const std::string& s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

// The second end listens, the first one connects.
class RoceConnection : public RoceDevices {
 protected:
  void listen(std::uint16_t port = 0) {
    BindOptions o;
    o.transport = Transport::roce;
    auto at = ends[1].device.bind("[::]:" + std::to_string(port), o);
    ASSERT_TRUE(at.ok()) << at.error().message;
    auto made = ends[1].device.listen(*at);
    ASSERT_TRUE(made.ok()) << made.error().message;
    listener = std::move(*made);
  }
  void begin(const Settings& more = {}) {
    open(more);
    for (int i = 0; i < 2; ++i) qps[i] = ends[i].make();
    listen();
  }
  std::string there() const { return "10.77.0.2:" + std::to_string(listener.port()); }
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
  std::optional<Event> next(int which, EventKind kind, int ms = 60000) {
    Event e;
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    while (std::chrono::steady_clock::now() < until) {
      ends[1 - which].device.progress();
      if (ends[which].events.wait(&e, 2) && e.kind == kind) return e;
    }
    return std::nullopt;
  }
  void connected() {
    ASSERT_TRUE(qps[0].connect_start(there()).ok());
    auto request = asked();
    ASSERT_TRUE(request.ok());
    ASSERT_TRUE(request->accept(qps[1]).ok());
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(next(i, EventKind::established)) << i;
  }
  void expect_carries() {
    const Sge sge = ends[0].sge(0, 5000);
    ends[1].in_order();
    ASSERT_TRUE(qps[0].post_send(request(Opcode::write, 1, sge, 0)).ok());
    Completion c;
    EXPECT_TRUE(soon([&] {
      for (int i = 0; i < 20; ++i) {
        if (ends[0].cq.poll({&c, 1}) == 1) return true;
        ends[1].device.progress();
      }
      return false;
    }));
    EXPECT_EQ(c.status, WcStatus::success);
    ends[1].device.stats();
    EXPECT_EQ(std::memcmp(ends[0].memory.data(), ends[1].memory.data(), 5000), 0);
  }

  Listener listener;
};

// proves: IB-135, IB-136
TEST_P(RoceConnection, IsMadeAndCarriesDataOfTheProgramsBothWays) {
  begin();
  ConnectionOptions o;
  const std::string mine = "from the first", its = "from the second";
  o.private_data = bytes(mine);
  o.ird = 3;
  o.ord = 5;
  o.roce.rnr_retry = 8;
  EXPECT_EQ(qps[0].connect_start(there(), o).error().code, Errc::invalid_argument);
  o.roce.rnr_retry = 6;
  o.roce.retry_count = 9;
  EXPECT_EQ(qps[0].connect_start(there(), o).error().code, Errc::invalid_argument);
  o.roce.retry_count = 5;
  o.roce.ack_timeout = 32;
  EXPECT_EQ(qps[0].connect_start(there(), o).error().code, Errc::invalid_argument);
  o.roce.ack_timeout = {};
  ASSERT_TRUE(qps[0].connect_start(there(), o).ok());
  auto request = asked();
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->peer().substr(0, 10), "10.77.0.1:");
  EXPECT_EQ(request->local(), there());
  EXPECT_EQ(request->ird(), 5);
  EXPECT_EQ(request->ord(), 3);
  EXPECT_EQ(request->retry_count(), 5);
  EXPECT_EQ(request->rnr_retry(), 6);
  ASSERT_EQ(request->private_data().size(), 56u);
  EXPECT_EQ(std::memcmp(request->private_data().data(), mine.data(), mine.size()), 0);
  EXPECT_EQ(request->private_data()[mine.size()], 0);
  o.private_data = bytes(its);
  ASSERT_TRUE(request->accept(qps[1], o).ok());
  const auto up = next(0, EventKind::established);
  ASSERT_TRUE(up);
  EXPECT_EQ(up->context, &ends[0].tag);
  EXPECT_EQ(up->private_data.size(), 196u);
  EXPECT_EQ(qps[0].peer_private_data().substr(0, its.size()), its);
  ASSERT_TRUE(next(1, EventKind::established));
  EXPECT_EQ(qps[0].state(), QpState::rts);
  EXPECT_EQ(qps[1].state(), QpState::rts);
  expect_carries();
  EXPECT_EQ(request->accept(qps[1]).error().code, Errc::wrong_state) << "answered";
}

// Programs that move their queue pairs themselves name them by number.
TEST_P(RoceConnection, ConnectsQueuePairsThatTheirProgramsMove) {
  begin();
  const CmQueuePair mine{.number = qps[0].number()}, its{.number = qps[1].number()};
  auto asks = ends[0].device.cm_connect_start(there(), mine, ends[0].events, &ends[0].tag);
  ASSERT_TRUE(asks.ok()) << asks.error().message;
  auto request = asked();
  ASSERT_TRUE(request.ok()) << request.error().message;
  const auto nowhere = request->accept_number(its, EventQueue(), nullptr);
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().code, Errc::invalid_argument);
  auto accepts = request->accept_number(its, ends[1].events, &ends[1].tag);
  ASSERT_TRUE(accepts.ok()) << accepts.error().message;
  const auto answered = next(0, EventKind::answered);
  ASSERT_TRUE(answered);
  EXPECT_EQ(answered->context, &ends[0].tag);
  const auto attributes = asks->attributes();
  ASSERT_TRUE(attributes.ok()) << attributes.error().message;
  EXPECT_EQ(attributes->dest_qp, qps[1].number());
  ASSERT_TRUE(asks->confirm().ok());
  const auto up = next(1, EventKind::established);
  ASSERT_TRUE(up);
  EXPECT_EQ(up->context, &ends[1].tag);
  EXPECT_EQ(qps[1].state(), QpState::reset) << "it is the program that moves it";
  const auto again = request->accept_number(its, ends[1].events, nullptr);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Errc::wrong_state);
}

// proves: IB-138
TEST_P(RoceConnection, EndsByDisconnectAtBothEndsAndWorkIsFlushed) {
  begin();
  ASSERT_TRUE(qps[1].modify(QpState::init, Agreed().to_init()).ok());
  connected();
  const Sge into = ends[1].sge(0, 100);
  ASSERT_TRUE(qps[1].post_receive({7, {&into, 1}}).ok());
  qps[0].disconnect();
  EXPECT_EQ(qps[0].state(), QpState::error);
  ASSERT_TRUE(next(1, EventKind::disconnected));
  ASSERT_TRUE(next(0, EventKind::disconnected));
  EXPECT_EQ(ends[1].one().status, WcStatus::flushed);
  EXPECT_EQ(qps[1].state(), QpState::error);
  const EngineStats s = ends[0].device.stats();
  EXPECT_EQ(s.connections_opened, 1u);
  EXPECT_EQ(s.connections_closed, 1u);
  EXPECT_GE(s.roce.cm_sent, 3u);
}

TEST_P(RoceConnection, ARequestCanBeAnsweredAgainAfterAnInvalidAnswer) {
  begin();
  const std::string much(197, 'x');
  ConnectionOptions wrong;
  wrong.private_data = bytes(much);
  for (const bool again : {false, true}) {
    qps[0] = ends[0].make();
    ASSERT_TRUE(qps[0].connect_start(there()).ok());
    auto request = asked();
    ASSERT_TRUE(request.ok());
    EXPECT_EQ(request->accept(qps[1], wrong).error().code, Errc::invalid_argument);
    if (again) {
      EXPECT_TRUE(request->accept(qps[1]).ok());
      EXPECT_TRUE(next(0, EventKind::established));
    } else {
      request = ConnectRequest();
      const auto e = next(0, EventKind::connect_failed, kSoonMs);
      ASSERT_TRUE(e);
      EXPECT_EQ(e->error.code, Errc::rejected) << "dropped without another answer";
    }
  }
}

// proves: IB-137
TEST_P(RoceConnection, IsRejectedWithPrivateDataAndRefusedWithoutAListener) {
  begin();
  ASSERT_TRUE(qps[0].connect_start(there()).ok());
  auto request = asked();
  ASSERT_TRUE(request.ok());
  request->reject(bytes("not today"));
  auto e = next(0, EventKind::connect_failed);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->error.code, Errc::rejected);
  EXPECT_EQ(e->private_data.size(), 148u);
  EXPECT_STREQ(e->private_data.c_str(), "not today");
  EXPECT_EQ(qps[0].connect_start(there()).error().code, Errc::wrong_state);

  qps[0] = ends[0].make();
  ASSERT_TRUE(qps[0].connect_start(there()).ok());
  { auto dropped = asked(); }
  e = next(0, EventKind::connect_failed);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->error.code, Errc::rejected) << "dropped without an answer";

  const std::string gone = there();
  listener = Listener();
  qps[0] = ends[0].make();
  ASSERT_TRUE(qps[0].connect_start(gone).ok());
  e = next(0, EventKind::connect_failed);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->error.code, Errc::refused);
}

TEST_P(RoceConnection, DestroyingAQueuePairEndsItsConnection) {
  begin();
  connected();
  qps[0] = QueuePair();
  ASSERT_TRUE(next(1, EventKind::disconnected));
  EXPECT_EQ(ends[0].device.stats().roce.numbers_in_time_wait, 1u);
}

// The device is destroyed with it: its last messages are sent first.
TEST_P(RoceConnection, ClosingTheDeviceSendsTheDreqFirst) {
  begin();
  connected();
  qps[0] = QueuePair();
  ends[0] = RoceEnd();
  ASSERT_TRUE(next(1, EventKind::disconnected));
}

// Also if the queue pair still exists.
TEST_P(RoceConnection, DisconnectAllReturnsWhenThePeersHaveAnswered) {
  begin();
  connected();
  const auto begun = std::chrono::steady_clock::now();
  ends[0].device.disconnect_all(60000);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(40));
  Event e;
  ASSERT_TRUE(ends[1].events.wait(&e, 60000));
  EXPECT_EQ(e.kind, EventKind::disconnected);
  ends[0].device.disconnect_all(60000);  // there is nothing left to wait for
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(40));
}

TEST_P(RoceConnection, AbortFailsHereAndThePeerGetsADreq) {
  begin();
  connected();
  qps[1].abort();
  const auto e = next(1, EventKind::failed);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->error.code, Errc::closed);
  ASSERT_TRUE(next(0, EventKind::disconnected));
}

// One port of each transport; neither gets the other's connections.
TEST_P(RoceConnection, CoexistsWithIwarpOnOneDevice) {
  begin();
  auto stream = ends[1].device.bind("[::]:" + std::to_string(listener.port()));
  ASSERT_TRUE(stream.ok()) << "another space of ports";
  auto streams = *ends[1].device.listen(*stream, 8, ends[1].events, &listener);
  QueuePair a = ends[0].make(Transport::iwarp), b = ends[1].make(Transport::iwarp);
  ASSERT_TRUE(a.connect_start(there()).ok());
  auto asks = next(1, EventKind::connect_request);
  ASSERT_TRUE(asks);
  EXPECT_EQ(asks->context, &listener);
  const auto wrong = asks->request.accept(qps[1]);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, Errc::invalid_argument);
  EXPECT_NE(wrong.error().message.find("iWARP"), std::string::npos);
  ASSERT_TRUE(asks->request.accept(b).ok());
  ASSERT_TRUE(next(0, EventKind::established));
  ASSERT_TRUE(next(1, EventKind::established));
  connected();
  expect_carries();
}

TEST_P(RoceConnection, UsesTheSourceThatTheProgramNames) {
  begin();
  BindOptions o;
  o.transport = Transport::roce;
  auto source = *ends[0].device.bind("10.77.0.1:4711", o);
  auto stream = *ends[0].device.bind("10.77.0.1:4711");
  ConnectionOptions c;
  c.source = &stream;
  EXPECT_EQ(qps[0].connect_start(there(), c).error().code, Errc::invalid_argument);
  c.source = &source;
  ASSERT_TRUE(qps[0].connect_start(there(), c).ok());
  auto request = asked();
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->peer(), "10.77.0.1:4711");
}

TEST_P(RoceConnection, ReportsInvalidArgumentsAtOnce) {
  begin();
  ConnectionOptions o;
  const std::string large(57, 'x');
  o.private_data = bytes(large);
  const auto no = qps[0].connect_start(there(), o);
  ASSERT_FALSE(no.ok());
  EXPECT_EQ(no.error().code, Errc::invalid_argument);
  EXPECT_NE(no.error().message.find("at most 56 bytes"), std::string::npos);
  o = {};
  o.refusal_retry_ms = 101;
  EXPECT_EQ(qps[0].connect_start(there(), o).error().code, Errc::invalid_argument);
  EXPECT_EQ(qps[0].connect_start("203.0.113.1:7").error().code, Errc::unreachable);
  EXPECT_EQ(qps[0].connect_start("nowhere").error().code, Errc::invalid_argument);
  EXPECT_EQ(qps[0].state(), QpState::reset);
}

INSTANTIATE_TEST_SUITE_P(Devices, RoceConnection, ::testing::Values("memif", "mem"),
                         [](const auto& i) { return std::string(i.param); });

// ---- which thread drives

TEST_P(RoceConnection, TheBlockingCallReturnsWhenItIsEstablished) {
  begin();
  std::thread server([&] {
    auto request = listener.next(60000);
    ASSERT_TRUE(request.ok());
    EXPECT_TRUE(request->accept(qps[1]).ok());
  });
  const auto done = qps[0].connect(there());
  server.join();
  ASSERT_TRUE(done.ok()) << done.error().message;
  expect_carries();
}
class RoceDriven : public RoceConnection {};
TEST_P(RoceDriven, AConnectionWorksHoweverTheEngineIsDriven) {
  for (const char* progress : {"auto", "poll", "thread"}) {
    SCOPED_TRACE(progress);
    begin({{"progress", progress}});
    connected();
    expect_carries();
    qps[1].disconnect();
    ASSERT_TRUE(next(0, EventKind::disconnected));
    ASSERT_TRUE(next(1, EventKind::disconnected));
    listener = Listener();
    for (QueuePair& qp : qps) qp = QueuePair();
    for (RoceEnd& e : ends) e = RoceEnd();
  }
}
INSTANTIATE_TEST_SUITE_P(Devices, RoceDriven, ::testing::Values("memif"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace urnic::test
