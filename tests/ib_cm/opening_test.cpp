// A connection from REQ to RTU, as both ends see it.
#include <gmock/gmock.h>

#include "ib_cm/consent.h"
#include "ib_cm/end.h"

namespace urnic::ib_cm {
namespace {

using test::attributes_of;
using test::begins_with;
using test::bytes_of;
using test::kinds_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Opening : public test::Couple {};

// proves: IB-135, IB-136
TEST_F(Opening, EachEndReceivesTheValuesOfTheOther) {
  listener = b.manager.listen({test::kService, {}, Transport::Rc, 16});
  Connect c = a.connect_to(b.me);
  c.qp = {0x4711, ib::Psn(0xabcdef), 5, 6, 3, true, true};
  c.path = {ib::PathMtu::k2048, 17, 4, 0x20, 33, 0x12345};
  active = *a.manager.connections().connect(c, bytes_of("hello"), now);
  carry(a);
  const Event asked = request();
  EXPECT_EQ(asked.listener, listener);
  EXPECT_EQ(asked.addresses, b.to(a.me));
  EXPECT_EQ(asked.wanted, test::kService);
  EXPECT_EQ(asked.source_port, 40000);
  EXPECT_EQ(asked.transport, Transport::Rc);
  EXPECT_EQ(asked.qp.qpn, 0x4711u);
  EXPECT_EQ(asked.qp.psn, ib::Psn(0xabcdef));
  EXPECT_EQ(asked.qp.responder_resources, 5);
  EXPECT_EQ(asked.qp.initiator_depth, 6);
  EXPECT_EQ(asked.qp.rnr_retry, 3);
  EXPECT_TRUE(asked.qp.srq);
  EXPECT_TRUE(asked.qp.credits);
  EXPECT_EQ(asked.path.mtu, ib::PathMtu::k2048);
  EXPECT_EQ(asked.path.ack_timeout, 17);
  EXPECT_EQ(asked.path.retry_count, 4);
  EXPECT_EQ(asked.path.traffic_class, 0x20);
  EXPECT_EQ(asked.path.hop_limit, 33);
  EXPECT_EQ(asked.path.flow_label, 0x12345u);
  EXPECT_TRUE(begins_with(asked.data, "hello", 56));

  // Depths are limited to what the other end can serve, or wants.
  ASSERT_EQ(
      b.manager.connections().accept(passive, {0x815, ib::Psn(0x123456), 16, 16, 2, false, true},
                                     bytes_of("come in"), now),
      Refusal::None);
  const auto rep = b.mads();
  ASSERT_EQ(attributes_of(rep), std::vector{Attribute::Rep});
  EXPECT_EQ(read_rep(rep[0].mad).responder_resources, 6);
  EXPECT_EQ(read_rep(rep[0].mad).initiator_depth, 5);
  deliver(b, rep[0]);
  const auto accepted = a.events();
  ASSERT_THAT(kinds_of(accepted), ElementsAre(EventKind::Accepted));
  const Event& e = accepted[0];
  EXPECT_EQ(e.handle, active);
  EXPECT_EQ(e.qp.qpn, 0x815u);
  EXPECT_EQ(e.qp.psn, ib::Psn(0x123456));
  EXPECT_EQ(e.qp.responder_resources, 6);
  EXPECT_EQ(e.qp.initiator_depth, 5);
  EXPECT_EQ(e.qp.rnr_retry, 2);
  EXPECT_FALSE(e.qp.srq);
  EXPECT_TRUE(e.qp.credits);
  EXPECT_EQ(e.path.ack_timeout, 19) << "twice 18, and 15";
  EXPECT_EQ(e.path.mtu, ib::PathMtu::k2048);
  EXPECT_TRUE(begins_with(e.data, "come in", 196));

  ASSERT_EQ(a.manager.connections().confirm(active, bytes_of("thanks")), Refusal::None);
  carry(a);
  const auto established = b.events();
  ASSERT_THAT(kinds_of(established), ElementsAre(EventKind::Established));
  EXPECT_TRUE(begins_with(established[0].data, "thanks", 224));
  EXPECT_EQ(state_of(a, active), State::Established);
  EXPECT_EQ(state_of(b, passive), State::Established);
  EXPECT_TRUE(a.manager.due().is_never()) << "nothing waits any more";
  EXPECT_TRUE(b.manager.due().is_never());
  EXPECT_EQ(b.manager.half_open(), 0u);
}

// proves: IB-166
TEST_F(Opening, TheRepOfXrcHasTheQueuePairInTheFieldOfTheEeContext) {
  listener = b.manager.listen({test::kService, {}, Transport::Extended, 16});
  Connect c = a.connect_to(b.me, 0x4711);
  c.transport = Transport::Extended;
  active = *a.manager.connections().connect(c, {}, now);
  const auto sent = a.mads();
  ASSERT_EQ(sent.size(), 1u);
  const Req req = read_req(sent[0].mad);
  EXPECT_EQ(req.transport, Transport::Extended);
  EXPECT_EQ(req.extended, kExtendedXrc);
  EXPECT_EQ(req.qpn, 0x4711u);
  deliver(a, sent[0]);
  EXPECT_EQ(request().transport, Transport::Extended);
  ASSERT_EQ(b.manager.connections().accept(
                passive, {0x815, ib::Psn(0x123456), 1, 0, 7, true, false}, {}, now),
            Refusal::None);
  const auto answered = b.mads();
  ASSERT_EQ(answered.size(), 1u);
  const Rep rep = read_rep(answered[0].mad);
  EXPECT_EQ(rep.eecn, 0x815u);
  EXPECT_EQ(rep.qpn, 0u);
  EXPECT_TRUE(rep.srq);
  deliver(b, answered[0]);
  const auto accepted = a.events();
  ASSERT_THAT(kinds_of(accepted), ElementsAre(EventKind::Accepted));
  EXPECT_EQ(accepted[0].qp.qpn, 0x815u);
  ASSERT_EQ(a.manager.connections().confirm(active, {}), Refusal::None);
  carry(a);
  EXPECT_EQ(state_of(b, passive), State::Established);
  // Either end finds the connection by it.
  ASSERT_EQ(b.manager.connections().disconnect(passive, {}, now), Refusal::None);
  settle();
  EXPECT_THAT(kinds_of(a.events()), ElementsAre(EventKind::Disconnected));
}

// proves: IB-166
TEST_F(Opening, XrcAndRcListenersRejectEachOthersRequests) {
  for (const Transport served : {Transport::Rc, Transport::Extended}) {
    listener = b.manager.listen({test::kService, {}, served, 16});
    Connect c = a.connect_to(b.me, served == Transport::Rc ? 0x11 : 0x12);
    c.transport = served == Transport::Rc ? Transport::Extended : Transport::Rc;
    active = *a.manager.connections().connect(c, {}, now);
    carry(a);
    EXPECT_THAT(b.events(), IsEmpty());
    carry(b);
    const auto refused = a.events();
    ASSERT_FALSE(refused.empty());
    EXPECT_EQ(refused[0].kind, EventKind::Rejected);
    EXPECT_EQ(refused[0].reason, Reason::Transport);
    b.manager.unlisten(listener);
  }
}

// The REQ that rping of Linux sends, built by our own code.
TEST_F(Opening, AReqEqualsThatOfLinux) {
  ASSERT_TRUE(a.manager.connections().connect(a.connect_to(b.me), {}, now).ok());
  const Mad req = a.mads().at(0).mad;
  const Req r = read_req(req);
  EXPECT_EQ(r.pkey, 0xffff);
  EXPECT_EQ(r.remote_timeout, 20);
  EXPECT_EQ(r.local_timeout, 20);
  EXPECT_EQ(r.max_cm_retries, 15);
  EXPECT_EQ(r.path_mtu, 3);
  EXPECT_EQ(r.vendor_id, 0u);
  EXPECT_EQ(r.ca_guid, a.manager.find(r.local_id) != nullptr ? 0x0200000000000002u : 0u);
  EXPECT_EQ(r.primary.local_lid, 0xffff);
  EXPECT_EQ(r.primary.remote_lid, 0xffff);
  EXPECT_EQ(r.primary.ack_timeout, 19);
  EXPECT_EQ(address_of(r.primary.local), a.me);
  EXPECT_EQ(address_of(r.primary.remote), b.me);
  EXPECT_FALSE(r.alternate.any());
  const auto ip = read_ip_header(r.private_data);
  ASSERT_TRUE(ip);
  EXPECT_EQ(ip->source, a.me);
  EXPECT_EQ(ip->destination, b.me);
}

TEST_F(Opening, ValuesTooLargeForTheirFieldsAreRefused) {
  using Change = void (*)(Connect&);
  const Change changes[] = {
      [](Connect& c) { c.qp.qpn = 1 << 24; },
      [](Connect& c) { c.qp.qpn = 1; },
      [](Connect& c) { c.qp.rnr_retry = 8; },
      [](Connect& c) { c.path.retry_count = 8; },
      [](Connect& c) { c.path.ack_timeout = 32; },
      [](Connect& c) { c.path.flow_label = 1 << 20; },
      [](Connect& c) { c.response_timeout = 32; },
      [](Connect& c) { c.max_cm_retries = 16; },
      [](Connect& c) { c.transport = Transport::Rd; },
      [](Connect& c) { c.addresses.remote = *IpAddress::parse("fd77::3"); },
  };
  for (const Change change : changes) {
    Connect c = a.connect_to(b.me);
    change(c);
    EXPECT_EQ(a.manager.connections().connect(c, {}, now).error(), Refusal::BadValue);
  }
  const test::Bytes data(93);
  const ByteView view(data);
  Connect c = a.connect_to(b.me);
  EXPECT_EQ(a.manager.connections().connect(c, view.first(57), now).error(), Refusal::TooLong);
  EXPECT_TRUE(a.manager.connections().connect(c, view.first(56), now).ok());
  c.service = 9;  // not a service of rdma_cm
  EXPECT_EQ(a.manager.connections().connect(c, view, now).error(), Refusal::TooLong);
  EXPECT_TRUE(a.manager.connections().connect(c, view.first(92), now).ok());
  EXPECT_EQ(a.manager.size(), 2u);
}

// ---- S-7

TEST_F(Opening, TwoUrnicEndsAgreeOnTheirCommonExtensions) {
  Options o = test::keyed(3);
  o.extensions = 5;
  test::End fast(3, o);
  fast.manager.listen({test::kService, {}, Transport::Rc, 16});
  Connect c = a.connect_to(fast.me);
  c.extensions = 3;
  ASSERT_TRUE(a.manager.connections().connect(c, {}, now).ok());
  const Mad req = a.mads().at(0).mad;
  EXPECT_EQ(read_header(req)->modifier, offer_of(3));
  EXPECT_EQ(read_req(req).vendor_id, kVendorId);
  fast.manager.take(fast.to(a.me), req, now);
  const Event asked = fast.events().at(0);
  EXPECT_EQ(asked.extensions, 1);
  ASSERT_EQ(fast.manager.connections().accept(asked.handle, values(), {}, now), Refusal::None);
  a.manager.take(a.to(fast.me), fast.mads().at(0).mad, now);
  EXPECT_EQ(a.events().at(0).extensions, 1);
}

TEST_F(Opening, APeerThatEchoesTheVendorIdLikeLinuxHasAgreedToNothing) {
  for (const std::uint32_t modifier : {0u, offer_of(1)}) {
    Connect c = a.connect_to(b.me, 0x11 + modifier % 7);
    c.extensions = 1;
    ASSERT_TRUE(a.manager.connections().connect(c, {}, now).ok());
    const Mad req = a.mads().at(0).mad;
    Rep r;
    r.local_id = 77 + modifier;
    r.remote_id = read_req(req).local_id;
    r.vendor_id = read_req(req).vendor_id;  // echoed
    r.qpn = 0x30 + modifier % 7;
    a.manager.take(a.to(b.me), write(read_header(req)->transaction, r, modifier), now);
    const auto events = a.events();
    ASSERT_THAT(kinds_of(events), ElementsAre(EventKind::Accepted));
    EXPECT_EQ(events[0].extensions, 0) << modifier;
  }
}

// ---- messages that are lost, repeated, late (IB-139)

// proves: IB-140
TEST_F(Opening, AReqIsRepeatedUpToTheLimitAndThenThePeerIsUnreachable) {
  Connect c = a.connect_to(b.me);
  c.max_cm_retries = 3;
  c.response_timeout = 18;  // 1.07 s
  const Instant begun = now;
  active = *a.manager.connections().connect(c, {}, now);
  const Mad req = a.mads().at(0).mad;
  for (int i = 1; i <= 3; ++i) {
    wait(a);
    EXPECT_EQ(now - begun, Duration::ns((std::int64_t{4096} << 18) * i));
    const auto again = a.mads();
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].mad, req) << "byte for byte";
    EXPECT_THAT(a.events(), IsEmpty());
  }
  wait(a);
  EXPECT_THAT(kinds_of(a.events()), ElementsAre(EventKind::Unreachable));
  const auto last = a.mads();
  ASSERT_THAT(attributes_of(last), ElementsAre(Attribute::Rej));
  const Rej r = read_rej(last[0].mad);
  EXPECT_EQ(r.reason, Reason::Timeout);
  EXPECT_EQ(r.local_id, active);
  EXPECT_EQ(r.remote_id, 0u);
  EXPECT_EQ(load_be64(r.information.data()), 0x0200000000000002u) << "the GUID";
  EXPECT_EQ(r.information.size(), 8u);
  // The peer may know the number: it is not reused for a while.
  EXPECT_EQ(a.manager.size(), 1u);
  wait(a);
  EXPECT_THAT(kinds_of(a.events()), ElementsAre(EventKind::Released));
  EXPECT_EQ(a.manager.size(), 0u);
  EXPECT_TRUE(a.manager.due().is_never());
}

