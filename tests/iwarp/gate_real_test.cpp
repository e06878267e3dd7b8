// The gate of a listener over the kernel's TCP: a refused connection is reset after the handshake,
// and no state of it is kept.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "tests/iwarp/stream_ends.h"
#include "tests/support/allocator.h"
#include "tests/support/soon.h"

namespace urnic::test {
namespace {

class KernelTcpGate : public ::testing::Test {
 protected:
  using Settings = stream_test::Settings;
  void open(const Settings& rules) {
    server = stream_test::open(rules);
    auto made = server.listen(0);
    ASSERT_TRUE(made.ok()) << made.error().message;
    listener = std::move(*made);
  }
  // The end to be refused or accepted, of a device whose address is 127.0.0.`host`.
  std::unique_ptr<stream_test::End>& at(int host) {
    Device& d = devices[host];
    if (!d) {
      const std::string port = "tcp:bind=127.0.0." + std::to_string(host);
      d = stream_test::open({{"port", port.c_str()}, {"mpa_revision", "1"}});
    }
    return ends.emplace_back(std::make_unique<stream_test::End>(d));
  }
  std::string there() const { return "127.0.0.1:" + std::to_string(listener.port()); }
  // True if connecting began, or was refused before that could be reported.
  bool begins(QueuePair& qp) const {
    const auto begun = qp.connect_start(there());
    return begun.ok() || begun.error().code == Errc::reset;
  }
  bool comes(int host) {
    auto& c = at(host);
    auto& s = served.emplace_back(std::make_unique<stream_test::End>(server));
    if (!c->qp.connect_start(there()).ok()) return false;
    auto request = listener.next(60000);
    if (!request.ok() || !request->accept(s->qp).ok()) return false;
    Event e;
    return c->events.wait(&e, 60000) && e.kind == EventKind::established;
  }
  bool is_refused(int host) {
    const auto got = at(host)->qp.connect(there());
    return !got.ok() && got.error().code == Errc::reset;
  }
  std::uint64_t over() { return server.stats().peers_over_limit; }

  Device server;
  std::map<int, Device> devices;
  std::deque<std::unique_ptr<stream_test::End>> ends, served;
  Listener listener;
};

// proves: AC-2
TEST_F(KernelTcpGate, ADeniedPeerIsResetAfterTheHandshake) {
  open({{"deny", "127.0.0.2,10.0.0.0/8"}});
  EXPECT_TRUE(is_refused(2));
  EXPECT_TRUE(comes(3));
  EXPECT_EQ(server.stats().peers_denied, 1u);
  EXPECT_EQ(over(), 0u);
  EXPECT_EQ(server.stats().connections_opened, 1u);
}

// proves: AC-2
TEST_F(KernelTcpGate, AnAllowListDeniesAllOtherPeers) {
  open({{"allow", "127.0.0.2"}});
  EXPECT_TRUE(is_refused(3));
  EXPECT_TRUE(comes(2));
  EXPECT_EQ(server.stats().peers_denied, 1u);
}

// proves: AC-3
TEST_F(KernelTcpGate, ConnectionsAreLimitedPerAddressAndPerListener) {
  open({{"peer_connections", "1"}, {"listener_connections", "2"}});
  ASSERT_TRUE(comes(2));
  EXPECT_TRUE(is_refused(2));
  ASSERT_TRUE(comes(3));
  EXPECT_TRUE(is_refused(4)) << "the listener has as many as it may";
  EXPECT_EQ(over(), 2u);
  ends.front()->qp.abort();
  EXPECT_TRUE(soon([&] { return server.stats().connections.size() == 1; }));
  EXPECT_TRUE(comes(2));
  EXPECT_EQ(over(), 2u);
}

// proves: AC-3
TEST_F(KernelTcpGate, ConnectionsPerSecondAreLimited) {
  open({{"accept_rate", "1"}});
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(begins(at(2)->qp));
  const auto opened = [&] { return server.stats().connections_opened; };
  EXPECT_TRUE(soon([&] { return over() + opened() >= 3; }));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  EXPECT_EQ(over() + opened(), 3u);
  EXPECT_GE(opened(), 1u);
  EXPECT_LE(static_cast<double>(opened()), 1 + took.count());
}

// More refused connections than one turn handles wait in the kernel before the first is handled, so
// no later connection triggers the handling of the rest. After them comes one that is allowed.
// proves: AC-4
TEST_F(KernelTcpGate, AFloodOfDeniedPeersDoesNotDelayOthers) {
  open({{"deny", "127.0.0.2"}, {"progress", "poll"}});
  ASSERT_TRUE(comes(3));
  std::deque<QueuePair> many;
  at(2);
  for (int i = 0; i < 100; ++i) {
    QpOptions o;
    o.send_cq = o.receive_cq = ends.back()->cq;
    o.events = ends.back()->events;
    many.push_back(*devices[2].create_qp(ends.back()->pd, o));
    EXPECT_TRUE(begins(many.back()));
  }
  EXPECT_TRUE(comes(3));
  EXPECT_TRUE(soon([&] {
    server.progress();
    return server.stats().peers_denied >= 100;
  }));
  EXPECT_EQ(server.stats().peers_denied, 100u);
  EXPECT_EQ(server.stats().connections_opened, 2u);
  const std::jthread drives([&](const std::stop_token& end) {
    while (!end.stop_requested()) server.progress();
  });
  stream_test::exchange(*ends.front(), *served.front());
}

// Each allocation of the round that accepts fails once. The connection is then either accepted or
// refused.
// proves: AC-3
TEST_F(KernelTcpGate, WithoutMemoryForItsPlaceAPeerIsRefused) {
  open({{"peer_connections", "100"}, {"progress", "poll"}, {"mpa_revision", "1"}});
  for (std::uint64_t after = 0; after < 12; ++after) {
    auto& c = at(2);
    ASSERT_TRUE(begins(c->qp));
    const std::uint64_t opened = server.stats().connections_opened, refused = over();
    const auto met = [&] {
      return server.stats().connections_opened != opened || over() != refused;
    };
    // Some are accepted or refused at once, and some in later rounds, which have memory again.
    for (int i = 0; i < 400 && !met(); ++i) {
      {
        const testing::NoMemory none(after, 1);
        EXPECT_NO_THROW(server.progress());
      }
      usleep(500);
    }
    Event e;
    EXPECT_TRUE(soon([&] {
      server.progress();
      return listener.next(0).ok() ||
             (c->events.wait(&e, 1) && e.kind == EventKind::connect_failed);
    })) << after;
  }
  EXPECT_GE(over(), 1u);
}

}  // namespace
}  // namespace urnic::test
