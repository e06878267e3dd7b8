// RDMA over the kernel's TCP (D7, E-31), through the public API, in real time on loopback. The
// other end is another device of ours, or a plain socket controlled by the test. No test here
// measures speed.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "iwarp/stream_ends.h"
#include "tests/support/ipv6.h"

namespace urnic {
namespace {

using namespace stream_test;

// progress, MPA revision, CRC, RTR kinds (empty: not peer-to-peer), address
using Setting = std::tuple<const char*, const char*, const char*, const char*, const char*>;
class StreamMatrix : public ::testing::TestWithParam<Setting> {};

TEST_P(StreamMatrix, DataMovesBothWaysAndTheConnectionClosesInOrder) {
  const auto [progress, revision, crc, rtr, address] = GetParam();
  if (*address == '[' && !testing::has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  Settings s = {{"progress", progress}, {"mpa_revision", revision}, {"crc", crc}};
  s.emplace_back("peer_to_peer", *rtr == 0 ? "off" : "on");
  if (*rtr != 0) s.emplace_back("rtr", rtr);
  Device server = open(s), client = open(s);
  End a(client), b(server);
  join(server, b, a, address);
  if (HasFailure()) return;
  exchange(a, b);
  if (HasFatalFailure()) return;
  exchange(b, a);
  if (HasFatalFailure()) return;
  for (End* e : {&a, &b}) {
    const ConnectionStats st = e->qp.stats();
    EXPECT_FALSE(st.iwarp.fast);
    EXPECT_EQ(st.iwarp.slow_reason, "no-segments");
    EXPECT_EQ(st.iwarp.mpa.crc, std::string(crc) == "on");
    EXPECT_EQ(st.iwarp.bytes_fast, 0u);
    EXPECT_GT(st.iwarp.bytes_slow, 500000u);
    EXPECT_EQ(st.state, "established");
    EXPECT_GT(st.iwarp.tcp.mss, 0u);
  }
  a.qp.disconnect();
  EXPECT_EQ(a.ending().kind, EventKind::disconnected);
  EXPECT_EQ(b.ending().kind, EventKind::disconnected);
  EXPECT_EQ(a.qp.state(), QpState::error);
  EXPECT_EQ(b.qp.state(), QpState::error);
  EXPECT_EQ(server.stats().connections.size() + client.stats().connections.size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(All, StreamMatrix,
                         ::testing::Combine(::testing::Values("auto", "thread"),
                                            ::testing::Values("1", "2"),
                                            ::testing::Values("on", "off"),
                                            ::testing::Values("", "write", "read", "write,read"),
                                            ::testing::Values("127.0.0.1", "[::1]")));

TEST(StreamTransport, FailedConnectionsReportTheReason) {
  Device d = open();
  ConnectionOptions quick;
  quick.timeout_ms = 1500;
  End refused(d);
  auto r = refused.qp.connect("127.0.0.1:1", quick);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, Errc::refused) << r.error().message;
  // Known at once, since it is this machine: nothing had begun.
  EXPECT_EQ(refused.qp.state(), QpState::init);
  // A listener that never answers: no Reply arrives.
  const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::listen(silent, 4), 0);
  socklen_t n = sizeof at;
  getsockname(silent, reinterpret_cast<sockaddr*>(&at), &n);
  End waiting(d);
  r = waiting.qp.connect("127.0.0.1:" + std::to_string(ntohs(at.sin_port)), quick);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, Errc::timed_out) << r.error().message;
  close(silent);
  // This machine does not have the address: nothing can be sent from it.
  Device elsewhere = open({{"port", "tcp:bind=::1"}});
  End other(elsewhere);
  r = other.qp.connect("127.0.0.1:1", quick);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, Errc::unreachable) << r.error().message;
  EXPECT_EQ(other.qp.state(), QpState::init);
}

TEST(StreamTransport, AnOccupiedPortIsInUseAndAPrivilegedOneNeedsPermission) {
  Device d = open(), other = open();
  auto first = d.listen(0);
  ASSERT_TRUE(first.ok());
  auto second = other.listen(first->port());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Errc::in_use) << second.error().message;
  const std::uint16_t port = first->port();
  *first = Listener();
  EXPECT_TRUE(other.listen(port).ok());
}

