// The ends of connections: by DREQ, by both at once, by silence; and time-wait.
#include <gmock/gmock.h>

#include <set>

#include "ib_cm/end.h"

namespace urnic::ib_cm {
namespace {

using test::attributes_of;
using test::begins_with;
using test::bytes_of;
using test::kinds_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CmEnding : public test::Couple {
 protected:
  CmEnding() { connect(); }
};

// proves: IB-138
TEST_F(CmEnding, EitherEndMayDisconnect) {
  for (const bool by_active : {true, false}) {
    if (!by_active) {
      active = passive = 0;
      active = *a.manager.connections().connect(a.connect_to(b.me, 0x55), {}, now);
      carry(a);
      request();
      ASSERT_EQ(b.manager.connections().accept(passive, values(0x66), {}, now), Refusal::None);
      carry(b);
      ASSERT_EQ(a.manager.connections().confirm(active, {}), Refusal::None);
      carry(a);
      a.events();
      b.events();
    }
    test::End& from = by_active ? a : b;
    test::End& to = by_active ? b : a;
    const Handle mine = by_active ? active : passive;
    ASSERT_EQ(from.manager.connections().disconnect(mine, bytes_of("bye"), now), Refusal::None);
    EXPECT_EQ(from.manager.connections().disconnect(mine, {}, now), Refusal::WrongState);
    EXPECT_THAT(carry(from), ElementsAre(Attribute::Dreq));
    const auto told = to.events();
    ASSERT_THAT(kinds_of(told), ElementsAre(EventKind::Disconnected));
    EXPECT_EQ(told[0].reason, Reason::None);
    EXPECT_TRUE(begins_with(told[0].data, "bye", 220));
    EXPECT_THAT(carry(to), ElementsAre(Attribute::Drep));
    EXPECT_THAT(kinds_of(from.events()), ElementsAre(EventKind::Disconnected));
    EXPECT_EQ(state_of(a, active), State::TimeWait);
    EXPECT_EQ(state_of(b, passive), State::TimeWait);
  }
}

// proves: IB-138
TEST_F(CmEnding, BothEndsDisconnectingAtOnceEachSeeOneEnd) {
  ASSERT_EQ(a.manager.connections().disconnect(active, {}, now), Refusal::None);
  ASSERT_EQ(b.manager.connections().disconnect(passive, {}, now), Refusal::None);
  const auto from_a = a.mads(), from_b = b.mads();
  deliver(a, from_a[0]);
  deliver(b, from_b[0]);
  EXPECT_THAT(carry(a), ElementsAre(Attribute::Drep));
  EXPECT_THAT(carry(b), ElementsAre(Attribute::Drep));
  EXPECT_THAT(kinds_of(a.events()), ElementsAre(EventKind::Disconnected));
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::Disconnected));
  EXPECT_EQ(state_of(a, active), State::TimeWait);
  EXPECT_EQ(state_of(b, passive), State::TimeWait);
  EXPECT_FALSE(a.manager.wants_to_send());
}

// proves: IB-138
TEST_F(CmEnding, ALostDrepIsSentAgain) {
  ASSERT_EQ(a.manager.connections().disconnect(active, {}, now), Refusal::None);
  const auto dreq = a.mads();
  deliver(a, dreq[0]);
  const auto lost = b.mads();
  b.events();
  now = now + Duration::ms(1500);
  deliver(a, dreq[0]);
  const auto again = b.mads();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].mad, lost[0].mad);
  EXPECT_THAT(b.events(), IsEmpty());
  // Also if the connection has been released.
  wait(b);
  EXPECT_EQ(b.manager.size(), 0u);
  wait(a);
  const auto repeated = a.mads();
  ASSERT_EQ(repeated.size(), 1u);
  EXPECT_EQ(repeated[0].mad, dreq[0].mad);
  deliver(a, repeated[0]);
  EXPECT_THAT(carry(b), ElementsAre(Attribute::Drep));
  EXPECT_EQ(drops(b, Drop::Unknown), 1u);
  EXPECT_THAT(kinds_of(a.events()), ElementsAre(EventKind::Disconnected));
}

TEST_F(CmEnding, AnUnansweredDreqStillEndsTheConnection) {
  ASSERT_EQ(a.manager.connections().disconnect(active, {}, now), Refusal::None);
  for (int i = 0; i < 16; ++i) {
    EXPECT_THAT(attributes_of(a.mads()), ElementsAre(Attribute::Dreq)) << i;
    EXPECT_THAT(a.events(), IsEmpty());
    wait(a);
  }
  const auto events = a.events();
  ASSERT_THAT(kinds_of(events), ElementsAre(EventKind::Disconnected));
  EXPECT_EQ(events[0].reason, Reason::Timeout);
  EXPECT_EQ(state_of(a, active), State::TimeWait);
}