// proves: IB-139
TEST_F(Opening, ARepeatedReqDrawsTheSameRep) {
  listen_and_ask();
  const auto req = a.mads();
  deliver(a, req[0]);
  request();
  ASSERT_EQ(b.manager.connections().accept(passive, values(), bytes_of("x"), now), Refusal::None);
  const auto rep = b.mads();
  deliver(a, req[0]);
  deliver(a, req[0]);
  const auto again = b.mads();
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].mad, rep[0].mad);
  EXPECT_EQ(again[1].mad, rep[0].mad);
  EXPECT_THAT(b.events(), IsEmpty()) << "and is no request";
  EXPECT_EQ(b.manager.size(), 1u);
}

// proves: IB-139
TEST_F(Opening, ARepeatedRepDrawsTheSameRtu) {
  connect_up_to_rep();
  const auto rep = b.mads();
  deliver(b, rep[0]);
  ASSERT_EQ(a.manager.connections().confirm(active, bytes_of("y")), Refusal::None);
  const auto rtu = a.mads();  // lost
  a.events();
  wait(b);
  EXPECT_THAT(carry(b), ElementsAre(Attribute::Rep));
  const auto again = a.mads();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].mad, rtu[0].mad);
  EXPECT_THAT(a.events(), IsEmpty());
  deliver(a, again[0]);
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::Established));
  deliver(a, again[0]);
  EXPECT_THAT(b.events(), IsEmpty());
  EXPECT_EQ(drops(b, Drop::Unexpected), 1u);
}

