// Invalid calls of connect, listen and accept fail at once, with a message that tells why. Queue
// pair and device stay as they were.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "port/memory_port.h"
#include "sim/pair.h"

namespace urnic::iwarp {
namespace {

struct ConnectErrors : ::testing::Test {
  Side& side(sim::Node& n) { return n.engine().iwarp(); }
  Result<void> connect(verbs::QueuePair& qp, const std::string& to,
                       const std::string& from = "[::]:0") {
    ConnectParams p = pair.left().engine().iwarp().default_params();
    p.source.at = *SocketAddress::parse(from);
    return side(pair.left()).connect(qp, *SocketAddress::parse(to), p, pair.now());
  }
  // Fails with a message that contains `words`; nothing was begun.
  void expect_refused(const Result<void>& r, Errc code, const std::string& words) {
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.error().code, code) << r.error().message;
    EXPECT_NE(r.error().message.find(words), std::string::npos) << r.error().message;
    EXPECT_EQ(pair.left().engine().tables().connections, connections);
    EXPECT_TRUE(pair.left().events.empty());
  }
  // Returns an empty string if `at` was bound, else the error message.
  std::string bound(const std::string& at, Listener** l = nullptr, bool shared = false) {
    auto made = side(pair.right()).bind({*SocketAddress::parse(at), false, shared});
    if (!made) return made.error().message;
    if (l != nullptr) *l = made.value();
    return "";
  }

  sim::Pair pair{{}};
  verbs::QueuePair* left = pair.left().make_qp();
  verbs::QueuePair* right = pair.right().make_qp();
  std::size_t connections = 0;  // of the left engine
};

TEST_F(ConnectErrors, AnAddressOfNoOwnNetworkHasNoRoute) {
  ASSERT_TRUE(connect(*left, "192.0.2.1:7000").ok()) << "it is looked for";
  pair.run_for(Duration::s(20));
  ASSERT_EQ(pair.left().events.size(), 1u);
  EXPECT_EQ(pair.left().events[0].kind, CmEvent::Kind::ConnectFailed);
  EXPECT_EQ(pair.left().events[0].code, Errc::unreachable);
  EXPECT_EQ(pair.left().events[0].message, "no route to 192.0.2.1");
  EXPECT_EQ(pair.left().engine().tables().connections, 0u);
}

struct NoHooks : Hooks {
  void on_cm_event(CmEvent) override {}
  void on_completion(verbs::CompletionQueue*) override {}
};

TEST(ConnectErrorsVersion, WithoutAnAddressOfTheIpVersionThereIsNoRoute) {
  NoHooks hooks;
  auto [port, peer] = port::make_memory_pair();
  engine::Options o;
  o.addresses = {"fd00::1/64"};
  engine::Engine engine(o, &port, 0, &hooks);
  verbs::CompletionQueue cq(16);
  verbs::QueuePair* const qp = engine.iwarp_control().create_qp({}, &cq, &cq);
  const auto r = engine.iwarp().connect(*qp, *SocketAddress::parse("10.0.0.2:7000"),
                                        engine.iwarp().default_params(), Instant{});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, Errc::unreachable);
  EXPECT_EQ(r.error().message,
            "no route to 10.0.0.2: no address in its network and no gateway (set 'address' or "
            "'gateway')");
  EXPECT_EQ(qp->connection, 0u) << "the queue pair is as before";
  EXPECT_EQ(engine.tables().connections, 0u);
}

TEST_F(ConnectErrors, ASourceOfTheOtherVersionHasNoRoute) {
  expect_refused(connect(*left, "[fd00::2]:7000", "10.0.0.1:0"), Errc::unreachable,
                 "10.0.0.1 has another IP version");
  expect_refused(connect(*left, "10.0.0.2:7000", "[fd00::1]:0"), Errc::unreachable,
                 "fd00::1 has another IP version");
  ASSERT_TRUE(pair.connect(*left, *right));
}

// A given port from which a connection to that address exists, or that would be connected to
// itself.
TEST_F(ConnectErrors, AGivenPortHasOneConnectionToTheSameAddress) {
  ASSERT_TRUE(connect(*left, "10.0.0.2:7000", "10.0.0.1:9000").ok());
  connections = 1;
  auto* const second = pair.left().make_qp();
  expect_refused(connect(*second, "10.0.0.2:7000", "10.0.0.1:9000"), Errc::in_use,
                 "a connection from 10.0.0.1:9000 to 10.0.0.2:7000");
  expect_refused(connect(*second, "10.0.0.1:9000", "10.0.0.1:9000"), Errc::in_use,
                 "a connection from 10.0.0.1:9000 to 10.0.0.1:9000");
  EXPECT_TRUE(connect(*second, "10.0.0.2:7001", "10.0.0.1:9000").ok()) << "to elsewhere it serves";
}

