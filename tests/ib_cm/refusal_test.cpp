// Refused requests: the reason, and the state that remains.
#include <gmock/gmock.h>

#include "ib_cm/end.h"

namespace urnic::ib_cm {
namespace {

using test::attribute_of;
using test::attributes_of;
using test::begins_with;
using test::bytes_of;
using test::kinds_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RefusalTest : public test::Couple {
 protected:
  // The REJ of b to a REQ of a that was modified on the way.
  Rej answer_to(std::uint8_t* (*byte)(Mad&), std::uint8_t value) {
    EXPECT_TRUE(a.manager.connections().connect(a.connect_to(b.me, ++qpn_), {}, now).ok());
    Outgoing o = a.mads().at(0);
    *byte(o.mad) = value;
    deliver(a, o);
    const auto rej = b.mads();
    EXPECT_THAT(attributes_of(rej), ElementsAre(Attribute::Rej));
    EXPECT_THAT(b.events(), IsEmpty());
    return rej.empty() ? Rej() : read_rej(answer_ = rej[0].mad);
  }

  std::uint32_t qpn_ = 100;
  Mad answer_{};
};

// proves: IB-137
TEST_F(RefusalTest, WithoutAListenerTheReasonIsEight) {
  active = *a.manager.connections().connect(a.connect_to(b.me), {}, now);
  carry(a);
  EXPECT_EQ(b.manager.size(), 0u) << "nothing is kept";
  EXPECT_THAT(carry(b), ElementsAre(Attribute::Rej));
  const auto events = a.events();
  ASSERT_THAT(kinds_of(events), ElementsAre(EventKind::Rejected, EventKind::Released));
  EXPECT_EQ(events[0].reason, Reason::NoSuchService);
  EXPECT_EQ(events[0].handle, active);
  EXPECT_EQ(a.manager.size(), 0u);
  EXPECT_TRUE(a.manager.due().is_never());
}

TEST_F(RefusalTest, AnUnsupportedRequestHasItsReason) {
  b.manager.listen({test::kService, {}, Transport::Rc, 16});
  const auto at = [](auto index) {
    return +[](Mad& m) { return &m[kMadHeaderBytes + decltype(index)::value]; };
  };
  EXPECT_EQ(answer_to(at(std::integral_constant<int, 50>()), 0x67).reason, Reason::PathMtu);
  EXPECT_EQ(answer_to(at(std::integral_constant<int, 43>()), 0xa6).reason, Reason::Transport);
  EXPECT_EQ(answer_to(at(std::integral_constant<int, 43>()), 0xa2).reason, Reason::Transport)
      << "UC, and the listener is for RC";
  EXPECT_EQ(answer_to(at(std::integral_constant<int, 48>()), 0x80).reason, Reason::Unsupported);
  EXPECT_EQ(answer_to(at(std::integral_constant<int, 71>()), 9).reason, Reason::PrimaryGid);
  const Rej r = answer_to(at(std::integral_constant<int, 140>()), 1);
  EXPECT_EQ(r.reason, Reason::Unsupported) << "another version of the IP header";
  EXPECT_EQ(r.which, Which::Req);
  EXPECT_EQ(r.local_id, 0u);
  EXPECT_EQ(b.manager.size(), 0u);
}

// proves: IB-137
TEST_F(RefusalTest, TheConsumersRejectionReachesThePeerWithItsData) {
  listen_and_ask();
  const auto req = a.mads();
  deliver(a, req[0]);
  request();
  ASSERT_EQ(b.manager.connections().reject(passive, Reason::Consumer, bytes_of("no"), now),
            Refusal::None);
  const auto rej = b.mads();
  deliver(a, req[0]);  // repeated, as if the REJ was lost
  const auto again = b.mads();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].mad, rej[0].mad);
  EXPECT_THAT(b.events(), IsEmpty());
  deliver(b, again[0]);
  const auto events = a.events();
  ASSERT_THAT(kinds_of(events), ElementsAre(EventKind::Rejected, EventKind::Released));
  EXPECT_EQ(events[0].reason, Reason::Consumer);
  EXPECT_TRUE(begins_with(events[0].data, "no", 148));
  deliver(b, rej[0]);
  EXPECT_EQ(drops(a, Drop::Unknown), 1u);
  EXPECT_THAT(a.events(), IsEmpty());
  wait(b);
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::Released));
  EXPECT_EQ(b.manager.size(), 0u);
  EXPECT_EQ(b.manager.connections().reject(passive, Reason::Consumer, {}, now),
            Refusal::NoSuchHandle);
}