TEST_F(CmEnding, ADreqMayOvertakeTheRtu) {
  const Handle mine = *a.manager.connections().connect(a.connect_to(b.me, 0x55), {}, now);
  carry(a);
  request();
  ASSERT_EQ(b.manager.connections().accept(passive, values(0x66), {}, now), Refusal::None);
  carry(b);
  ASSERT_EQ(a.manager.connections().confirm(mine, {}), Refusal::None);
  const auto rtu = a.mads();
  ASSERT_EQ(a.manager.connections().disconnect(mine, {}, now), Refusal::None);
  EXPECT_THAT(carry(a), ElementsAre(Attribute::Dreq));
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::Disconnected));
  deliver(a, rtu[0]);
  EXPECT_THAT(b.events(), IsEmpty());
  EXPECT_EQ(state_of(b, passive), State::TimeWait);
}

// proves: IB-129
TEST_F(CmEnding, NumbersRestForTwiceTheLifetimeAndTheDelay) {
  ASSERT_EQ(a.manager.connections().disconnect(active, {}, now), Refusal::None);
  settle();
  a.events();
  b.events();
  const Duration life = Duration::ns(std::int64_t{4096} << 18);
  const Duration delay = Duration::ns(std::int64_t{4096} << 15);
  EXPECT_EQ(a.manager.due(), now + life + life + delay);
  EXPECT_EQ(b.manager.due(), now + life + life) << "the ACK timeout of the REQ, code 19";
  const Instant early = a.manager.due() - Duration::ns(1);
  b.manager.on_time(early);
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::Released));
  a.manager.on_time(early);
  EXPECT_THAT(a.events(), IsEmpty());
  EXPECT_NE(a.manager.find(active), nullptr);
  a.manager.on_time(early + Duration::ns(1));
  const auto events = a.events();
  ASSERT_THAT(kinds_of(events), ElementsAre(EventKind::Released));
  EXPECT_EQ(events[0].handle, active);
  EXPECT_EQ(a.manager.find(active), nullptr);
}

// Messages of an old connection do not reach the next one, and its id is not soon reused.
TEST_F(CmEnding, ItsMessagesDoNotReachALaterConnection) {
  ASSERT_EQ(a.manager.connections().disconnect(active, {}, now), Refusal::None);
  const auto dreq = a.mads();
  deliver(a, dreq[0]);
  carry(b);
  wait();
  wait();
  ASSERT_EQ(a.manager.size() + b.manager.size(), 0u);
  const Handle old = active;
  std::set<Handle> ids = {active};
  for (std::uint32_t i = 0; i < 200; ++i) {
    const Handle h = *a.manager.connections().connect(a.connect_to(b.me, 0x100 + i), {}, now);
    EXPECT_TRUE(ids.insert(h).second) << "used again after " << i;
    a.manager.abandon(h, now);
    while (!a.manager.due().is_never()) a.manager.on_time(now = a.manager.due());
  }
  a.mads();
  EXPECT_EQ(a.manager.find(old), nullptr);
  b.events();
  deliver(a, dreq[0]);
  EXPECT_THAT(b.events(), IsEmpty());
}

TEST_F(CmEnding, ADreqWithWrongNumbersIsDropped) {
  ASSERT_EQ(a.manager.connections().disconnect(active, {}, now), Refusal::None);
  const Outgoing dreq = a.mads().at(0);
  for (const std::size_t at : {kMadHeaderBytes + 3, kMadHeaderBytes + 10}) {
    Outgoing forged = dreq;
    forged.mad[at] ^= 1;  // the sender's id, our queue pair
    deliver(a, forged);
  }
  b.manager.take(b.to(test::host(9)), dreq.mad, now);
  EXPECT_EQ(drops(b, Drop::Stranger), 3u);
  EXPECT_THAT(b.events(), IsEmpty());
  EXPECT_THAT(b.mads(), IsEmpty());
  EXPECT_EQ(state_of(b, passive), State::Established);
}

// A DREP must match the exchange of the DREQ.
TEST_F(CmEnding, ADrepOfAnotherExchangeIsDropped) {
  ASSERT_EQ(a.manager.connections().disconnect(active, {}, now), Refusal::None);
  carry(a);
  Outgoing drep = b.mads().at(0);
  Outgoing forged = drep;
  forged.mad[15] ^= 1;
  deliver(b, forged);
  EXPECT_EQ(state_of(a, active), State::DreqSent);
  EXPECT_EQ(drops(a, Drop::Unexpected), 1u);
  deliver(b, drep);
  EXPECT_EQ(state_of(a, active), State::TimeWait);
}

