// The kernel's TCP as seen through this library's sockets: real sockets on loopback, without time
// limits except the test's.
#include "kernel_tcp/socket.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernel_tcp/poller.h"
#include "tests/support/ipv6.h"

namespace urnic::kernel_tcp {
namespace {

using What = Moved::What;

const SocketAddress kAny;
const IpAddress kLoopback4 = IpAddress::v4(127, 0, 0, 1);
const IpAddress kLoopback6 = *IpAddress::parse("::1");

bool wait_for(const Socket& s, short events, int ms = 5000) {
  pollfd p{s.fd(), events, 0};
  return ::poll(&p, 1, ms) == 1;
}

struct Joined {
  Socket listener, a, b;
};

void join(const IpAddress& at, Joined* j) {
  auto l = Socket::listen({at, 0}, 8);
  ASSERT_TRUE(l.ok()) << std::strerror(l.error());
  j->listener = std::move(*l);
  auto a = Socket::connect({at, j->listener.local().port}, kAny);
  ASSERT_TRUE(a.ok()) << std::strerror(a.error());
  j->a = std::move(*a);
  ASSERT_TRUE(wait_for(j->a, POLLOUT));
  ASSERT_EQ(j->a.take_error(), 0);
  ASSERT_TRUE(wait_for(j->listener, POLLIN));
  auto b = j->listener.accept();
  ASSERT_TRUE(b.ok());
  j->b = std::move(*b);
}

TEST(Socket, ConnectsOverBothIpVersionsAndReportsBothEnds) {
  for (const IpAddress& at : {kLoopback4, kLoopback6}) {
    if (at.is_v6() && !testing::has_ipv6()) GTEST_SKIP() << "no IPv6 here; version 4 passed";
    Joined j;
    join(at, &j);
    if (HasFatalFailure()) return;
    EXPECT_EQ(j.a.remote(), j.listener.local());
    EXPECT_EQ(j.a.local(), j.b.remote());
    EXPECT_EQ(j.b.local().ip, at);
    EXPECT_GT(j.a.mss(), 1000u);
    EXPECT_GT(j.a.info().cwnd, 0u);
  }
}

TEST(Socket, SendsWithTheGivenDscp) {
  for (const IpAddress& at : {kLoopback4, kLoopback6}) {
    if (at.is_v6() && !testing::has_ipv6()) GTEST_SKIP() << "no IPv6 here; version 4 passed";
    Joined j;
    join(at, &j);
    if (HasFatalFailure()) return;
    j.a.set_dscp(0x0b);
    int tos = 0;
    socklen_t size = sizeof tos;
    const bool v6 = at.is_v6();
    ASSERT_EQ(getsockopt(j.a.fd(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, &tos,
                         &size),
              0);
    EXPECT_EQ(tos >> 2, 0x0b);
  }
}

// proves: E-31
// Simulates disabled IPv6: the kernel reports a missing source address like missing ports.
TEST(Socket, AMissingSourceAddressIsNotReportedAsATakenPort) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) _exit(255);
    const auto s = Socket::connect({kLoopback6, 9}, kAny);  // no interface is up
    _exit(s ? 254 : s.error());
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  const int error = WEXITSTATUS(status);
  if (error == 255) GTEST_SKIP() << "no network namespace to be had";
  if (error == EAFNOSUPPORT) GTEST_SKIP() << "no IPv6 in this kernel";
  EXPECT_EQ(error, ENETUNREACH) << std::strerror(error);
}

TEST(Socket, AnUnspecifiedListenerReportsIpv4PeersAsIpv4) {
  auto l = Socket::listen({IpAddress::any_v6(), 0}, 8);
  ASSERT_TRUE(l.ok());
  auto a = Socket::connect({kLoopback4, l->local().port}, kAny);
  ASSERT_TRUE(a.ok());
  ASSERT_TRUE(wait_for(*l, POLLIN));
  auto b = l->accept();
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(b->local().ip, kLoopback4);
  EXPECT_EQ(b->remote(), a->local());
  EXPECT_EQ(l->accept().error(), EAGAIN);
}

TEST(Socket, BindsTheSourceAddress) {
  const IpAddress other = IpAddress::v4(127, 9, 8, 7);
  auto l = Socket::listen({kLoopback4, 0}, 8);
  ASSERT_TRUE(l.ok());
  auto a = Socket::connect({kLoopback4, l->local().port}, {other, 0});
  ASSERT_TRUE(a.ok());
  ASSERT_TRUE(wait_for(*l, POLLIN));
  EXPECT_EQ(l->accept()->remote().ip, other);
}

// proves: E-31
TEST(Socket, AReservedPortIsKeptAndRefusesConnections) {
  for (const bool chosen : {true, false}) {
    std::uint16_t port = 0;
    if (!chosen) {  // with the remains of a connection on it
      auto l = Socket::listen({kLoopback4, 0}, 8);
      port = l->local().port;
      auto a = Socket::connect(l->local(), kAny);
      ASSERT_TRUE(wait_for(*l, POLLIN));
      auto b = l->accept();
      b->finish();
      ASSERT_TRUE(wait_for(*a, POLLIN));
    }
    auto kept = Socket::reserve({kLoopback4, port}, false, false);
    ASSERT_TRUE(kept.ok()) << kept.error();
    const SocketAddress at = kept->local();
    ASSERT_NE(at.port, 0);
    for (const bool let_in : {false, true}) {
      const auto again = Socket::reserve(at, false, let_in);
      ASSERT_FALSE(again.ok());
      EXPECT_EQ(again.error(), EADDRINUSE);
    }
    const auto listening = Socket::listen(at, 8), connected = Socket::connect(at, kAny);
    ASSERT_FALSE(listening.ok() || connected.ok());
    EXPECT_EQ(listening.error(), EADDRINUSE);
    EXPECT_EQ(connected.error(), ECONNREFUSED);
    ASSERT_EQ(kept->listen(8), 0);
    EXPECT_TRUE(Socket::connect(at, kAny).ok());
  }
}

TEST(Socket, ConnectsFromAReservedPortThatCanBeShared) {
  auto l = Socket::listen({kLoopback4, 0}, 8);
  auto kept = Socket::reserve({kLoopback4, 0}, false, false);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(Socket::connect(l->local(), kept->local()).error(), EADDRINUSE);
  kept->let_in();
  auto a = Socket::connect(l->local(), kept->local());
  ASSERT_TRUE(a.ok()) << a.error();
  EXPECT_EQ(a->local(), kept->local());
  EXPECT_EQ(Socket::connect(l->local(), kept->local()).error(), EADDRINUSE)
      << "it is there already";
}

TEST(Socket, AMissingListenerIsRefusedAndATakenPortIsInUse) {
  auto l = Socket::listen({kLoopback4, 0}, 8);
  ASSERT_TRUE(l.ok());
  const SocketAddress at = l->local();
  EXPECT_EQ(Socket::listen(at, 8).error(), EADDRINUSE);
  EXPECT_EQ(Socket::listen({IpAddress::v4(192, 0, 2, 1), 0}, 8).error(), EADDRNOTAVAIL);
  l->close();
  auto a = Socket::connect(at, kAny);
  ASSERT_FALSE(a.ok());  // on this machine: known at once
  EXPECT_EQ(a.error(), ECONNREFUSED);
}

TEST(Socket, SendsPiecesInOrderUntilThePeerIsFull) {
  Joined j;
  join(kLoopback4, &j);
  if (HasFatalFailure()) return;
  std::vector<std::uint8_t> head(10, 1), body(100000, 2);
  const iovec pieces[] = {{head.data(), head.size()}, {body.data(), body.size()}};
  std::size_t sent = 0;
  Moved m;
  for (int i = 0; i < 10000; ++i) {  // there is no reader: the kernel's buffers limit it
    m = j.a.send(pieces);
    if (m.what != What::Some) break;
    sent += m.bytes;
    if (m.bytes < head.size() + body.size()) break;
  }
  ASSERT_LT(sent, std::size_t{64} << 20);
  std::vector<std::uint8_t> got(sent);
  std::size_t at = 0;
  while (at < sent) {
    const Moved r = j.b.receive(std::span(got).subspan(at));
    if (r.what == What::NotNow) {
      ASSERT_TRUE(wait_for(j.b, POLLIN));
      continue;
    }
    ASSERT_EQ(r.what, What::Some);
    at += r.bytes;
  }
  for (std::size_t i = 0; i < sent; ++i) {
    ASSERT_EQ(got[i], i % (head.size() + body.size()) < head.size() ? 1 : 2) << i;
  }
  EXPECT_EQ(j.b.receive(got).what, What::NotNow);
}

TEST(Socket, RecordsArriveCompleteAndManyAreSentAtOnce) {
  Joined j;
  join(kLoopback4, &j);
  if (HasFatalFailure()) return;
  // More records than one system call accepts.
  std::vector<std::uint8_t> bytes(150 * 100);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7);
  std::vector<iovec> pieces;
  std::vector<std::uint32_t> records;
  for (std::size_t i = 0; i < 150; ++i) {
    pieces.push_back({bytes.data() + i * 100, 60});
    pieces.push_back({bytes.data() + i * 100 + 60, 40});
    records.push_back(2);
  }
  const Moved m = j.a.send_records(pieces, records);
  ASSERT_EQ(m.what, What::Some);
  EXPECT_EQ(m.bytes, bytes.size());
  std::vector<std::uint8_t> got(bytes.size());
  std::size_t at = 0;
  while (at < got.size() && wait_for(j.b, POLLIN)) {
    at += j.b.receive(std::span(got).subspan(at)).bytes;
  }
  EXPECT_EQ(got, bytes);
}