// proves: IB-139
TEST_F(Opening, TheFirstRequestEstablishesLikeTheRtu) {
  connect_up_to_rep();
  carry(b);
  ASSERT_EQ(a.manager.connections().confirm(active, {}), Refusal::None);
  const auto rtu = a.mads();
  ASSERT_EQ(b.manager.connections().established(passive), Refusal::None);
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::Established));
  EXPECT_TRUE(b.manager.due().is_never()) << "the REP is not repeated any more";
  deliver(a, rtu[0]);
  EXPECT_THAT(b.events(), IsEmpty());
  EXPECT_EQ(b.manager.connections().established(passive), Refusal::WrongState);
}

TEST_F(Opening, AnUnansweredRepEndsInOneClearFailure) {
  connect_up_to_rep();
  b.mads();
  for (int i = 0; i < 15; ++i) {
    wait(b);
    EXPECT_THAT(attributes_of(b.mads()), ElementsAre(Attribute::Rep)) << i;
  }
  wait(b);
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::Unreachable));
  const auto rej = b.mads();
  ASSERT_THAT(attributes_of(rej), ElementsAre(Attribute::Rej));
  EXPECT_EQ(read_rej(rej[0].mad).reason, Reason::Timeout);
  deliver(b, rej[0]);
  const auto events = a.events();
  ASSERT_THAT(kinds_of(events), ElementsAre(EventKind::Rejected, EventKind::Released));
  EXPECT_EQ(events[0].reason, Reason::Timeout);
}

