// Connection management over frames: two sides find each other through queue pair 1, over a wire on
// which no Ethernet address is known yet.
#include "roce/general_services.h"

#include <gmock/gmock.h>

#include "roce/side_end.h"

namespace urnic::roce {
namespace {

using ib_cm::Event;
using ib_cm::EventKind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kService = ib_cm::service_of(ib_cm::PortSpace::Tcp, 7174);

struct GsiEnd : test::SideEnd {
  explicit GsiEnd(int which) : SideEnd(which), general(options(which), &wire) {
    side.use(&general);
  }
  static ib_cm::Options options(int which) {
    ib_cm::Options o;
    o.key = {static_cast<std::uint64_t>(which), 3};
    return o;
  }
  std::vector<Event> events() {
    std::vector<Event> all;
    for (Event e; general.manager().next_event(&e);) all.push_back(e);
    return all;
  }
  GeneralServices general;
};

class GeneralServicesTest : public ::testing::TestWithParam<bool> {
 protected:
  GeneralServicesTest() {
    for (GsiEnd* e : {&a, &b}) e->general.manager().listen({kService, {}, {}, 4});
  }
  void run(int steps = 20) {
    for (int i = 0; i < steps; ++i) {
      a.poll(now);
      for (const auto& f : a.sent()) b.arrive(f);
      b.poll(now);
      for (const auto& f : b.sent()) a.arrive(f);
      now = now + Duration::us(10);
    }
  }
  ib_cm::Handle ask(int to = 1) {
    ib_cm::Connect c;
    c.addresses = {test::address_of(0, GetParam()), test::address_of(to, GetParam())};
    c.service = kService;
    c.qp.qpn = 0x11;
    return *a.general.manager().connections().connect(c, {}, now);
  }

  Instant now = Instant::from_ns(1'000'000'000);
  GsiEnd a{0}, b{1};
};

// proves: IB-135, IB-129
TEST_P(GeneralServicesTest, AConnectionIsMadeAndEndedOverFrames) {
  run();  // duplicate address detection
  const ib_cm::Handle active = ask();
  run();
  auto events = b.events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::ConnectRequest);
  EXPECT_EQ(events[0].addresses.remote, test::address_of(0, GetParam()));
  EXPECT_FALSE(b.general.manager().has_event()) << "all are taken";
  const ib_cm::Handle passive = events[0].handle;
  b.general.manager().connections().accept(passive, {0x22}, {}, now);
  run();
  EXPECT_TRUE(a.general.manager().has_event());
  events = a.events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::Accepted);
  a.general.manager().connections().confirm(active, {});
  run();
  events = b.events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::Established);
  b.general.manager().connections().disconnect(passive, {}, now);
  run();
  EXPECT_EQ(a.events().size(), 1u);
  EXPECT_EQ(b.events().size(), 1u);
  EXPECT_EQ(a.side.statistics().drops.of(ib::Drop::NoQueuePair), 0u);
  // Time-wait ends by the side's own deadline.
  ASSERT_FALSE(a.side.next_deadline().is_never());
  now = a.side.next_deadline();
  run();
  EXPECT_EQ(a.general.manager().size(), 0u);
}

TEST_P(GeneralServicesTest, WithoutANeighborThePeerIsUnreachable) {
  run();
  ask(9);
  std::size_t unreachable = 0;
  for (int i = 0; i < 400 && unreachable == 0; ++i) {
    now = now + Duration::ms(500);
    a.poll(now);
    a.sent();
    for (const Event& e : a.events()) unreachable += e.kind == EventKind::Unreachable;
  }
  EXPECT_EQ(unreachable, 1u);
  EXPECT_GT(a.general.statistics().unroutable, 0u);
}

TEST_P(GeneralServicesTest, MadsUpToTheLimitWaitForThePath) {
  run();
  for (int i = 0; i < 300; ++i) ask(9);
  a.poll(now);
  a.sent();
  EXPECT_EQ(a.general.statistics().unroutable, 300u - 256u);
  // No neighbor answers: the waiting MADs are dropped, and others may wait.
  for (int i = 0; i < 100 && a.general.statistics().unroutable < 300; ++i) {
    now = now + Duration::ms(100);
    a.poll(now);
    a.sent();
  }
  const std::uint64_t lost = a.general.statistics().unroutable;
  EXPECT_GE(lost, 300u);
  ask(8);
  a.poll(now);
  EXPECT_EQ(a.general.statistics().unroutable, lost);
}

TEST_P(GeneralServicesTest, FramesToOwnAddressesAreLoopedBack) {
  run();
  ask(0);
  run();
  const auto events = a.events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::ConnectRequest);
  EXPECT_EQ(events[0].addresses.remote, test::address_of(0, GetParam()));
}

// proves: IB-142
TEST_P(GeneralServicesTest, APacketWithoutAMadIsCounted) {
  ib::ParsedPacket p{ib_cm::gsi_header(ib::Psn(1)), {}};
  b.general.take(p, {test::address_of(1, GetParam()), test::address_of(0, GetParam())}, now);
  p.header.deth.qkey = 7;
  b.general.take(p, {test::address_of(1, GetParam()), test::address_of(0, GetParam())}, now);
  EXPECT_THAT(b.general.statistics().drops, ElementsAre(0, 0, 1, 0, 1));
  EXPECT_THAT(b.events(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Both, GeneralServicesTest, ::testing::Bool(),
                         [](const auto& i) { return i.param ? "IPv6" : "IPv4"; });

}  // namespace
}  // namespace urnic::roce