TEST_F(RefusalTest, ARepMayBeRejectedToo) {
  connect_up_to_rep();
  const auto rep = b.mads();
  deliver(b, rep[0]);
  a.events();
  ASSERT_EQ(a.manager.connections().reject(active, Reason::Consumer, bytes_of("oh"), now),
            Refusal::None);
  const auto rej = a.mads();
  EXPECT_EQ(read_rej(rej[0].mad).which, Which::Rep);
  deliver(b, rep[0]);
  const auto again = a.mads();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].mad, rej[0].mad);
  deliver(a, rej[0]);
  const auto events = b.events();
  ASSERT_THAT(kinds_of(events), ElementsAre(EventKind::Rejected));
  EXPECT_TRUE(begins_with(events[0].data, "oh", 148));
  EXPECT_EQ(state_of(b, passive), State::TimeWait) << "its number has been told";
}

// The peer that gave up does not know our id.
TEST_F(RefusalTest, AnAbandonedRequestIsWithdrawn) {
  listen_and_ask();
  const auto req = a.mads();
  for (int i = 0; i < 16; ++i) wait(a);
  const auto sent = a.mads();
  ASSERT_EQ(attribute_of(sent.back().mad), Attribute::Rej);
  deliver(a, req[0]);
  request();
  deliver(a, sent.back());
  const auto events = b.events();
  ASSERT_THAT(kinds_of(events), ElementsAre(EventKind::Rejected, EventKind::Released));
  EXPECT_EQ(events[0].reason, Reason::Timeout);
  EXPECT_EQ(b.manager.connections().accept(passive, values(), {}, now), Refusal::NoSuchHandle);
}

// ---- stale connections

// proves: IB-137
TEST_F(RefusalTest, AReqThatNamesTheQueuePairOfALiveConnectionIsStaleAndEndsIt) {
  connect();
  test::End reborn(2, test::keyed(99));  // the same peer, with nothing remembered
  ASSERT_TRUE(reborn.manager.connections().connect(reborn.connect_to(b.me), {}, now).ok());
  deliver(a, {reborn.to(b.me), reborn.mads().at(0).mad});
  const auto out = b.mads();
  ASSERT_THAT(attributes_of(out), ElementsAre(Attribute::Dreq, Attribute::Rej));
  EXPECT_EQ(read_rej(out[1].mad).reason, Reason::Stale);
  auto events = b.events();
  ASSERT_THAT(kinds_of(events), ElementsAre(EventKind::Disconnected));
  EXPECT_EQ(events[0].handle, passive);
  EXPECT_EQ(events[0].reason, Reason::Stale);
  reborn.manager.take(reborn.to(b.me), out[1].mad, now);
  EXPECT_THAT(kinds_of(reborn.events()), ElementsAre(EventKind::Rejected, EventKind::Released));
  // It does not know the connection to be ended, and answers so.
  reborn.manager.take(reborn.to(b.me), out[0].mad, now);
  const auto drep = reborn.mads();
  ASSERT_THAT(attributes_of(drep), ElementsAre(Attribute::Drep));
  b.manager.take(b.to(a.me), drep[0].mad, now);
  EXPECT_EQ(state_of(b, passive), State::TimeWait);
  EXPECT_THAT(b.events(), IsEmpty()) << "told once";
  EXPECT_EQ(b.manager.counters().stale, 1u);
}

// proves: IB-129
TEST_F(RefusalTest, AReqThatNamesTheQueuePairOfAWaitingConnectionIsStale) {
  connect();
  ASSERT_EQ(b.manager.connections().disconnect(passive, {}, now), Refusal::None);
  settle();
  ASSERT_EQ(state_of(b, passive), State::TimeWait);
  a.events();
  b.events();
  test::End reborn(2, test::keyed(99));
  const auto ask = [&] {
    EXPECT_TRUE(reborn.manager.connections().connect(reborn.connect_to(b.me), {}, now).ok());
    b.manager.take(b.to(a.me), reborn.mads().at(0).mad, now);
  };
  ask();
  const auto out = b.mads();
  ASSERT_THAT(attributes_of(out), ElementsAre(Attribute::Rej));
  EXPECT_EQ(read_rej(out[0].mad).reason, Reason::Stale);
  EXPECT_THAT(b.events(), IsEmpty());
  now = b.manager.due();
  b.manager.on_time(now);
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::Released));
  ask();
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::ConnectRequest)) << "it is over";
}

