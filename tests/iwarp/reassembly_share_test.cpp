// Reassembly memory among the connections of an engine (E-11): a few peers that make it hold as
// much as possible leave the others at least half of their share.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "iwarp/hand_wire.h"

namespace urnic::test {
namespace {

using engine::CmEvent;

constexpr std::uint16_t kPort = 7000;
constexpr std::uint64_t kPool = 16u << 20;
constexpr std::size_t kSegment = 1400, kRun = 12;  // slightly more than a chunk

// SLOW connections whose peers never send the bytes at RCV.NXT, but everything after them.
struct Sharing : ::testing::Test {
  struct Peer {
    WireSegment last;  // the last segment it sent
    verbs::QueuePair* qp = nullptr;
    std::uint32_t next = kSegment;  // offset after that
    std::uint64_t held = 0;         // bytes of it that the engine holds
  };

  Sharing() {
    EXPECT_TRUE(wire.right.engine().iwarp().listen(kPort, 64));
    wire.watch = [this](Bytes frame, bool to_right) {
      const auto w = WireSegment::of(frame);
      if (to_right && w && latest != nullptr) {
        latest->last = *w;
        latest->last.seg.payload = {};
        latest->next = w->length() + kSegment;
      }
      return std::vector<Bytes>{std::move(frame)};
    };
  }
  static engine::Options options() {
    engine::Options o;
    o.reassembly_pool = kPool;
    return o;
  }
  std::uint64_t bytes() { return wire.right.engine().tables().reassembly_bytes; }

  void connect(Peer& peer) {
    latest = &peer;
    auto& left = wire.left.engine();
    auto& right = wire.right.engine();
    auto params = left.iwarp().default_params();
    params.context.initiated_as = fastpath::ConnectionType::Slow;
    const std::size_t before = wire.right.node->events.size();
    ASSERT_TRUE(left.iwarp()
                    .connect(*wire.left.node->make_qp(), {IpAddress::v4(10, 0, 0, 2), kPort},
                             params, wire.now)
                    .ok());
    ASSERT_TRUE(
        wire.run_until([&] { return wire.right.node->events.size() > before; }, Duration::s(1)));
    const CmEvent& asked = wire.right.node->events.back();
    ASSERT_EQ(asked.kind, CmEvent::Kind::ConnectRequest);
    peer.qp = wire.right.node->make_qp();
    ASSERT_TRUE(right.iwarp().accept(asked.request.id, *peer.qp, params, wire.now).ok());
    wire.run_for(Duration::ms(5));
    latest = nullptr;
  }
  // Sends another run of segments. Returns true if the engine has kept any of them.
  bool hold_more(Peer& peer) {
    const std::uint64_t before = bytes();
    const Bytes payload(kSegment, 7);
    for (std::size_t i = 0; i < kRun; ++i) {
      tcp::Segment s = peer.last.seg;
      s.flags = tcp::kAck;
      s.seq = s.seq + peer.next + static_cast<std::uint32_t>(i * kSegment);
      wire.send(forge(peer.last, false, wire.right.engine().interface().mac(), s, payload), true);
    }
    wire.right.engine().poll(wire.now);
    const std::uint64_t more = bytes() - before;
    peer.held += more;
    if (more != 0) peer.next += kRun * kSegment;
    return more != 0;
  }
  void hold_all(std::vector<Peer>& peers) {
    for (bool any = true; any;) {
      any = false;
      for (Peer& p : peers) any = hold_more(p) || any;
      wire.run_for(Duration::us(1));
    }
  }

  HandWire wire{options()};
  Peer* latest = nullptr;
};

// proves: E-11
TEST_F(Sharing, AFewThatHoldAllTheyCanLeaveTheOthersHalfOfTheirShare) {
  std::vector<Peer> greedy(4), others(12);
  for (Peer& p : greedy) connect(p);
  for (Peer& p : others) connect(p);
  ASSERT_EQ(bytes(), 0u);
  // From now on no replies return: the real senders do not see replies to the forged segments.
  wire.watch = [](Bytes frame, bool to_right) {
    return to_right ? std::vector<Bytes>{std::move(frame)} : std::vector<Bytes>{};
  };
  hold_all(greedy);
  for (const Peer& p : greedy) EXPECT_GT(p.held, kPool / 16) << "they do hold what they can";
  hold_all(others);
  constexpr std::uint64_t kShare = kPool / 16;
  for (const Peer& p : others) EXPECT_GE(p.held + reassembly::Pool::kChunk, kShare / 2);
  EXPECT_LE(bytes(), kPool);
  // They disconnect, and the others get their memory.
  for (const Peer& p : greedy) wire.right.engine().iwarp_control().destroy(p.qp, wire.now);
  wire.run_for(Duration::ms(1));
  const std::uint64_t before = others[0].held;
  hold_all(others);
  EXPECT_GT(others[0].held, before);
  for (const Peer& p : others) wire.right.engine().iwarp_control().destroy(p.qp, wire.now);
  wire.run_for(Duration::ms(1));
  EXPECT_EQ(bytes(), 0u);
}

}  // namespace
}  // namespace urnic::test
