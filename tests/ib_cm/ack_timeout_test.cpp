// The local ACK timeout: computed from the packet lifetime and the other end's delay.
#include <gmock/gmock.h>

#include <algorithm>

#include "ib_cm/end.h"

namespace urnic::ib_cm {
namespace {

// The code of the sum of both times: the smallest that covers it, ignoring a part that is at most a
// quarter of the other.
std::uint8_t expected(std::uint8_t life, std::uint8_t delay) {
  Duration long_one = time_of(life) * 2, short_one = time_of(delay);
  if (long_one < short_one) std::swap(long_one, short_one);
  const Duration wanted = short_one * 4 <= long_one ? long_one : long_one + short_one;
  std::uint8_t code = 0;
  while (code < 31 && Duration::ns(4096) * (std::int64_t{1} << code) < wanted) ++code;
  return code;
}

class AckTimeout : public test::Couple {};

// proves: IB-128
TEST_F(AckTimeout, CoversTwiceTheLifetimeAndTheDelayForEachPairOfCodes) {
  for (std::uint8_t life = 0; life < 32; ++life) {
    for (std::uint8_t delay = 0; delay < 32; ++delay) {
      SCOPED_TRACE(::testing::Message() << int{life} << " and " << int{delay});
      Options ours = test::keyed(1), theirs = test::keyed(2);
      ours.packet_life_time = life;
      ours.ack_delay = 3;
      theirs.packet_life_time = 5;
      theirs.ack_delay = delay;
      test::End asks(1, ours), accepts(2, theirs);
      ASSERT_TRUE(accepts.manager.listen({test::kService, {}, Transport::Rc, 16}));
      Connect c = asks.connect_to(accepts.me);
      c.path.ack_timeout = ack_timeout_of(life, ours.ack_delay);
      ASSERT_TRUE(asks.manager.connections().connect(c, {}, now));
      for (const Outgoing& o : asks.mads()) accepts.manager.take(accepts.to(asks.me), o.mad, now);
      const auto asked = accepts.events();
      ASSERT_EQ(asked.size(), 1u);
      EXPECT_EQ(asked[0].path.ack_timeout, expected(life, 3)) << "of who accepts";
      ASSERT_EQ(accepts.manager.connections().accept(
                    asked[0].handle, {0x815, ib::Psn(1), 1, 1, 7, false, false}, {}, now),
                Refusal::None);
      for (const Outgoing& o : accepts.mads()) asks.manager.take(asks.to(accepts.me), o.mad, now);
      const auto accepted = asks.events();
      ASSERT_EQ(accepted.size(), 1u);
      EXPECT_EQ(accepted[0].path.ack_timeout, expected(life, delay)) << "of who asked";
    }
  }
}

}  // namespace
}  // namespace urnic::ib_cm