TEST(StreamTransport, BadPortArgumentsFailWithAMessage) {
  for (const char* spec :
       {"tcp:bind=nowhere", "tcp:colour=red", "tcp:align=perhaps", "tcp:bind=224.0.0.1"}) {
    Config c;
    ASSERT_TRUE(c.set("port", spec).ok());
    auto d = Device::open(c);
    ASSERT_FALSE(d.ok()) << spec;
    EXPECT_EQ(d.error().code, Errc::invalid_argument);
    EXPECT_EQ(d.error().message.find('\n'), std::string::npos);
  }
  Config c;
  ASSERT_TRUE(c.set("port", "tcp").ok());
  ASSERT_TRUE(c.set("faults", "dup=0.1").ok());
  const auto d = Device::open(c);
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.error().code, Errc::invalid_argument);
  EXPECT_EQ(d.error().message.find("port = tcp: faults: fault plan: 'dup' needs frames"), 0u)
      << d.error().message;
}

// proves: E-31
TEST(StreamTransport, RequireFastFailsAtConnectAndAccept) {
  Device server = open(), client = open();
  End s(server), c(client);
  ConnectionOptions fast;
  fast.iwarp.require_fast = true;
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  const std::string to = "127.0.0.1:" + std::to_string(listener->port());
  const auto refused = c.qp.connect(to, fast);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::unsupported);
  EXPECT_NE(refused.error().message.find("no-segments"), std::string::npos);
  EXPECT_EQ(c.qp.state(), QpState::init);
  // Requesting FAST without requiring it gives SLOW.
  ConnectionOptions wish;
  wish.iwarp.type = ConnectionType::fast;
  ASSERT_TRUE(c.qp.connect_start(to, wish).ok());
  auto request = listener->next(60000);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->accept(s.qp, fast).error().code, Errc::unsupported);
  EXPECT_TRUE(request->accept(s.qp).ok());  // not answered yet
  Event e;
  ASSERT_TRUE(c.events.wait(&e, 60000));
  EXPECT_EQ(e.kind, EventKind::established);
  EXPECT_FALSE(c.qp.stats().iwarp.fast);
}

TEST(StreamTransport, RejectionCarriesPrivateDataBothWays) {
  Device server = open(), client = open();
  End c(client);
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  std::vector<std::uint8_t> data(508, 9);
  ConnectionOptions o;
  o.private_data = data;
  ASSERT_TRUE(c.qp.connect_start("127.0.0.1:" + std::to_string(listener->port()), o).ok());
  auto request = listener->next(60000);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->private_data().size(), data.size());
  EXPECT_EQ(request->local(), "127.0.0.1:" + std::to_string(listener->port()));
  const std::uint8_t no[] = {1, 2, 3};
  request->reject(no);
  const Event e = c.ending();
  EXPECT_EQ(e.kind, EventKind::connect_failed);
  EXPECT_EQ(e.error.code, Errc::rejected);
  EXPECT_EQ(e.private_data, std::string("\1\2\3"));
  EXPECT_EQ(c.qp.state(), QpState::error);
  EXPECT_TRUE(test::soon([&] { return server.stats().connections.empty(); }));
}

TEST(StreamTransport, ARefusedWriteTerminatesBothEndsWithTheRightError) {
  Device server = open(), client = open();
  End s(server), c(client);
  join(server, s, c);
  const Sge data = c.sge(0, 100);
  SendRequest w = c.towards(Opcode::write, data, s, s.memory.size() - 10, 1);
  ASSERT_TRUE(c.qp.post_send(w).ok());
  const Event at_target = s.ending();
  EXPECT_EQ(at_target.kind, EventKind::failed);
  EXPECT_EQ(at_target.error.code, Errc::protocol) << at_target.error.message;
  EXPECT_EQ(s.qp.stats().iwarp.ddp.terminates_sent, 1u);
  const Event here = c.ending();
  EXPECT_EQ(here.kind, EventKind::failed);
  EXPECT_NE(here.error.message.find("Terminate"), std::string::npos) << here.error.message;
  EXPECT_EQ(c.qp.stats().iwarp.ddp.terminates_received, 1u);
}