TEST_F(Opening, AnRtuThatArrivesTooLateIsAnsweredByTheRej) {
  connect_up_to_rep();
  carry(b);
  ASSERT_EQ(a.manager.connections().confirm(active, {}), Refusal::None);
  const auto rtu = a.mads();
  a.events();
  for (int i = 0; i < 16; ++i) wait(b);
  b.mads();  // the REJ is lost
  deliver(a, rtu[0]);
  EXPECT_THAT(carry(b), ElementsAre(Attribute::Rej));
  const auto events = a.events();
  ASSERT_THAT(kinds_of(events), ElementsAre(EventKind::Disconnected));
  EXPECT_EQ(events[0].reason, Reason::Timeout);
}

TEST_F(Opening, ARepOfAnotherTransactionOrForAnUnknownIdIsDropped) {
  connect_up_to_rep();
  Outgoing rep = b.mads().at(0);
  Outgoing forged = rep;
  forged.mad[15] ^= 1;
  deliver(b, forged);
  forged = rep;
  forged.mad[kMadHeaderBytes + 7] ^= 1;
  deliver(b, forged);
  a.manager.take({a.me, test::host(9)}, rep.mad, now);
  EXPECT_EQ(drops(a, Drop::Stranger), 2u);
  EXPECT_EQ(drops(a, Drop::Unknown), 1u);
  EXPECT_THAT(a.events(), IsEmpty());
  EXPECT_THAT(a.mads(), IsEmpty());
  deliver(b, rep);
  EXPECT_THAT(kinds_of(a.events()), ElementsAre(EventKind::Accepted));
}

