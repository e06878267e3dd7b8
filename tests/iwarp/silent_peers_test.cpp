// Peers that connect and send nothing occupy a listener only until another one connects: the oldest
// of them makes room (docs/decisions/silent-peers.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "iwarp/hand_wire.h"

namespace urnic::test {
namespace {

using engine::CmEvent;

constexpr std::uint16_t kPort = 7000;
constexpr int kBacklog = 4;
const IpAddress kLeft = IpAddress::v4(10, 0, 0, 1), kOther = IpAddress::v4(10, 0, 0, 3);

struct SilentPeers : ::testing::Test {
  SilentPeers() {
    // Data from the ports in `silent` is lost, but not their acknowledgements of our SYN-ACK.
    wire.watch = [this](Bytes frame, bool to_right) {
      const auto w = WireSegment::of(frame);
      if (to_right && w && silent.count(w->seg.src_port) != 0 && !w->seg.payload.empty()) {
        tcp::Segment ack = w->seg;
        ack.payload = {};
        return std::vector<Bytes>{forge(*w, false, w->net.dst_mac, ack, {})};
      }
      return std::vector<Bytes>{std::move(frame)};
    };
    listener = wire.right.engine().iwarp().listen(kPort, kBacklog).value();
  }
  verbs::QueuePair* connect(bool speaks, const IpAddress& from = kLeft) {
    verbs::QueuePair* qp = wire.left.node->make_qp();
    const SocketAddress there{IpAddress::v4(10, 0, 0, 2), kPort};
    auto& engine = wire.left.engine();
    iwarp::ConnectParams params = engine.iwarp().default_params();
    params.source.at.ip = from;
    EXPECT_TRUE(engine.iwarp().connect(*qp, there, params, wire.now).ok());
    const iwarp::Connection* c = engine.iwarp().find(qp->connection);
    if (!speaks && c != nullptr) silent.insert(c->key.local_port);
    return qp;
  }
  std::size_t requests() const {
    return static_cast<std::size_t>(
        std::count_if(wire.right.node->events.begin(), wire.right.node->events.end(),
                      [](const CmEvent& e) { return e.kind == CmEvent::Kind::ConnectRequest; }));
  }
  // True if the right end has a connection from that port of the left one.
  bool is_there(std::uint16_t port) {
    bool found = false;
    wire.right.engine().iwarp().state().connections.for_each(
        [&](const iwarp::Connection& c) { found = found || c.key.remote_port == port; });
    return found;
  }
  std::uint64_t failed() { return wire.right.engine().iwarp().state().counters.failed; }
  HandWire wire{{}, {"10.0.0.1/24", "10.0.0.3/24"}};
  iwarp::Listener* listener = nullptr;
  std::set<std::uint16_t> silent;
};

// proves: E-50
TEST_F(SilentPeers, TheOldestOfAFullBacklogMakesRoom) {
  for (int i = 0; i < kBacklog; ++i) connect(false);
  wire.run_for(Duration::ms(500));
  EXPECT_EQ(requests(), 0u);
  EXPECT_TRUE(listener->is_full_for(kLeft));
  connect(true);
  EXPECT_TRUE(wire.run_until([&] { return requests() == 1; }, Duration::s(4)));
  EXPECT_EQ(failed(), 1u);  // one made room, the others stay
}

// One address may have a quarter of all places: as many as the consumer requested.
// proves: E-50
TEST_F(SilentPeers, OneAddressCannotOccupyTheListener) {
  for (int i = 0; i < kBacklog; ++i) connect(true);
  EXPECT_TRUE(wire.run_until([&] { return requests() == kBacklog; }, Duration::s(4)));
  connect(true);
  wire.run_for(Duration::s(1));
  EXPECT_EQ(requests(), static_cast<std::size_t>(kBacklog));
  for (int i = 1; i <= kBacklog; ++i) {
    connect(true, kOther);
    EXPECT_TRUE(wire.run_until([&] { return requests() == kBacklog + static_cast<std::size_t>(i); },
                               Duration::ms(20)));
  }
  EXPECT_EQ(failed(), 0u);
}

// A silent connection from an address that has its share makes room only for that address.
// proves: E-50
TEST_F(SilentPeers, AnAddressWithItsShareMakesRoomOnlyForItself) {
  const auto other =
      wire.left.engine().iwarp().find(connect(false, kOther)->connection)->key.local_port;
  wire.run_for(Duration::ms(5));
  for (int i = 0; i < kBacklog; ++i) connect(false);
  wire.run_for(Duration::ms(500));
  connect(true);
  EXPECT_TRUE(wire.run_until([&] { return requests() == 1; }, Duration::s(4)));
  EXPECT_EQ(failed(), 1u);
  EXPECT_TRUE(is_there(other)) << "though it has been silent for longest";
}

// A connection that has sent its request waits for the consumer and does not make room.
// proves: E-50
TEST_F(SilentPeers, ARequestThatWaitsForItsConsumerStays) {
  for (int i = 0; i < kBacklog; ++i) connect(true);
  EXPECT_TRUE(wire.run_until([&] { return requests() == kBacklog; }, Duration::s(4)));
  connect(true);
  wire.run_for(Duration::s(4));
  EXPECT_EQ(requests(), static_cast<std::size_t>(kBacklog));
  EXPECT_EQ(failed(), 0u);
}

// No record is kept of peers that have sent data, on a listener that is never full.
TEST_F(SilentPeers, NoRecordIsKeptOfPeersThatHaveSentData) {
  for (std::size_t i = 1; i <= 20; ++i) {
    verbs::QueuePair* qp = wire.right.node->make_qp();
    connect(true);
    ASSERT_TRUE(wire.run_until([&] { return requests() == i; }, Duration::s(4)));
    auto& engine = wire.right.engine();
    const auto& events = wire.right.node->events;
    const auto last = std::find_if(events.rbegin(), events.rend(), [](const CmEvent& e) {
      return e.kind == CmEvent::Kind::ConnectRequest;
    });
    const auto params = engine.iwarp().default_params();
    ASSERT_TRUE(engine.iwarp().accept(last->request.id, *qp, params, wire.now).ok());
    EXPECT_LE(listener->silent.size(), 1u);
  }
}

// The same after a peer that stays silent: the list is as long as the backlog, however many
// connections have come in the meantime.
// proves: E-50
TEST_F(SilentPeers, NoRecordIsKeptOfThemAfterASilentPeerEither) {
  const auto port = wire.left.engine().iwarp().find(connect(false)->connection)->key.local_port;
  wire.run_for(Duration::ms(5));
  ASSERT_TRUE(is_there(port));
  for (std::size_t i = 1; i <= 200; ++i) {
    connect(true);
    ASSERT_TRUE(wire.run_until([&] { return requests() == i; }, Duration::ms(20)));
    wire.right.engine().iwarp().reject(wire.right.node->events.back().request.id, {}, wire.now);
    wire.run_for(Duration::ms(1));
  }
  EXPECT_LE(listener->silent.size(), 32u + 2 * 4 * kBacklog);
  EXPECT_GE(listener->silent.size(), 1u);
  // The silent one is still the first to make room.
  for (int i = 1; i < kBacklog; ++i) connect(false);
  wire.run_for(Duration::ms(500));
  EXPECT_TRUE(listener->is_full_for(kLeft));
  const std::uint64_t before = failed();
  const std::size_t asked = requests();
  connect(true);
  EXPECT_TRUE(wire.run_until([&] { return requests() == asked + 1; }, Duration::s(4)));
  EXPECT_EQ(failed(), before + 1);
  EXPECT_FALSE(is_there(port)) << "the one that had been silent for longest";
}

// A SYN alone is not enough: a peer that cannot be reached at its source address removes no other.
// proves: E-50
TEST_F(SilentPeers, ASynAloneRemovesNoConnection) {
  for (int i = 0; i < kBacklog; ++i) connect(false);
  wire.run_for(Duration::ms(500));
  EXPECT_TRUE(listener->is_full_for(kLeft));
  const auto tell = wire.watch;
  wire.watch = [&](Bytes frame, bool to_right) {
    return to_right ? tell(std::move(frame), true) : std::vector<Bytes>{};  // no SYN-ACK arrives
  };
  connect(true);
  wire.run_for(Duration::s(4));
  EXPECT_EQ(failed(), 0u);
}

}  // namespace
}  // namespace urnic::test
