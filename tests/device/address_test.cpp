// Own addresses and ports through the public API: binding, listening at one of them, connecting
// from one; over memif and over the kernel's TCP.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "support/device_end.h"
#include "support/ipv6.h"
#include "tests/support/soon.h"
#include "urnic/urnic.h"

namespace urnic {
namespace {

enum class Wire { Memif, KernelTcp };

// Two devices: `first`, `second` and `six` are the server's addresses, `from` and `other_from` the
// client's.
struct Addresses : ::testing::TestWithParam<Wire> {
  void SetUp() override {
    char name[] = "/tmp/urnic-address-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
    server =
        std::make_unique<test::DeviceEnd>(config("server", "10.77.0.1/24,10.77.0.3/24,fd77::1/64"));
    client =
        std::make_unique<test::DeviceEnd>(config("client", "10.77.0.2/24,10.77.0.4/24,fd77::2/64"));
    ASSERT_TRUE(server->device && client->device);
    ASSERT_TRUE(server->device.wait_link(10000) && client->device.wait_link(10000));
    if (GetParam() == Wire::KernelTcp) {
      first = from = "127.0.0.1";
      second = other_from = "127.0.0.2";
      six = "::1";
    }
  }
  void TearDown() override {
    server.reset();
    client.reset();
    std::filesystem::remove_all(directory);
  }
  Config config(const std::string& role, const char* addresses) const {
    Config c;
    EXPECT_TRUE(c.set("stat", "off").ok());
    if (GetParam() == Wire::KernelTcp) {
      EXPECT_TRUE(c.set("port", "tcp").ok());
    } else {
      EXPECT_TRUE(c.set("port", "memif:socket=" + directory + "/wire.sock,role=" + role).ok());
      EXPECT_TRUE(c.set("address", addresses).ok());
    }
    return c;
  }
  static std::string at(const std::string& ip, std::uint16_t port) {
    const bool v6 = ip.find(':') != std::string::npos;
    return (v6 ? "[" + ip + "]:" : ip + ":") + std::to_string(port);
  }
  Listener listen(const std::string& ip, std::uint16_t port, const BindOptions& o = {}) {
    auto b = server->device.bind(at(ip, port), o);
    EXPECT_TRUE(b.ok()) << b.error().message;
    if (!b) return {};
    auto l = server->device.listen(*b);
    EXPECT_TRUE(l.ok()) << l.error().message;
    EXPECT_FALSE(*b);
    return l ? std::move(*l) : Listener();
  }
  QueuePair new_qp(test::DeviceEnd& e) {
    QpOptions o;
    o.send_cq = o.receive_cq = e.cq;
    o.events = e.events;
    return *e.device.create_qp(e.pd, o);
  }
  // A connection of a new client queue pair to that address arrives at `l`, and is established.
  void reaches(Listener& l, const std::string& ip, const Binding* source = nullptr) {
    SCOPED_TRACE(ip);
    QueuePair ours = new_qp(*client), theirs = new_qp(*server);
    ConnectionOptions o;
    o.source = source;
    const auto begun = ours.connect_start(at(ip, l.port()), o);
    ASSERT_TRUE(begun.ok()) << begun.error().message;
    auto request = l.next(10000);
    ASSERT_TRUE(request.ok()) << request.error().message;
    EXPECT_EQ(request->local(), at(ip, l.port()));
    if (source != nullptr) {
      EXPECT_EQ(request->peer().substr(request->peer().rfind(':')),
                ":" + std::to_string(source->port()));
      EXPECT_EQ(ours.stats().local, request->peer());
    }
    ASSERT_TRUE(request->accept(theirs).ok());
    EXPECT_EQ(event(*client), EventKind::established);
    EXPECT_EQ(event(*server), EventKind::established);
    ours.abort();
    EXPECT_EQ(event(*client), EventKind::failed);
    EXPECT_EQ(event(*server), EventKind::failed);
  }
  void refuses(const std::string& ip, std::uint16_t port) {
    QueuePair qp = new_qp(*client);
    ConnectionOptions o;
    o.timeout_ms = 5000;
    const auto connected = qp.connect(at(ip, port), o);
    ASSERT_FALSE(connected.ok());
    EXPECT_EQ(connected.error().code, Errc::refused) << connected.error().message;
    Event e;
    while (client->events.poll(&e)) {
    }
  }
  // IPv6 of the machine may be disabled; memif has its own.
  static bool has_six() { return GetParam() != Wire::KernelTcp || testing::has_ipv6(); }
  static EventKind event(test::DeviceEnd& end) {
    Event e;
    EXPECT_TRUE(end.events.wait(&e, 10000));
    return e.kind;
  }