TEST_F(RefusalTest, ARefusedQueuePairMayRequestAgainAtOnce) {
  listen_and_ask();
  deliver(a, a.mads().at(0));
  request();
  ASSERT_EQ(b.manager.connections().reject(passive, Reason::Consumer, {}, now), Refusal::None);
  carry(b);
  EXPECT_THAT(kinds_of(a.events()), ElementsAre(EventKind::Rejected, EventKind::Released));
  ASSERT_TRUE(a.manager.connections().connect(a.connect_to(b.me), {}, now).ok());
  carry(a);
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::ConnectRequest));
}

TEST_F(RefusalTest, AReusedCommIdIsStale) {
  listen_and_ask();
  Outgoing req = a.mads().at(0);
  deliver(a, req);
  request();
  req.mad[15] ^= 1;                       // another exchange
  req.mad[kMadHeaderBytes + 34] ^= 0x40;  // another queue pair
  deliver(a, req);
  const auto out = b.mads();
  ASSERT_THAT(attributes_of(out), ElementsAre(Attribute::Rej));
  EXPECT_EQ(read_rej(out[0].mad).reason, Reason::Stale);
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::Rejected, EventKind::Released));
}

TEST_F(RefusalTest, ARepWithTheQueuePairOfALiveConnectionIsStaleToo) {
  connect();
  const Handle second = *a.manager.connections().connect(a.connect_to(b.me, 0x12), {}, now);
  carry(a);
  const Event asked = b.events().at(0);
  ASSERT_EQ(b.manager.connections().accept(asked.handle, values(), {}, now), Refusal::None);
  carry(b);
  const auto events = a.events();
  ASSERT_THAT(kinds_of(events), ElementsAre(EventKind::Disconnected, EventKind::Rejected));
  EXPECT_EQ(events[0].handle, active);
  EXPECT_EQ(events[1].handle, second);
  EXPECT_EQ(events[1].reason, Reason::Stale);
  const auto out = a.mads();
  ASSERT_THAT(attributes_of(out), ElementsAre(Attribute::Dreq, Attribute::Rej));
  EXPECT_EQ(read_rej(out[1].mad).which, Which::Rep);
  EXPECT_EQ(read_rej(out[1].mad).reason, Reason::Stale);
}

// Two ends that send each other REQs make two requests (peer to peer is not supported).
TEST_F(RefusalTest, CrossingRequestsAreBothAnswered) {
  ASSERT_TRUE(a.manager.connections().connect(a.connect_to(b.me), {}, now).ok());
  ASSERT_TRUE(b.manager.connections().connect(b.connect_to(a.me), {}, now).ok());
  settle();
  for (test::End* e : {&a, &b}) {
    const auto events = e->events();
    ASSERT_THAT(kinds_of(events), ElementsAre(EventKind::Rejected, EventKind::Released));
    EXPECT_EQ(events[0].reason, Reason::NoSuchService);
  }
}

// ---- floods (IB-142)

// proves: IB-142
TEST_F(RefusalTest, AFloodOfReqsIsBoundedByTheBacklogAndAffectsNoConnection) {
  connect();
  std::uint32_t asked = 0;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    test::End stranger(static_cast<int>(i % 200) + 10, test::keyed(1000 + i));
    ASSERT_TRUE(
        stranger.manager.connections().connect(stranger.connect_to(b.me, 0x100 + i), {}, now).ok());
    b.manager.take(b.to(stranger.me), stranger.mads().at(0).mad, now);
    asked += static_cast<std::uint32_t>(b.events().size());
  }
  EXPECT_EQ(asked, 64u) << "four times the backlog";
  EXPECT_EQ(b.manager.size(), 65u);
  EXPECT_EQ(drops(b, Drop::Backlog), 5000u - 64u);
  EXPECT_THAT(b.mads(), IsEmpty()) << "and nothing is said to whoever was named as its sender";
  ASSERT_EQ(a.manager.connections().disconnect(active, {}, now), Refusal::None);
  settle();
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::Disconnected));
}