// ---- MRA

// proves: IB-140
TEST_F(Opening, AConsumerThatTakesTenSecondsStillConnects) {
  for (const std::uint8_t retries : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{15}}) {
    test::End peer(static_cast<int>(10 + retries));
    const ListenerId l = b.manager.listen({test::kService, {}, Transport::Rc, 16});
    Connect c = peer.connect_to(b.me);
    c.response_timeout = 18;  // 1.07 s
    c.max_cm_retries = retries;
    ASSERT_TRUE(peer.manager.connections().connect(c, {}, now).ok());
    const Instant answer = now + Duration::s(10);
    while (now < answer) {
      for (const Outgoing& o : peer.mads()) b.manager.take(b.to(peer.me), o.mad, now);
      for (const Outgoing& o : b.mads()) peer.manager.take(peer.to(b.me), o.mad, now);
      now = earlier(answer, earlier(peer.manager.due(), b.manager.due()));
      peer.manager.on_time(now);
      b.manager.on_time(now);
    }
    const Event asked = b.events().at(0);
    ASSERT_EQ(b.manager.connections().accept(asked.handle, values(), {}, now), Refusal::None);
    peer.manager.take(peer.to(b.me), b.mads().at(0).mad, now);
    EXPECT_THAT(kinds_of(peer.events()), ElementsAre(EventKind::Accepted)) << int{retries};
    b.manager.unlisten(l);
  }
}

// proves: IB-140
TEST_F(Opening, AnMraDelaysTheRepetitionByItsTime) {
  listen_and_ask();
  const auto req = a.mads();
  const Duration interval = Duration::ns(std::int64_t{4096} << 20);
  EXPECT_EQ(a.manager.due(), now + interval);
  deliver(a, req[0]);
  deliver(a, req[0]);
  const auto mra = b.mads();
  ASSERT_THAT(attributes_of(mra), ElementsAre(Attribute::Mra));
  EXPECT_EQ(read_mra(mra[0].mad).which, Which::Req);
  EXPECT_EQ(read_mra(mra[0].mad).service_timeout, 22);
  deliver(b, mra[0]);
  EXPECT_EQ(a.manager.due(), now + Duration::ns(std::int64_t{4096} << 22) + interval);
  // Only a limited number of times.
  for (int i = 0; i < 40; ++i) deliver(b, mra[0]);
  EXPECT_EQ(drops(a, Drop::Unexpected), 26u);
}

TEST_F(Opening, ASlowActiveConsumerSendsAnMra) {
  connect_up_to_rep();
  const auto rep = b.mads();
  deliver(b, rep[0]);
  a.events();
  deliver(b, rep[0]);
  const auto mra = a.mads();
  ASSERT_THAT(attributes_of(mra), ElementsAre(Attribute::Mra));
  EXPECT_EQ(read_mra(mra[0].mad).which, Which::Rep);
  EXPECT_EQ(read_mra(mra[0].mad).remote_id, passive);
  const Instant before = b.manager.due();
  deliver(a, mra[0]);
  EXPECT_GT(b.manager.due(), before + Duration::s(17));
  // And once by itself.
  wait(a);
  EXPECT_THAT(attributes_of(a.mads()), ElementsAre(Attribute::Mra));
  EXPECT_TRUE(a.manager.due().is_never());
}

// A peer's codes: 0 does not mean four microseconds, nor 31 two hours.
TEST_F(Opening, WaitsAreBounded) {
  b.manager.listen({test::kService, {}, Transport::Rc, 16});
  Connect c = a.connect_to(b.me);
  c.response_timeout = 0;
  ASSERT_TRUE(a.manager.connections().connect(c, {}, now).ok());
  EXPECT_EQ(a.manager.due(), now + Duration::ms(10));
  carry(a);
  request();
  ASSERT_EQ(b.manager.connections().accept(passive, values(), {}, now), Refusal::None);
  EXPECT_EQ(b.manager.due(), now + Duration::ms(10));
  c.response_timeout = 31;
  test::End other(4);
  c.addresses = other.to(b.me);
  ASSERT_TRUE(other.manager.connections().connect(c, {}, now).ok());
  EXPECT_EQ(other.manager.due(), now + Duration::s(120));
}

}  // namespace
}  // namespace urnic::ib_cm