  std::string directory;
  std::string first = "10.77.0.1", second = "10.77.0.3", six = "fd77::1";
  std::string from = "10.77.0.2", other_from = "10.77.0.4";
  std::unique_ptr<test::DeviceEnd> server, client;
};

INSTANTIATE_TEST_SUITE_P(, Addresses, ::testing::Values(Wire::Memif, Wire::KernelTcp),
                         [](const auto& i) {
                           return i.param == Wire::Memif ? "Memif" : "KernelTcp";
                         });

// Among several devices, the nearest has the route.
TEST_P(Addresses, PrefixLengthForIsThatOfTheLongestMatchingNetwork) {
  const Device& d = server->device;
  const auto length = [&](const char* address) {
    auto n = d.prefix_length_for(address);
    return n ? static_cast<int>(*n) : -1;
  };
  EXPECT_EQ(length(first.c_str()), 32);
  EXPECT_EQ(length(second.c_str()), 32);
  EXPECT_EQ(d.prefix_length_for("x").error().code, Errc::invalid_argument);
  if (GetParam() == Wire::KernelTcp) {
    Config c = config("server", "");
    ASSERT_TRUE(c.set("port", "tcp:bind=127.0.0.1").ok());
    auto bound = Device::open(c);
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    EXPECT_EQ(*bound->prefix_length_for("127.0.0.1"), 32u);
    EXPECT_EQ(*bound->prefix_length_for("127.9.9.9"), 8u);
    // packets leave from there, whatever their destination
    EXPECT_EQ(*bound->prefix_length_for("192.0.2.1"), 0u);
    return;
  }
  EXPECT_EQ(length(six.c_str()), 128);
  EXPECT_EQ(length("10.77.0.200"), 24);
  EXPECT_EQ(length("fd77::77"), 64);
  EXPECT_EQ(length("10.78.0.1"), -1);
  EXPECT_EQ(d.prefix_length_for("10.78.0.1").error().code, Errc::unreachable);
}

// tgt does this.
TEST_P(Addresses, BothVersionsListenOnOnePort) {
  if (!has_six()) GTEST_SKIP() << "no IPv6 here";
  Listener four = listen("0.0.0.0", 0);
  ASSERT_NE(four.port(), 0);
  Listener both = listen("::", four.port(), {.ipv6_only = true});
  EXPECT_EQ(both.port(), four.port());
  reaches(four, first);
  reaches(both, six);
  reaches(four, second);
}

TEST_P(Addresses, TheIpv6WildcardIncludesIpv4UnlessIpv6Only) {
  Listener all = listen("::", 0);
  reaches(all, first);
  if (has_six()) reaches(all, six);
  const auto again = server->device.bind(at("0.0.0.0", all.port()));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Errc::in_use) << again.error().message;
  all = Listener();
  Listener six_only = listen("::", 0, {.ipv6_only = true});
  refuses(first, six_only.port());
}

TEST_P(Addresses, EachAddressHasAListenerOfItsOwn) {
  Listener one = listen(first, 0);
  refuses(second, one.port());
  Listener two = listen(second, one.port());
  reaches(two, second);
  if (has_six()) {
    Listener three = listen(six, one.port());
    reaches(three, six);
  }
  reaches(one, first);
  for (const std::string& ip : {first, std::string("0.0.0.0"), std::string("::")}) {
    const auto taken = server->device.bind(at(ip, one.port()));
    ASSERT_FALSE(taken.ok()) << ip;
    EXPECT_EQ(taken.error().code, Errc::in_use) << taken.error().message;
  }
  one = Listener();
  refuses(first, two.port());
  reaches(two, second);
}

// proves: E-30
TEST_P(Addresses, ABoundPortIsReservedAndRefusesUntilItListens) {
  auto kept = server->device.bind(at("0.0.0.0", 0));
  ASSERT_TRUE(kept.ok()) << kept.error().message;
  ASSERT_NE(kept->port(), 0);
  EXPECT_EQ(kept->address(), at("0.0.0.0", kept->port()));
  const std::string same = at(first, kept->port());
  for (int i = 0; i < 2; ++i) {
    const auto taken = server->device.bind(same);
    ASSERT_FALSE(taken.ok());
    EXPECT_EQ(taken.error().code, Errc::in_use) << taken.error().message;
    const auto listens = server->device.listen(kept->port());
    ASSERT_FALSE(listens.ok());
    EXPECT_EQ(listens.error().code, Errc::in_use) << listens.error().message;
  }
  if (GetParam() == Wire::KernelTcp) {  // the port belongs to the machine
    EXPECT_EQ(client->device.bind(same).error().code, Errc::in_use);
  }
  refuses(first, kept->port());
  auto l = server->device.listen(*kept);
  ASSERT_TRUE(l.ok()) << l.error().message;
  EXPECT_FALSE(*kept);
  reaches(*l, first);
  const std::uint16_t port = l->port();
  *l = Listener();
  // At once: connections that have just ended do not block the port.
  kept = server->device.bind(at("0.0.0.0", port));
  ASSERT_TRUE(kept.ok()) << kept.error().message;
  *kept = Binding();
  EXPECT_TRUE(server->device.bind(same).ok());
}

TEST_P(Addresses, ASharedAddressBelongsToTheFirstListener) {
  const BindOptions shared{.shared = true};
  auto a = server->device.bind(at(first, 0), shared);
  ASSERT_TRUE(a.ok()) << a.error().message;
  auto b = server->device.bind(a->address(), shared);
  ASSERT_TRUE(b.ok()) << b.error().message;
  EXPECT_EQ(server->device.bind(a->address()).error().code, Errc::in_use);
  auto l = server->device.listen(*b);
  ASSERT_TRUE(l.ok()) << l.error().message;
  EXPECT_EQ(server->device.listen(*a).error().code, Errc::in_use);
  EXPECT_TRUE(*a);
  EXPECT_EQ(server->device.bind(a->address(), shared).error().code, Errc::in_use);
  reaches(*l, first);
}

// proves: E-30
TEST_P(Addresses, ConnectsFromTheGivenAddressAndPort) {
  Listener one = listen("0.0.0.0", 0), two = listen("0.0.0.0", 0);
  auto source = client->device.bind(at(other_from, 0));
  ASSERT_TRUE(source.ok()) << source.error().message;
  reaches(one, first, &*source);
  // Another peer at once, and several at a time.
  reaches(two, first, &*source);
  QueuePair a = new_qp(*client), b = new_qp(*client), c = new_qp(*client);
  ConnectionOptions o;
  o.source = &*source;
  ASSERT_TRUE(a.connect_start(at(second, one.port()), o).ok());
  auto request = one.next(10000);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->peer(), source->address());
  EXPECT_TRUE(b.connect_start(at(second, two.port()), o).ok());
  // There can be only one connection between two ends.
  const auto twice = c.connect_start(at(second, one.port()), o);
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().code, Errc::in_use) << twice.error().message;
  EXPECT_EQ(c.state(), QpState::init);
  // An address without a port; and the wildcard with a port.
  auto any = client->device.bind(at("0.0.0.0", 0));
  ASSERT_TRUE(any.ok());
  reaches(one, second, &*any);
  // The other version of IP.
  o.source = &*any;
  EXPECT_EQ(c.connect_start(at(six, one.port()), o).error().code, Errc::unreachable);
  auto empty = Binding();
  o.source = &empty;
  EXPECT_EQ(c.connect_start(at(first, one.port()), o).error().code, Errc::invalid_argument);
}