// The backlog of the listener, like with a kernel, which is a quarter of the total.
TEST_F(RefusalTest, OneAddressTakesAQuarterOfTheBacklog) {
  b.manager.listen({test::kService, {}, Transport::Rc, 16});
  for (std::uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(a.manager.connections().connect(a.connect_to(b.me, 0x100 + i), {}, now).ok());
  }
  carry(a);
  auto of_a = b.events();
  EXPECT_EQ(of_a.size(), 16u);
  EXPECT_EQ(drops(b, Drop::Backlog), 84u);
  test::End other(9);
  const auto ask = [&](std::uint32_t qpn) {
    EXPECT_TRUE(other.manager.connections().connect(other.connect_to(b.me, qpn), {}, now).ok());
    b.manager.take(b.to(other.me), other.mads().at(0).mad, now);
    return b.events().size();
  };
  EXPECT_EQ(ask(0x11), 1u);
  // A request that is answered makes room for the next one of its address.
  ASSERT_EQ(b.manager.connections().accept(of_a[0].handle, values(), {}, now), Refusal::None);
  ASSERT_TRUE(a.manager.connections().connect(a.connect_to(b.me, 0x99), {}, now).ok());
  carry(a);
  EXPECT_EQ(b.events().size(), 1u);
}

TEST_F(RefusalTest, OneAddressTakesAQuarterOfTheHalfOpenConnections) {
  Options o = test::keyed(3);
  o.most_half_open = 16;
  test::End small(3, o);
  small.manager.listen({test::kService, {}, Transport::Rc, 1000});
  const auto ask = [&](test::End& from, std::uint32_t qpn) {
    EXPECT_TRUE(from.manager.connections().connect(from.connect_to(small.me, qpn), {}, now).ok());
    small.manager.take(small.to(from.me), from.mads().at(0).mad, now);
    return small.events();
  };
  for (std::uint32_t i = 0; i < 50; ++i) {
    for (const Event& e : ask(a, 0x100 + i)) {
      small.manager.connections().reject(e.handle, Reason::Consumer, {}, now);
    }
  }
  EXPECT_EQ(small.manager.half_open(), 4u);
  test::End other(9);
  EXPECT_EQ(ask(other, 0x11).size(), 1u);
  // The oldest refused one gives way, but not while its REJ may have to be repeated.
  EXPECT_TRUE(ask(a, 0x200).empty());
  now = now + Duration::s(1);
  EXPECT_THAT(kinds_of(ask(a, 0x201)), ElementsAre(EventKind::Released, EventKind::ConnectRequest));
  EXPECT_EQ(small.manager.half_open(), 5u);
}

// Regardless of the peer's response timeout.
TEST_F(RefusalTest, AnAnswerIsNotRepeatedForLongerThanTheLongestWait) {
  b.manager.listen({test::kService, {}, Transport::Rc, 16});
  Connect slow = a.connect_to(b.me);
  slow.response_timeout = 31;
  slow.max_cm_retries = 15;
  ASSERT_TRUE(a.manager.connections().connect(slow, {}, now).ok());
  carry(a);
  request();
  ASSERT_EQ(b.manager.connections().accept(passive, values(), {}, now), Refusal::None);
  const Instant until = now + b.manager.find(passive)->interval;
  EXPECT_EQ(b.manager.due(), until);
  wait(b);
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::Unreachable));
}

TEST_F(RefusalTest, HalfOpenConnectionsAreBoundedAcrossListeners) {
  Options o = test::keyed(3);
  o.most_half_open = 10;
  test::End small(3, o);
  small.manager.listen({test::kService, {}, Transport::Rc, 1000});
  for (std::uint32_t i = 0; i < 100; ++i) {
    test::End stranger(static_cast<int>(i) + 10, test::keyed(1000 + i));
    ASSERT_TRUE(
        stranger.manager.connections().connect(stranger.connect_to(small.me), {}, now).ok());
    small.manager.take(small.to(stranger.me), stranger.mads().at(0).mad, now);
    for (const Event& e : small.events()) {  // any answer of its owner
      if (i % 2 == 0) {
        small.manager.connections().reject(e.handle, Reason::Consumer, {}, now);
      } else {
        small.manager.connections().accept(e.handle, values(0x100 + i), {}, now);
      }
    }
  }
  EXPECT_EQ(small.manager.size(), 10u);
  EXPECT_EQ(small.manager.half_open(), 10u);
  EXPECT_EQ(small.manager.counters().of(Drop::Backlog), 90u);
  // All of them time out.
  for (int i = 0; i < 1000 && !small.manager.due().is_never(); ++i) {
    small.manager.on_time(small.manager.due());
    small.mads();
    small.events();
  }
  EXPECT_EQ(small.manager.size(), 0u);
  EXPECT_EQ(small.manager.half_open(), 0u);
}