TEST_F(CmEnding, PathMigrationIsRefused) {
  Mad lap = make_mad({5, Attribute::Lap, 0});
  store_be32(lap.data() + kMadHeaderBytes, active);
  store_be32(lap.data() + kMadHeaderBytes + 4, passive);
  b.manager.take(b.to(a.me), lap, now);
  const auto apr = b.mads();
  ASSERT_THAT(attributes_of(apr), ElementsAre(Attribute::Apr));
  EXPECT_EQ(apr[0].mad[kMadHeaderBytes + 9], kAprUnsupported);
  EXPECT_THAT(b.events(), IsEmpty());
  a.manager.take(a.to(b.me), apr[0].mad, now);
  EXPECT_EQ(drops(a, Drop::Unexpected), 1u);
  store_be32(lap.data() + kMadHeaderBytes + 4, passive ^ 0x100);
  b.manager.take(b.to(a.me), lap, now);
  EXPECT_THAT(b.mads(), IsEmpty());
}

// IB-129: with any timeout of the peer, and any number of connections.
TEST(RestingTest, TheOldestRestingConnectionGivesWayWhenItsAddressHasTooMany) {
  Options o = test::keyed(3);
  o.most_resting = 16;
  test::End b(3, o);
  b.manager.listen({test::kService, {}, Transport::Rc, 16});
  Instant now = Instant::from_ns(1'000'000);
  const auto rest = [&](test::End& a, std::uint32_t qpn) {
    Connect slow = a.connect_to(b.me, qpn);
    slow.path.ack_timeout = 31;
    const Handle active = *a.manager.connections().connect(slow, {}, now);
    const auto carry = [&](test::End& from, test::End& to) {
      for (const Outgoing& m : from.mads()) to.manager.take(to.to(from.me), m.mad, now);
    };
    carry(a, b);
    const Handle passive = b.events().back().handle;
    EXPECT_EQ(
        b.manager.connections().accept(passive, {qpn, ib::Psn(1), 1, 1, 7, false, false}, {}, now),
        Refusal::None);
    carry(b, a);
    EXPECT_EQ(a.manager.connections().confirm(active, {}), Refusal::None);
    carry(a, b);
    EXPECT_EQ(a.manager.connections().disconnect(active, {}, now), Refusal::None);
    carry(a, b);
    carry(b, a);
    return passive;
  };
  test::End polite(2), other(9);
  std::vector<Handle> handles;
  for (std::uint32_t i = 0; i < 4; ++i) handles.push_back(rest(polite, 0x100 + i));
  const Handle elsewhere = rest(other, 0x11);
  EXPECT_EQ(b.manager.size(), 5u);
  for (std::uint32_t i = 4; i < 50; ++i) {
    b.events();
    handles.push_back(rest(polite, 0x100 + i));
    EXPECT_EQ(b.manager.size(), 5u);
    const auto events = b.events();
    ASSERT_THAT(kinds_of(events),
                ElementsAre(EventKind::Established, EventKind::Disconnected, EventKind::Released));
    EXPECT_EQ(events[2].handle, handles[i - 4]) << "the oldest";
  }
  EXPECT_NE(b.manager.find(elsewhere), nullptr) << "nobody else's";
  // Also over all addresses together.
  for (int which = 10; which < 30; ++which) {
    test::End one(which);
    rest(one, 0x11);
    b.events();
  }
  EXPECT_EQ(b.manager.size(), 16u);
  EXPECT_EQ(b.manager.find(elsewhere), nullptr);
}

// An abandoned connection ends by itself in any state, and the other end is notified.
TEST(AbandonTest, EndsAConnectionInAnyState) {
  struct Case : test::Couple {
    void TestBody() override {}
    using Couple::a, Couple::b, Couple::active, Couple::passive, Couple::now;
    using Couple::carry, Couple::connect, Couple::connect_up_to_rep, Couple::listen_and_ask,
        Couple::request, Couple::settle;
  };
  for (int step = 0; step < 6; ++step) {
    Case c;
    if (step <= 1) {
      c.listen_and_ask();
      if (step == 1) {
        c.carry(c.a);
        c.request();
      }
    } else if (step <= 3) {
      c.connect_up_to_rep();
      if (step == 3) c.carry(c.b);
    } else {
      c.connect();
    }
    const bool by_passive = step == 1 || step == 2 || step == 5;
    test::End& who = by_passive ? c.b : c.a;
    test::End& other = by_passive ? c.a : c.b;
    const Handle h = by_passive ? c.passive : c.active;
    who.events();
    other.events();
    ASSERT_EQ(who.manager.abandon(h, c.now), Refusal::None) << step;
    c.settle();
    EXPECT_THAT(who.events(), IsEmpty()) << step;
    if (step != 0) {
      EXPECT_FALSE(other.events().empty()) << step;
    }
    for (int i = 0; i < 100 && !who.manager.due().is_never(); ++i) {
      who.manager.on_time(c.now = who.manager.due());
    }
    EXPECT_THAT(kinds_of(who.events()), ElementsAre(EventKind::Released)) << step;
    EXPECT_EQ(who.manager.size(), 0u) << step;
    EXPECT_EQ(who.manager.abandon(h, c.now), Refusal::NoSuchHandle);
  }
}

}  // namespace
}  // namespace urnic::ib_cm