TEST_P(Addresses, QueriesReturnTheDevicesAddresses) {
  Device& d = server->device;
  auto all = d.addresses();
  ASSERT_TRUE(all.ok()) << all.error().message;
  for (const std::string& ip : {first, six}) {
    if (ip == six && !has_six()) {
      EXPECT_EQ(d.source_for(six).error().code, Errc::unreachable);
      QueuePair qp = new_qp(*client);
      EXPECT_EQ(qp.connect_start(at(six, 9)).error().code, Errc::unreachable);
      continue;
    }
    EXPECT_NE(std::find(all->begin(), all->end(), ip), all->end()) << ip;
    EXPECT_TRUE(d.has_address(ip));
    auto to_itself = d.source_for(ip);
    ASSERT_TRUE(to_itself.ok()) << to_itself.error().message;
    EXPECT_EQ(*to_itself, ip);
  }
  EXPECT_FALSE(d.has_address("192.0.2.1"));
  EXPECT_FALSE(d.has_address("0.0.0.0"));
  EXPECT_FALSE(d.has_address("::"));
  EXPECT_FALSE(d.has_address("nowhere"));
  EXPECT_EQ(d.source_for("nowhere").error().code, Errc::invalid_argument);
  const auto foreign = d.bind("192.0.2.1:0");
  ASSERT_FALSE(foreign.ok());
  EXPECT_EQ(foreign.error().code, Errc::invalid_argument) << foreign.error().message;
  EXPECT_EQ(d.bind("0.0.0.0").error().code, Errc::invalid_argument);
  if (GetParam() == Wire::Memif) {
    EXPECT_EQ(*d.source_for(from), second);
    EXPECT_EQ(d.source_for("192.0.2.1").error().code, Errc::unreachable);
  }
}