TEST_F(ConnectErrors, AQueuePairHasOneConnection) {
  ASSERT_TRUE(pair.connect(*left, *right));
  pair.left().events.clear();
  connections = 1;
  expect_refused(connect(*left, "10.0.0.2:7000"), Errc::wrong_state, "is or was already connected");
  EXPECT_EQ(left->state, verbs::QpState::Rts);
  // Its request is not given to this queue pair either. It stays available for another queue pair.
  auto* const third = pair.left().make_qp();
  pair.right().events.clear();
  ASSERT_TRUE(connect(*third, "10.0.0.2:7000").ok());
  ASSERT_TRUE(pair.run_until([&] { return !pair.right().events.empty(); }, Duration::s(5)));
  const ConnectionId request = pair.right().events.front().request.id;
  const auto params = pair.right().engine().iwarp().default_params();
  const auto taken = side(pair.right()).accept(request, *right, params, pair.now());
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, Errc::wrong_state);
  EXPECT_TRUE(side(pair.right()).accept(request, *pair.right().make_qp(), params, pair.now()).ok());
  const auto twice =
      side(pair.right()).accept(request, *pair.right().make_qp(), params, pair.now());
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().code, Errc::closed) << "it is answered";
}

TEST_F(ConnectErrors, ListeningNeedsAnOwnAddressAndAFreePort) {
  EXPECT_EQ(bound("10.0.0.9:7000"),
            "10.0.0.9 is not an address of this device (setting 'address')");
  EXPECT_EQ(bound("10.0.0.2:7000"), "");
  EXPECT_EQ(bound("10.0.0.2:7000"), "TCP port 7000: already in use by this device");
  EXPECT_EQ(bound("[::]:7000"), "TCP port 7000: already in use by this device");
  // A program that shares a port keeps it. The second one that listens there gets an error.
  Listener *one = nullptr, *other = nullptr;
  EXPECT_EQ(bound("10.0.0.2:7001", &one, true), "");
  EXPECT_EQ(bound("10.0.0.2:7001", &other, true), "");
  EXPECT_TRUE(side(pair.right()).listen(one, 4));
  const auto second = side(pair.right()).listen(other, 4);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::in_use);
  EXPECT_EQ(second.error().message, "TCP port 7001: this device is already listening on it");
  EXPECT_FALSE(other->listening);
  // By port number alone: a listener that cannot listen is not kept either.
  const auto by_number = side(pair.right()).listen(7000, 4);
  ASSERT_FALSE(by_number);
  EXPECT_EQ(by_number.error().code, Errc::in_use);
}

// The kernel has bound the port, but does not watch one socket more (fs.epoll.max_user_watches).
TEST(ConnectErrorsKernelTcp, AListenThatFailsLeavesNoListener) {
  NoHooks hooks;
  auto kernel = std::make_shared<KernelTcp>();
  kernel->poller = std::move(*kernel_tcp::Poller::make());
  auto [port, peer] = port::make_memory_pair();
  engine::Options o;
  o.addresses = {"127.0.0.1/8"};
  engine::Engine engine(o, &port, 0, &hooks, kernel);
  // Returns an empty string if it listens, else the error message.
  const auto listen = [&] {
    const auto made = engine.iwarp().listen(std::uint16_t{0}, 8);
    return made ? "" : made.error().message;
  };
  const auto listeners = [&] {
    int n = 0;
    engine.iwarp().state().listeners.for_each([&](const Listener&) { ++n; });
    return n;
  };
  const int watching = kernel->poller->wait_fd(), kept = ::dup(watching);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::dup2(nothing, watching), watching);
  EXPECT_EQ(listen().find("cannot listen on TCP port "), 0u);
  EXPECT_EQ(listeners(), 0);
  ASSERT_EQ(::dup2(kept, watching), watching);
  EXPECT_EQ(listen(), "");
  EXPECT_EQ(listeners(), 1);
  ::close(kept);
  ::close(nothing);
}

}  // namespace
}  // namespace urnic::iwarp
