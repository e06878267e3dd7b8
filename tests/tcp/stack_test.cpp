// Tests of endpoints: results, readiness, life after close, limits.
#include <gtest/gtest.h>
#include <malloc.h>

#include "tests/tcp/stack_fixture.h"

namespace urnic::tcp::test {
namespace {

TEST_F(StackTest, ConnectAndAcceptReportTheAddresses) {
  open_pair();
  EXPECT_EQ(b->peer_address(y), a->local_address(x));
  EXPECT_EQ(a->peer_address(x), (SocketAddress{ip("10.0.0.2"), 80}));
  EXPECT_EQ(b->local_address(y), (SocketAddress{ip("10.0.0.2"), 80}));
  EXPECT_EQ(a->connect(x, {ip("10.0.0.2"), 80}, now), Status::AlreadyConnected);
}

TEST_F(StackTest, ConnectReportsProgressThenConnected) {
  l = listen();
  x = a->open();
  EXPECT_EQ(a->connect(x, {ip("10.0.0.2"), 80}, now), Status::InProgress);
  EXPECT_EQ(a->connect(x, {ip("10.0.0.2"), 80}, now), Status::InProgress);
  EXPECT_EQ(read(*a, x).status, Status::WouldBlock);
  EXPECT_EQ(write(*a, x, 1).status, Status::WouldBlock);
  EXPECT_EQ(a->shutdown_write(x, now), Status::NotConnected);
  EXPECT_FALSE(a->readiness(x).connected);
  carry();
  EXPECT_EQ(at_a.of(x), kConnected | kWritable);
  EXPECT_EQ(at_b.of(l), kAcceptable);
  EXPECT_TRUE(b->readiness(l).acceptable);
}

TEST_F(StackTest, RefusedOnceThenEndOfStreamAndBrokenPipe) {
  connect(81);
  EXPECT_EQ(at_a.of(x), kError);
  EXPECT_TRUE(a->readiness(x).error);
  EXPECT_EQ(a->take_error(x), Status::Refused);
  EXPECT_EQ(a->take_error(x), Status::Ok);
  EXPECT_EQ(read(*a, x).status, Status::EndOfStream);
  EXPECT_EQ(write(*a, x, 1).status, Status::BrokenPipe);
  EXPECT_EQ(a->close(x, now), Status::Ok);
  EXPECT_EQ(a->sockets(), 0u);
}

TEST_F(StackTest, ConnectTimesOut) {
  a->set_default(Option::SynRetries, 2);
  x = a->open();
  a->connect(x, {ip("10.0.0.77"), 80}, now);
  pass(Duration::s(10));
  EXPECT_EQ(a->take_error(x), Status::TimedOut);
}

TEST_F(StackTest, WrongUseHasDistinctAnswers) {
  const Endpoint fresh = a->open();
  EXPECT_EQ(read(*a, fresh).status, Status::NotConnected);
  EXPECT_EQ(write(*a, fresh, 1).status, Status::NotConnected);
  EXPECT_EQ(a->shutdown_write(fresh, now), Status::NotConnected);
  EXPECT_EQ(a->accept(fresh, nullptr, now), Endpoint::None);
  EXPECT_EQ(a->listen(fresh, 0), Status::Invalid);
  EXPECT_EQ(a->bind(fresh, {ip("10.9.9.9"), 1}), Status::NoAddress);
  EXPECT_EQ(a->connect(fresh, {ip("224.0.0.1"), 1}, now), Status::Invalid);
  EXPECT_EQ(a->connect(fresh, {ip("10.0.0.2"), 0}, now), Status::Invalid);
  a->close(fresh, now);
  EXPECT_EQ(read(*a, fresh).status, Status::Invalid);
  EXPECT_EQ(a->close(fresh, now), Status::Invalid);
  const Endpoint later = a->open();
  EXPECT_NE(later, fresh);
  EXPECT_EQ(a->take_error(Endpoint::None), Status::Invalid);
  EXPECT_EQ(a->take_error(static_cast<Endpoint>(0xffffffffffffffff)), Status::Invalid);
  l = listen(90);
  EXPECT_EQ(write(*b, l, 1).status, Status::Invalid);
  EXPECT_EQ(b->connect(l, {ip("10.0.0.1"), 1}, now), Status::Invalid);
  const Endpoint second = b->open();
  b->bind(second, {ip("10.0.0.2"), 90});
  EXPECT_EQ(b->listen(second, 1), Status::AddressInUse);
}

TEST_F(StackTest, BytesArriveAndReadinessFollows) {
  open_pair();
  EXPECT_EQ(read(*b, y).status, Status::WouldBlock);
  EXPECT_EQ(write(*a, x, 3000).bytes, 3000u);
  carry();
  EXPECT_EQ(b->readiness(y).readable, 3000u);
  EXPECT_EQ(at_b.of(y), kReadable);
  Bytes buffer(1000);
  EXPECT_EQ(b->peek(y, buffer, 2500).bytes, 500u);
  EXPECT_EQ(b->peek(y, buffer).bytes, 1000u);
  EXPECT_EQ(b->read(y, buffer, now).bytes, 1000u);
  EXPECT_EQ(buffer[999], 0x5a);
  EXPECT_EQ(b->readiness(y).readable, 2000u);
  EXPECT_EQ(read(*b, y).bytes, 2000u);
  EXPECT_EQ(read(*b, y).status, Status::WouldBlock);
  EXPECT_EQ(b->read(y, {}, now).status, Status::Ok);
}

TEST_F(StackTest, WriteAcceptsExactlyWhatFits) {
  a->set_default(Option::SendBuffer, 5000);
  b->set_default(Option::ReceiveBuffer, 2 * 1448);
  open_pair();
  EXPECT_EQ(write(*a, x, 9000).bytes, 5000u);
  EXPECT_EQ(write(*a, x, 1).status, Status::WouldBlock);
  EXPECT_EQ(a->readiness(x).writable, 0u);
  carry();
  EXPECT_EQ(b->readiness(y).readable, 2896u);
  EXPECT_EQ(a->readiness(x).writable, 2896u);
  EXPECT_NE(at_a.of(x) & kWritable, 0u);
  EXPECT_EQ(b->snapshot(y, now)->rcv_wnd, 0u);
  EXPECT_EQ(read(*b, y).bytes, 2896u);
  pass(Duration::s(2));
  EXPECT_EQ(b->readiness(y).readable, 2104u);
}

TEST_F(StackTest, HalfCloseEachWay) {
  open_pair();
  write(*a, x, 10);
  EXPECT_EQ(a->shutdown_write(x, now), Status::Ok);
  EXPECT_EQ(write(*a, x, 1).status, Status::BrokenPipe);
  carry();
  EXPECT_TRUE(b->readiness(y).peer_closed);
  EXPECT_NE(at_b.of(y) & kPeerClosed, 0u);
  EXPECT_EQ(read(*b, y).bytes, 10u);
  EXPECT_EQ(read(*b, y).status, Status::EndOfStream);
  EXPECT_EQ(read(*b, y).status, Status::EndOfStream);
  EXPECT_EQ(write(*b, y, 20).bytes, 20u);
  carry();
  EXPECT_EQ(read(*a, x).bytes, 20u);
  EXPECT_EQ(b->shutdown_write(y, now), Status::Ok);
  pass(Duration::s(1));
  EXPECT_EQ(read(*a, x).status, Status::EndOfStream);
  EXPECT_EQ(a->snapshot(x, now)->state, State::TimeWait);
  EXPECT_EQ(b->snapshot(y, now)->state, State::Closed);
  EXPECT_EQ(b->take_error(y), Status::Ok);
}

TEST_F(StackTest, ShutdownReadDiscardsAndAcknowledges) {
  b->set_default(Option::ReceiveBuffer, 4000);
  open_pair();
  write(*a, x, 3000);
  carry();
  EXPECT_EQ(b->shutdown_read(y, now), Status::Ok);
  EXPECT_EQ(read(*b, y).status, Status::EndOfStream);
  write(*a, x, 20000);
  pass(Duration::s(1));
  EXPECT_EQ(a->snapshot(x, now)->acked, 23000u);
  EXPECT_EQ(b->readiness(y).readable, 0u);
}

TEST_F(StackTest, ClosedEndpointsFinishInTheStack) {
  open_pair();
  write(*a, x, 50000);
  EXPECT_EQ(a->close(x, now), Status::Ok);
  EXPECT_EQ(a->close(x, now), Status::Invalid);
  EXPECT_EQ(a->connections(), 1u);
  carry();
  EXPECT_EQ(read(*b, y).bytes, 50000u);
  EXPECT_EQ(read(*b, y).status, Status::EndOfStream);
  EXPECT_EQ(b->close(y, now), Status::Ok);
  carry();
  EXPECT_EQ(b->connections(), 0u);
  EXPECT_EQ(a->connections(), 1u);  // TIME-WAIT
  pass(Duration::s(61));
  EXPECT_EQ(a->connections(), 0u);
  EXPECT_EQ(a->sockets(), 0u);
  EXPECT_TRUE(a->next_deadline().is_never());
}

TEST_F(StackTest, CloseWithUnreadDataResets_RFC2525_2_17) {
  open_pair();
  write(*b, y, 100);
  carry();
  a->close(x, now);
  carry();
  EXPECT_EQ(a->connections(), 0u);
  EXPECT_NE(at_b.of(y) & kError, 0u);
  EXPECT_EQ(read(*b, y).status, Status::Reset);
  EXPECT_EQ(read(*b, y).status, Status::EndOfStream);
  EXPECT_EQ(write(*b, y, 1).status, Status::BrokenPipe);
}

TEST_F(StackTest, DataAfterCloseResets_RFC1122_4_2_2_13) {
  open_pair();
  a->close(x, now);
  carry();
  write(*b, y, 100);
  carry();
  EXPECT_EQ(a->connections(), 0u);
  EXPECT_EQ(b->take_error(y), Status::Reset);
}

TEST_F(StackTest, LingerZeroAborts) {
  open_pair();
  EXPECT_EQ(a->set_option(x, Option::Linger, 0, now), Status::Ok);
  write(*a, x, 10);
  a->close(x, now);
  carry();
  EXPECT_EQ(a->connections(), 0u);
  EXPECT_EQ(read(*b, y).bytes, 10u);  // data received before stays readable
  EXPECT_EQ(read(*b, y).status, Status::Reset);
}

TEST_F(StackTest, AbortResets) {
  open_pair();
  a->abort(x, now);
  carry();
  EXPECT_EQ(a->sockets(), 0u);
  EXPECT_EQ(b->take_error(y), Status::Reset);
}

TEST_F(StackTest, ClosingAListenerResetsUnacceptedConnections) {
  l = listen();
  connect();
  EXPECT_TRUE(a->readiness(x).connected);
  b->close(l, now);
  carry();
  EXPECT_EQ(a->take_error(x), Status::Reset);
  EXPECT_EQ(b->sockets(), 0u);
  connect();
  EXPECT_EQ(a->take_error(x), Status::Refused);
}

TEST_F(StackTest, BacklogLimitsFinishedConnections) {
  l = listen(80, 2);
  std::vector<Endpoint> xs;
  for (int i = 0; i < 4; ++i) {
    connect();
    xs.push_back(x);
  }
  EXPECT_EQ(b->counters().dropped_backlog, 2u);
  EXPECT_TRUE(a->readiness(xs[1]).connected);
  EXPECT_FALSE(a->readiness(xs[2]).connected);
  EXPECT_NE(b->accept(l, nullptr, now), Endpoint::None);
  EXPECT_NE(b->accept(l, nullptr, now), Endpoint::None);
  EXPECT_EQ(b->accept(l, nullptr, now), Endpoint::None);
  pass(Duration::s(2));  // the SYNs are resent
  EXPECT_TRUE(a->readiness(xs[2]).connected);
  EXPECT_TRUE(a->readiness(xs[3]).connected);
}

// Endpoints that open and close faster than their deadlines leave a bounded list of timers.
// proves: E-50
TEST_F(StackTest, TimersOfClosedEndpointsAreRemoved) {
  a->set_default(Option::Linger, 0);
  // Its deadline is before all others, so no entry leaves the top of the list in the meantime.
  const Endpoint first = a->open();
  ASSERT_EQ(a->connect(first, {ip("10.0.0.78"), 80}, now), Status::InProgress);
  now = now + Duration::ms(1);
  for (int i = 0; i < 10'000; ++i) {
    x = a->open();
    ASSERT_EQ(a->connect(x, {ip("10.0.0.77"), 80}, now), Status::InProgress);
    ASSERT_EQ(a->close(x, now), Status::Ok);
    drain(*a);
    ASSERT_LE(a->timers(), 1030u) << i;
  }
  EXPECT_EQ(a->sockets(), 1u);
  ASSERT_EQ(a->close(first, now), Status::Ok);
  pass(Duration::s(100));
  EXPECT_EQ(a->timers(), 0u);
}

// RSTs for segments of no connection: a driver that fetches none of them cannot accumulate more
// than the limit.
TEST_F(StackTest, UnfetchedRepliesToUnknownPeersAreBounded) {
  x = a->open();
  a->connect(x, {ip("10.0.0.2"), 81}, now);
  Datagram d;
  ASSERT_TRUE(a->next_output(&d));
  const std::vector<std::uint8_t> syn(d.bytes.begin(), d.bytes.end());
  drain(*b);
  for (int i = 0; i < 10'000; ++i) b->input(syn, now);
  std::size_t answers = 0;
  while (b->next_output(&d)) ++answers;
  EXPECT_EQ(answers, 4096u);
  b->input(syn, now);
  EXPECT_TRUE(b->next_output(&d));
  EXPECT_FALSE(b->next_output(&d));
}

TEST_F(StackTest, HalfOpenConnectionsAreLimited) {
  b->set_default(Option::SynBacklog, 3);
  b->set_default(Option::SynCookies, 0);
  l = listen();
  Datagram d;
  for (int i = 0; i < 5; ++i) {  // SYNs whose SYN-ACKs are never answered
    x = a->open();
    a->connect(x, {ip("10.0.0.2"), 80}, now);
    ASSERT_TRUE(a->next_output(&d));
    b->input(d.bytes, now);
  }
  EXPECT_EQ(b->connections(), 3u);
  EXPECT_EQ(b->counters().dropped_backlog, 2u);
  drain(*b);
  for (int i = 0; i < 400; ++i) {  // and they time out without a report
    now = now + Duration::s(1);
    b->run(now);
    drain(*b);
  }
  EXPECT_EQ(b->connections(), 0u);
  EXPECT_EQ(b->sockets(), 1u);
}

TEST_F(StackTest, OrphansDoNotLiveForEver) {
  open_pair();
  a->close(x, now);
  carry();  // FIN-WAIT-2: the peer never closes
  EXPECT_EQ(a->connections(), 1u);
  pass(Duration::s(61));
  EXPECT_EQ(a->connections(), 0u);

  b->set_default(Option::WindowScaling, 0);
  b->set_default(Option::ReceiveBuffer, 65535);
  l = listen(81);
  connect(81);
  y = b->accept(l, nullptr, now);
  write(*a, x, 10000000);  // the peer never reads
  a->close(x, now);
  pass(Duration::s(60));
  EXPECT_EQ(a->connections(), 1u);
  pass(Duration::s(200));
  EXPECT_EQ(a->connections(), 0u);
}

// A window probe whose byte is accepted is progress, but the data after it still waits: for the
// user timeout (RFC 9293 3.9.1.8), or for the timeout of a closed endpoint.
TEST_F(StackTest, AnAcceptedProbeDoesNotStopTheTimeout) {
  for (const bool orphan : {false, true}) {
    a->set_default(Option::UserTimeout, orphan ? 0 : 20'000'000);
    a->set_default(Option::OrphanTimeout, 20'000'000);
    b->set_default(Option::ReceiveBuffer, 2 * 1448 + 1);  // one byte that no scaled window can
                                                          // express
    open_pair();
    write(*a, x, 9000);
    if (orphan) a->close(x, now);
    pass(Duration::s(10));
    EXPECT_EQ(b->readiness(y).readable, 2u * 1448 + 1);
    EXPECT_EQ(a->connections(), 1u);
    pass(Duration::s(40));
    EXPECT_EQ(a->connections(), 0u);
    if (!orphan) {
      EXPECT_EQ(a->take_error(x), Status::TimedOut);
    }
    b->close(l, now);
    b->abort(y, now);
    carry();
  }
}

TEST_F(StackTest, Ipv6AndIpv4WorkSideBySide) {
  const Endpoint l6 = b->open();
  b->bind(l6, {IpAddress::any_v6(), 80});
  EXPECT_EQ(b->listen(l6, 4), Status::Ok);
  l = listen(80);
  x = a->open();
  EXPECT_EQ(a->connect(x, {ip("fd00::2"), 80}, now), Status::InProgress);
  carry();
  EXPECT_NE(b->accept(l6, nullptr, now), Endpoint::None);
  EXPECT_EQ(b->accept(l, nullptr, now), Endpoint::None);
  EXPECT_EQ(a->snapshot(x, now)->advertised_mss, 1500 - 60);
}

TEST_F(StackTest, TheMoreSpecificListenerWins) {
  l = listen(80);
  const Endpoint special = b->open();
  b->bind(special, {ip("10.0.0.2"), 80});
  EXPECT_EQ(b->listen(special, 1), Status::AddressInUse);
}

// ---- injected functions

TEST_F(StackTest, IsnTimestampAndPortAreInjectable) {
  StackConfig c;
  c.addresses = {ip("10.0.0.1")};
  c.isn = [](const SocketAddress&, const SocketAddress&, Instant) { return Seq(0xabcdef01); };
  c.ts_offset = [](const SocketAddress&, const SocketAddress&) { return 7u; };
  c.ephemeral_port = [](const IpAddress&, const SocketAddress&, unsigned attempt) {
    return static_cast<std::uint16_t>(5000 + attempt);
  };
  Stack s(c);
  for (int i = 0; i < 2; ++i) {
    const Endpoint e = s.open();
    s.connect(e, {ip("10.0.0.2"), 80}, now);
    const auto out = drain(s);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].s.seq, Seq(0xabcdef01));
    EXPECT_EQ(out[0].s.opts.tsval, 10000u + 7);
    EXPECT_EQ(out[0].s.src_port, 5000 + i);
  }
}

TEST_F(StackTest, PortsRunOutPerDestination) {
  StackConfig c;
  c.addresses = {ip("10.0.0.1")};
  c.port_first = 100;
  c.port_last = 103;
  Stack s(c);
  std::vector<std::uint16_t> ports;
  for (int i = 0; i < 4; ++i) {
    const Endpoint e = s.open();
    ASSERT_EQ(s.connect(e, {ip("10.0.0.2"), 80}, now), Status::InProgress);
    ports.push_back(s.local_address(e)->port);
  }
  std::sort(ports.begin(), ports.end());
  EXPECT_EQ(ports, (std::vector<std::uint16_t>{100, 101, 102, 103}));
  EXPECT_EQ(s.connect(s.open(), {ip("10.0.0.2"), 80}, now), Status::AddressInUse);
  EXPECT_EQ(s.connect(s.open(), {ip("10.0.0.2"), 81}, now), Status::InProgress);
}

TEST_F(StackTest, SnapshotReportsTheState) {
  open_pair();
  write(*a, x, 3000);
  const Snapshot v = *a->snapshot(x, now);
  EXPECT_EQ(v.state, State::Established);
  EXPECT_EQ(v.in_flight, 3000u);
  EXPECT_EQ(v.snd_nxt - v.snd_una, 3000u);
  EXPECT_EQ(v.cwnd, 10u * 1448);
  EXPECT_EQ(v.ssthresh, Snapshot::kInfiniteSsthresh);
  EXPECT_EQ(v.recovery, Recovery::Open);
  EXPECT_TRUE(v.sack && v.timestamps && v.window_scaling && !v.ecn);
  EXPECT_EQ(v.send_mss, 1448);
  EXPECT_EQ(v.peer_mss, 1460);
  EXPECT_TRUE(v.rtt_measured);
  carry();
  EXPECT_EQ(a->snapshot(x, now)->in_flight, 0u);
  EXPECT_EQ(b->snapshot(y, now)->delivered, 3000u);
  EXPECT_EQ(b->snapshot(y, now)->unread, 3000u);
  EXPECT_FALSE(b->snapshot(l, now).has_value());
}

TEST_F(StackTest, BuffersCanBeResizedOnAnOpenConnection) {
  b->set_default(Option::ReceiveBuffer, 1448);
  open_pair();
  write(*a, x, 20000);
  carry();
  EXPECT_EQ(b->readiness(y).readable, 1448u);
  EXPECT_EQ(b->set_option(y, Option::ReceiveBuffer, 30000, now), Status::Ok);
  pass(Duration::s(1));
  EXPECT_EQ(b->readiness(y).readable, 20000u);
  EXPECT_EQ(a->set_option(x, Option::SendBuffer, 100, now), Status::Ok);
  EXPECT_EQ(write(*a, x, 200).bytes, 100u);
}

TEST_F(StackTest, SettingAnOptionKeepsWhatTheConnectionOpenedWith) {
  a->set_default(Option::Mtu, 1000);
  open_pair();
  EXPECT_EQ(a->snapshot(x, now)->advertised_mss, 960u);
  EXPECT_EQ(a->set_option(x, Option::Nagle, 1, now), Status::Ok);
  EXPECT_EQ(a->snapshot(x, now)->advertised_mss, 960u);
  pass(Duration::s(1));
  // With another timestamp offset the peer would drop this as old (PAWS).
  write(*a, x, 5000);
  carry();
  EXPECT_EQ(b->readiness(y).readable, 5000u);
}

TEST(StackLife, ManyStacksInOneProcessLeakNoMemory) {
  const auto hundred = [] {
    std::vector<std::unique_ptr<Stack>> all;
    for (int i = 0; i < 100; ++i) {
      StackConfig c;
      c.addresses = {IpAddress::v4(10, 0, 0, static_cast<std::uint8_t>(i))};
      all.push_back(std::make_unique<Stack>(c));
      const Endpoint e = all.back()->open();
      EXPECT_EQ(all.back()->connect(e, {ip("10.0.1.1"), 1}, Instant::from_ns(0)),
                Status::InProgress);
    }
    for (const auto& s : all) EXPECT_EQ(s->connections(), 1u) << "each has its own and no other";
  };
  hundred();  // memory that the library and the C++ runtime allocate once
  const std::size_t before = mallinfo2().uordblks;
  hundred();
  EXPECT_EQ(mallinfo2().uordblks, before);
}

}  // namespace
}  // namespace urnic::tcp::test