// proves: E-30
TEST_P(Addresses, ARequestOutlivesItsListener) {
  QueuePair ours = new_qp(*client), refused = new_qp(*client), late = new_qp(*client);
  QueuePair theirs = new_qp(*server);
  Listener l = listen("0.0.0.0", 0);
  ASSERT_TRUE(ours.connect_start(at(first, l.port())).ok());
  auto kept = l.next(10000);
  ASSERT_TRUE(kept.ok());
  ASSERT_TRUE(refused.connect_start(at(first, l.port())).ok());
  auto answered = l.next(10000);
  ASSERT_TRUE(answered.ok());
  const std::uint16_t port = l.port();
  l = Listener();
  refuses(first, port);
  ASSERT_TRUE(kept->accept(theirs).ok());
  EXPECT_EQ(event(*client), EventKind::established);
  EXPECT_EQ(event(*server), EventKind::established);
  const std::uint8_t words[] = {'n', 'o'};
  answered->reject(words);
  Event e;
  ASSERT_TRUE(client->events.wait(&e, 10000));
  EXPECT_EQ(e.kind, EventKind::connect_failed);
  EXPECT_EQ(e.error.code, Errc::rejected);
  EXPECT_EQ(e.private_data, "no");
}

TEST_P(Addresses, UnfetchedRequestsAreRefusedWithTheListener) {
  QueuePair ours = new_qp(*client);
  int context = 0;
  auto b = server->device.bind(at(first, 0));
  ASSERT_TRUE(b.ok());
  auto l = server->device.listen(*b, 8, server->events, &context);
  ASSERT_TRUE(l.ok());
  ASSERT_TRUE(ours.connect_start(at(first, l->port())).ok());
  EXPECT_TRUE(test::soon([&] { return server->device.stats().connections_opened != 0; }));
  usleep(20000);  // usually the request has arrived by now; in any case it is refused
  *l = Listener();
  EXPECT_EQ(event(*client), EventKind::connect_failed);
  Event e;
  EXPECT_FALSE(server->events.poll(&e)) << "its context is nobody's any more";
}

TEST_P(Addresses, RefusalsAreRetriedForUpToATenthOfASecond) {
  QueuePair ours = new_qp(*client);
  ConnectionOptions o;
  for (const int ms : {-1, 101}) {
    o.refusal_retry_ms = ms;
    EXPECT_EQ(ours.connect_start(at(first, 9), o).error().code, Errc::invalid_argument);
  }
  o.refusal_retry_ms = 100;
  ASSERT_TRUE(ours.connect_start(at(first, 9), o).ok()) << "the answer comes later";
  Event e;
  ASSERT_TRUE(client->events.wait(&e, 10000));
  EXPECT_EQ(e.kind, EventKind::connect_failed);
  EXPECT_EQ(e.error.code, Errc::refused);
}

}  // namespace
}  // namespace urnic