TEST(Socket, AFinIsTheEndAndAResetIsAnError) {
  Joined j;
  join(kLoopback4, &j);
  if (HasFatalFailure()) return;
  std::uint8_t byte = 7;
  const iovec piece{&byte, 1};
  ASSERT_EQ(j.a.send({&piece, 1}).bytes, 1u);
  j.a.finish();
  ASSERT_TRUE(wait_for(j.b, POLLIN));
  std::uint8_t in[4];
  EXPECT_EQ(j.b.receive(in).bytes, 1u);
  EXPECT_EQ(j.b.receive(in).what, What::End);
  // half closed: the other way still works
  ASSERT_EQ(j.b.send({&piece, 1}).bytes, 1u);
  ASSERT_TRUE(wait_for(j.a, POLLIN));
  EXPECT_EQ(j.a.receive(in).bytes, 1u);
  j.b.reset();
  ASSERT_TRUE(wait_for(j.a, POLLIN));
  const Moved m = j.a.receive(in);
  EXPECT_EQ(m.what, What::Failed);
  EXPECT_EQ(m.error, ECONNRESET);
}

TEST(Socket, AResetReachesThePeerDespiteAnotherOpenDescriptor) {
  Joined j;
  join(kLoopback4, &j);
  if (HasFatalFailure()) return;
  const int other = dup(j.a.fd());  // like in a forked child
  j.a.reset();
  ASSERT_TRUE(wait_for(j.b, POLLIN));
  std::uint8_t in[4];
  EXPECT_EQ(j.b.receive(in).error, ECONNRESET);
  close(other);
}

