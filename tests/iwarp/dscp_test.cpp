// The configured DSCP of a connection (RFC 2474) is in the IP headers of its segments.
#include <gtest/gtest.h>

#include "iwarp/hand_wire.h"

namespace urnic {
namespace {

using test::Bytes;
using test::HandWire;
using test::WireSegment;

TEST(Dscp, EachEndSendsWithItsOwnDscp) {
  constexpr std::uint8_t kLeft = 0x0a, kRight = 0x16;
  HandWire w;
  std::vector<std::uint8_t> of_left, of_right;  // of segments that carry data
  w.watch = [&](Bytes frame, bool to_right) -> std::vector<Bytes> {
    const auto s = WireSegment::of(frame);
    if (s && (!s->seg.payload.empty() || (to_right && s->seg.has(tcp::kSyn)))) {
      const std::uint8_t tos = frame[15];  // after the Ethernet header
      (to_right ? of_left : of_right).push_back(static_cast<std::uint8_t>(tos >> 2));
    }
    return {std::move(frame)};
  };
  engine::Engine &left = w.left.engine(), &right = w.right.engine();
  ASSERT_TRUE(right.iwarp().listen(7000, 4));
  auto *a = w.left.node->make_qp(), *b = w.right.node->make_qp();
  engine::ConnectParams params = left.iwarp().default_params();
  params.dscp = kLeft;
  ASSERT_TRUE(left.iwarp().connect(*a, *SocketAddress::parse("10.0.0.2:7000"), params, w.now).ok());
  auto& events = w.right.node->events;
  ASSERT_TRUE(w.run_until([&] { return !events.empty(); }, Duration::s(5)));
  params = right.iwarp().default_params();
  params.dscp = kRight;
  ASSERT_TRUE(right.iwarp().accept(events.front().request.id, *b, params, w.now).ok());
  ASSERT_TRUE(w.run_until(
      [&] { return a->state == verbs::QpState::Rts && b->state == verbs::QpState::Rts; },
      Duration::s(5)));
  // SYN and MPA Request; MPA Reply.
  EXPECT_EQ(of_left.size(), 2u);
  EXPECT_EQ(of_right.size(), 1u);
  for (const std::uint8_t dscp : of_left) EXPECT_EQ(dscp, kLeft);
  for (const std::uint8_t dscp : of_right) EXPECT_EQ(dscp, kRight);
}

}  // namespace
}  // namespace urnic