// proves: R-116
TEST(StreamTransport, ASendWithoutAReceiveTerminates) {
  Device server = open(), client = open();
  End s(server), c(client);
  join(server, s, c);
  const Sge data = c.sge(0, 100);
  ASSERT_TRUE(c.qp.post_send(c.request(Opcode::send, data, 1)).ok());
  EXPECT_EQ(s.ending().error.code, Errc::protocol);
  EXPECT_EQ(c.ending().kind, EventKind::failed);
}

TEST(StreamTransport, AbortIsAResetAtThePeerAndWorkIsFlushed) {
  Device server = open(), client = open();
  End s(server), c(client);
  join(server, s, c);
  const Sge into = s.sge(0, 64);
  ASSERT_TRUE(s.qp.post_receive({5, {&into, 1}}).ok());
  c.qp.abort();
  const Event e = s.ending();
  EXPECT_EQ(e.kind, EventKind::failed);
  EXPECT_EQ(e.error.code, Errc::reset) << e.error.message;
  EXPECT_EQ(s.wait().status, WcStatus::flushed);
  EXPECT_EQ(s.qp.state(), QpState::error);
  EXPECT_EQ(c.ending().error.code, Errc::closed);
}

// A user's soft limit is usually 1024, less than this test needs.
bool may_open(rlim_t descriptors) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < descriptors) return false;
  limit.rlim_cur = std::max(limit.rlim_cur, descriptors);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

TEST(StreamTransport, ManyConnectionsShareOneDevice) {
  if (!may_open(2048)) GTEST_SKIP() << "this process may not open 2048 descriptors";
  Device server = open({{"progress", "thread"}}), client = open({{"progress", "thread"}});
  auto listener = server.listen(0, 512);
  ASSERT_TRUE(listener.ok());
  constexpr int kMany = 150;
  std::vector<std::unique_ptr<End>> ours, theirs;
  for (int i = 0; i < kMany; ++i) {
    ours.push_back(std::make_unique<End>(client, 8192));
    theirs.push_back(std::make_unique<End>(server, 8192));
    ours.back()->fill(static_cast<std::uint8_t>(i));
    ASSERT_TRUE(
        ours.back()->qp.connect_start("127.0.0.1:" + std::to_string(listener->port())).ok());
  }
  // Requests may arrive in another order than the connections: each is identified by the number it
  // writes.
  for (int i = 0; i < kMany; ++i) {
    auto request = listener->next(60000);
    ASSERT_TRUE(request.ok());
    const Sge into = theirs[static_cast<std::size_t>(i)]->sge(0, 8192);
    ASSERT_TRUE(theirs[static_cast<std::size_t>(i)]->qp.post_receive({1, {&into, 1}}).ok());
    ASSERT_TRUE(request->accept(theirs[static_cast<std::size_t>(i)]->qp).ok());
  }
  for (auto& c : ours) {
    Event e;
    ASSERT_TRUE(c->events.wait(&e, 60000));
    ASSERT_EQ(e.kind, EventKind::established);
    const Sge all = c->sge(0, 8192);
    ASSERT_TRUE(c->qp.post_send(c->request(Opcode::send, all, 1)).ok());
  }
  std::vector<bool> seen(256);
  for (auto& s : theirs) {
    ASSERT_EQ(s->wait().byte_len, 8192u);
    const std::uint8_t number = s->memory[0];
    EXPECT_FALSE(seen[number]);
    seen[number] = true;
    EXPECT_EQ(s->memory, ours[number]->memory);
  }
}