TEST(Socket, WithoutFreeDescriptorsOpeningFailsWithTheReason) {
  auto l = Socket::listen({kLoopback4, 0}, 8);
  ASSERT_TRUE(l.ok());
  rlimit old;
  getrlimit(RLIMIT_NOFILE, &old);
  const int next = dup(0);
  close(next);
  const rlimit tight{static_cast<rlim_t>(next), old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  const int connecting = Socket::connect(l->local(), kAny).error();
  const int listening = Socket::listen({kLoopback4, 0}, 8).error();
  setrlimit(RLIMIT_NOFILE, &old);
  EXPECT_EQ(connecting, EMFILE);
  EXPECT_EQ(listening, EMFILE);
}

TEST(Poller, ReportsEdgesOnceAndUnderTheirTags) {
  Joined j;
  join(kLoopback4, &j);
  if (HasFatalFailure()) return;
  auto p = Poller::make();
  ASSERT_TRUE(p.ok());
  Poller& poller = **p;
  ASSERT_EQ(poller.add(j.a.fd(), 11), 0);
  ASSERT_EQ(poller.add(j.b.fd(), (std::uint64_t{1} << 40) | 5), 0);
  Poller::Ready r[8];
  EXPECT_EQ(poller.take(r, 8), 2u);  // both are writable
  EXPECT_TRUE(r[0].writable && r[1].writable);
  EXPECT_FALSE(r[0].readable || r[1].readable);
  EXPECT_EQ(poller.take(r, 8), 0u);
  std::uint8_t byte = 7;
  const iovec piece{&byte, 1};
  ASSERT_EQ(j.a.send({&piece, 1}).bytes, 1u);
  pollfd fd{poller.wait_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&fd, 1, 5000), 1);
  ASSERT_EQ(poller.take(r, 8), 1u);
  EXPECT_EQ(r[0].tag, (std::uint64_t{1} << 40) | 5);
  EXPECT_TRUE(r[0].readable);
  EXPECT_FALSE(r[0].ended);
  EXPECT_EQ(poller.take(r, 8), 0u);  // not read, and not reported again
  j.a.finish();
  EXPECT_EQ(::poll(&fd, 1, 5000), 1);
  bool ended = false;  // the other end may report something too
  for (unsigned n = poller.take(r, 8); n > 0; --n) {
    ended = ended || (r[n - 1].tag >> 40 != 0 && r[n - 1].readable && r[n - 1].ended);
  }
  EXPECT_TRUE(ended);
  poller.remove(j.b.fd());
  j.a.reset();
  EXPECT_EQ(poller.take(r, 8), 0u);
}

}  // namespace
}  // namespace urnic::kernel_tcp