TEST_F(RefusalTest, AFullTableAcceptsNoMoreConnections) {
  Options o = test::keyed(3);
  o.most = 3;
  test::End small(3, o);
  small.manager.listen({test::kService, {}, Transport::Rc, 1000});
  for (std::uint32_t i = 0; i < 10; ++i) {
    test::End stranger(static_cast<int>(i) + 10);
    ASSERT_TRUE(
        stranger.manager.connections().connect(stranger.connect_to(small.me), {}, now).ok());
    small.manager.take(small.to(stranger.me), stranger.mads().at(0).mad, now);
  }
  EXPECT_EQ(small.manager.size(), 3u);
  EXPECT_EQ(small.manager.counters().of(Drop::Full), 7u);
  EXPECT_EQ(small.manager.connections().connect(small.connect_to(a.me), {}, now).error(),
            Refusal::Full);
  // All of them time out, and there is room again.
  for (const Event& e : small.events()) {
    small.manager.connections().reject(e.handle, Reason::Consumer, {}, now);
  }
  for (int i = 0; i < 100 && !small.manager.due().is_never(); ++i) {
    small.manager.on_time(small.manager.due());
    small.mads();
    small.events();
  }
  EXPECT_EQ(small.manager.size(), 0u);
  EXPECT_TRUE(small.manager.connections().connect(small.connect_to(a.me), {}, now).ok());
}

// MADs that the owner does not fetch are dropped, not kept forever.
TEST_F(RefusalTest, MadsThatTheOwnerDoesNotFetchAreBounded) {
  ASSERT_TRUE(a.manager.connections().connect(a.connect_to(b.me), {}, now).ok());
  const Outgoing req = a.mads().at(0);
  for (int i = 0; i < 10'000; ++i) deliver(a, req);
  EXPECT_EQ(b.mads().size(), 4096u);
  EXPECT_EQ(b.manager.counters().unsent, 10'000u - 4096u);
  deliver(a, req);
  EXPECT_EQ(b.mads().size(), 1u);
  EXPECT_EQ(b.manager.counters().unsent, 10'000u - 4096u);
}

// ---- listeners

TEST_F(RefusalTest, TheListenerOfAnAddressPrecedesTheOneOfAll) {
  const ListenerId all = b.manager.listen({test::kService, {}, Transport::Rc, 16});
  EXPECT_EQ(b.manager.listen({test::kService, {}, Transport::Rc, 16}), 0u) << "taken";
  const ListenerId mine = b.manager.listen({test::kService, b.me, Transport::Rc, 16});
  const ListenerId other = b.manager.listen({test::kService, test::host(8), Transport::Rc, 16});
  EXPECT_NE(all, 0u);
  EXPECT_NE(mine, 0u);
  EXPECT_NE(other, 0u);
  const auto ask = [&](std::uint32_t qpn) {
    EXPECT_TRUE(a.manager.connections().connect(a.connect_to(b.me, qpn), {}, now).ok());
    carry(a);
    const auto events = b.events();
    return events.empty() ? 0 : events[0].listener;
  };
  EXPECT_EQ(ask(0x20), mine);
  b.manager.unlisten(mine);
  EXPECT_EQ(ask(0x21), all);
  b.manager.unlisten(all);
  EXPECT_EQ(ask(0x22), 0u);
  EXPECT_EQ(attributes_of(b.mads()).size(), 1u);
}

TEST_F(RefusalTest, ARequestOutlivesItsListenerAndAnAnsweredOneMakesRoom) {
  listener = b.manager.listen({test::kService, {}, Transport::Rc, 1});
  const auto ask = [&](std::uint32_t qpn) {
    EXPECT_TRUE(a.manager.connections().connect(a.connect_to(b.me, qpn), {}, now).ok());
    carry(a);
    const auto events = b.events();
    return events.empty() ? 0 : events[0].handle;
  };
  const Handle first = ask(0x20);
  EXPECT_NE(first, 0u);
  EXPECT_EQ(ask(0x21), 0u);
  ASSERT_EQ(b.manager.connections().accept(first, values(0x30), {}, now), Refusal::None);
  const Handle second = ask(0x22);
  EXPECT_NE(second, 0u);
  b.manager.unlisten(listener);
  EXPECT_EQ(b.manager.connections().accept(second, values(0x31), {}, now), Refusal::None);
}

}  // namespace
}  // namespace urnic::ib_cm