TEST(StreamTransport, WithoutDescriptorsConnectingFailsAndWaitingPeersAreReset) {
  Device server = open({{"progress", "thread"}}), client = open({{"progress", "thread"}});
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  End c(client), d(client), e(client);
  const std::string to = "127.0.0.1:" + std::to_string(listener->port());
  // Descriptors belong to the whole process: leave one, only for the connecting end.
  rlimit old;
  getrlimit(RLIMIT_NOFILE, &old);
  std::vector<int> taken;
  const rlimit tight{256, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  for (int fd = dup(0); fd >= 0; fd = dup(0)) taken.push_back(fd);
  const auto none = c.qp.connect(to);
  close(taken.back());
  taken.pop_back();
  ConnectionOptions quick;
  quick.timeout_ms = 30000;
  const auto begun = d.qp.connect_start(to, quick);
  // Known at once, or shortly after.
  const Error away = begun.ok() ? d.ending().error : begun.error();
  for (const int fd : taken) close(fd);
  setrlimit(RLIMIT_NOFILE, &old);
  server.stats();  // after this call no connection is still being refused
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Errc::no_descriptors) << none.error().message;
  EXPECT_NE(none.error().message.find("descriptor"), std::string::npos);
  EXPECT_EQ(away.code, Errc::reset) << away.message;
  // The listener continues to work.
  ASSERT_TRUE(e.qp.connect_start(to).ok());
  EXPECT_TRUE(listener->next(60000).ok());
}

// proves: E-39
TEST(StreamTransport, IdleConnectionUsesNoCpu) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a thread of the sanitizer's own wakes ten times a second";
#endif
  Device server = open(), client = open();
  End s(server), c(client);
  join(server, s, c);
  usleep(500000);
  // On a busy machine a thread may have to wait for another, which also counts as a switch.
  long switches = 1000;
  for (int i = 0; i < 3 && switches >= 12 + 2; ++i) {
    rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    usleep(3000000);
    getrusage(RUSAGE_SELF, &after);
    switches = after.ru_nvcsw - before.ru_nvcsw;
  }
  EXPECT_LT(switches, 12 + 2);
}

TEST(StreamTransport, ServesWithoutItsProgramAndTheProgramMayPollAlone) {
  Device server = open(), client = open({{"progress", "poll"}});
  End s(server), c(client);
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  ASSERT_TRUE(c.qp.connect_start("127.0.0.1:" + std::to_string(listener->port())).ok());
  std::thread accepting([&] {
    auto request = listener->next(60000);
    ASSERT_TRUE(request.ok());
    EXPECT_TRUE(request->accept(s.qp).ok());
  });
  Event e;
  ASSERT_TRUE(c.events.wait(&e, 60000));
  accepting.join();
  ASSERT_EQ(e.kind, EventKind::established);
  s.fill(5);
  const Sge all = c.sge(0, 1 << 20);
  ASSERT_TRUE(c.qp.post_send(c.towards(Opcode::read, all, s, 0, 1)).ok());
  EXPECT_EQ(c.wait().status, WcStatus::success);
  EXPECT_EQ(c.memory, s.memory);
}

// proves: E-25
TEST(StreamTransport, DeregistrationDuringABlockedSendReturnsAndNothingIsReadAfter) {
  Device server = open({{"progress", "thread"}});
  Device client = open({{"progress", "poll"}});  // so that nothing more is sent in the meantime
  End s(server, 16 << 20);
  auto c = std::make_unique<End>(client, 16 << 20);
  join(server, s, *c);
  c->fill(3);
  const Sge all = c->sge(0, 16 << 20);
  ASSERT_TRUE(c->qp.post_send(c->towards(Opcode::write, all, s, 0, 1)).ok());
  EXPECT_TRUE(c->mr.deregister().ok());
  std::fill(c->memory.begin(), c->memory.end(), std::uint8_t{0});
  const Completion done = c->wait();
  EXPECT_NE(done.status, WcStatus::success);  // it had not been passed to the kernel completely
  EXPECT_EQ(c->ending().kind, EventKind::failed);
}

}  // namespace
}  // namespace urnic
