// UC and UD queue pairs on two sides: the attributes of their moves, arrivals, losses, and the
// effects of a request or a receive that fails.
#include <gtest/gtest.h>

#include "roce/unreliable_ends.h"

namespace urnic::roce::test {
namespace {

using verbs::QpState;
using verbs::Service;
using verbs::Status;
using verbs::WrOp;

using UcSides = UnreliableEnds;
using UdSides = UnreliableEnds;
using UnreliableSides = UnreliableEnds;

// ---- UC

// proves: IB-98, IB-99
TEST_F(UcSides, SendsAndWritesArriveWithoutResponses) {
  up(Service::Uc);
  receive(1, 10, 4);
  receive(1, 11, 5);
  post(0, 1, {.op = WrOp::Write, .slot = 1, .length = 5000});
  post(0, 2, {.op = WrOp::SendImm, .slot = 2, .length = 3000, .immediate = 0xabcdef});
  post(0, 3, {.op = WrOp::WriteImm, .slot = 3, .length = 10, .immediate = 7});
  run();
  const auto sent = ends[0].completions(), came = ends[1].completions();
  ASSERT_EQ(sent.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sent[i].completion.wr_id, i + 1);
    EXPECT_EQ(sent[i].completion.status, Status::Success);
  }
  ASSERT_EQ(came.size(), 2u);
  EXPECT_EQ(came[0].completion.wr_id, 10u);
  EXPECT_EQ(came[0].completion.byte_len, 3000u);
  EXPECT_EQ(came[0].completion.immediate, 0xabcdefu);
  EXPECT_FALSE(came[0].completion.datagram);
  EXPECT_EQ(came[1].completion.immediate, 7u);
  EXPECT_TRUE(holds(1, 1, 0, 0, 1, 5000));
  EXPECT_TRUE(holds(1, 4, 0, 0, 2, 3000));
  EXPECT_TRUE(holds(1, 3, 0, 0, 3, 10));
  EXPECT_EQ(ends[1].side.statistics().sent, 0u);
  EXPECT_EQ(ends[0].side.statistics().unreliable.sent, 5u + 3u + 1u);
  EXPECT_EQ(ends[1].side.statistics().unreliable.taken, 5u + 3u + 1u);
}

// proves: IB-93
TEST_F(UcSides, AMessageThatLosesAPacketIsLostAndTheNextUsesItsReceive) {
  up(Service::Uc);
  receive(1, 10, 4);
  post(0, 1, {.slot = 1, .length = 3000});
  run([](unsigned n) { return n == 1; });
  EXPECT_EQ(ends[0].completions().size(), 1u) << "it has left";
  EXPECT_TRUE(ends[1].completions().empty());
  post(0, 2, {.slot = 2, .length = 2000});
  run();
  const auto came = ends[1].completions();
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(came[0].completion.wr_id, 10u);
  EXPECT_TRUE(holds(1, 4, 0, 0, 2, 2000));
  const UnreliableCounters n = ends[1].side.statistics().unreliable;
  EXPECT_EQ(n.lost_messages, 1u);
  EXPECT_EQ(n.out_of_sequence, 1u);
}

// proves: IB-110
TEST_F(UcSides, AreMovedWithoutAttributesOfResponses) {
  make(Service::Uc);
  ASSERT_EQ(move(0, QpState::Init), Modified::Ok);
  const auto change = [&](QpState to, std::uint32_t more, std::uint32_t less) {
    QpChange c = moved(service, to, pairing, 0, 9);
    c.mask = (c.mask | more) & ~less;
    return ends[0].side.modify(*qp[0], c, now);
  };
  EXPECT_EQ(change(QpState::Rtr, verbs::kQpAttrMinRnrTimer, 0), Modified::ForeignAttribute);
  EXPECT_EQ(change(QpState::Rtr, verbs::kQpAttrMaxDestRdAtomic, 0), Modified::ForeignAttribute);
  EXPECT_EQ(change(QpState::Rtr, 0, verbs::kQpAttrAv), Modified::MissingAttribute);
  EXPECT_EQ(change(QpState::Rtr, 0, 0), Modified::Ok);
  for (const std::uint32_t bit : {verbs::kQpAttrTimeout, verbs::kQpAttrRetryCount,
                                  verbs::kQpAttrRnrRetry, verbs::kQpAttrMaxRdAtomic}) {
    EXPECT_EQ(change(QpState::Rts, bit, 0), Modified::ForeignAttribute);
  }
  EXPECT_EQ(change(QpState::Rts, 0, 0), Modified::Ok);
}

// proves: IB-120
TEST_F(UcSides, TheFirstRequestInRtrIsReported) {
  make(Service::Uc);
  ready(0);
  ASSERT_EQ(move(1, QpState::Init), Modified::Ok);
  ASSERT_EQ(move(1, QpState::Rtr), Modified::Ok);
  post(0, 1, {.op = WrOp::Write, .slot = 1, .length = 10});
  run();
  EXPECT_EQ(ends[1].log.count(QpEvent::Established), 1u);
}

// proves: IB-134
TEST_F(UcSides, APacketIsDroppedInInitAndServedInRtr) {
  in_init_and_in_rtr(Service::Uc, 0);
}

// proves: IB-112
TEST_F(UcSides, InSqdAMessageThatHasBegunIsSentToItsEnd) {
  up(Service::Uc);
  run();
  post(0, 1, {.op = WrOp::Write, .slot = 1, .length = 10});
  run();
  const std::size_t before = udp.size();
  qp[0]->sq.post({.wr_id = 2, .op = WrOp::Write, .flags = verbs::kSignaled});
  QpChange sqd;
  sqd.to = QpState::Sqd;
  sqd.mask |= verbs::kQpAttrSqdNotify;
  sqd.tell_drained = true;
  ASSERT_EQ(ends[0].side.modify(*qp[0], sqd, now), Modified::Ok);
  run();
  EXPECT_EQ(udp.size(), before) << "nothing begins";
  EXPECT_EQ(ends[0].log.count(QpEvent::Drained), 1u);
  QpChange rts;
  rts.to = QpState::Rts;
  ASSERT_EQ(ends[0].side.modify(*qp[0], rts, now), Modified::Ok);
  run();
  EXPECT_EQ(udp.size(), before + 1);
  EXPECT_EQ(ends[0].completions().size(), 2u);
}

TEST_F(UcSides, PacketsFromAnotherSenderAreDropped) {
  up(Service::Uc);
  pairing.v6 = true;
  ends[0].side.destroy(std::move(qp[0]));
  qp[0] = ends[0].queue_pair({}, Service::Uc);
  ready(0);
  post(0, 1, {.op = WrOp::Write, .slot = 1, .length = 10});
  run();
  EXPECT_EQ(ends[1].side.statistics().drops.of(ib::Drop::WrongAddress), 1u);
}

// ---- UD

// proves: IB-110
TEST_F(UdSides, AreMovedWithAQkeyAndWithoutAPeer) {
  make(Service::Ud);
  QpChange c = to_init(pairing);
  EXPECT_EQ(ends[0].side.modify(*qp[0], c, now), Modified::MissingAttribute);
  c.mask |= verbs::kQpAttrQkey;
  EXPECT_EQ(ends[0].side.modify(*qp[0], c, now), Modified::ForeignAttribute);
  ASSERT_EQ(move(0, QpState::Init), Modified::Ok);
  EXPECT_EQ(context_of(*qp[0]).attributes.qkey, kQkey);
  EXPECT_EQ(ends[0].side.modify(*qp[0], to_rtr(pairing, 0, 9), now), Modified::ForeignAttribute);
  ASSERT_EQ(move(0, QpState::Rtr), Modified::Ok);
  EXPECT_EQ(ends[0].side.modify(*qp[0], to_rts(pairing, 0), now), Modified::ForeignAttribute);
  ASSERT_EQ(move(0, QpState::Rts), Modified::Ok);
  EXPECT_FALSE(ends[0].side.goes_out(*qp[0]));
}

// proves: IB-144, IB-103
TEST_F(UdSides, ADatagramFollowsItsIpHeaderAndReportsItsSender) {
  up(Service::Ud);
  std::uint64_t id = 0;
  for (const bool v6 : {false, true}) {
    SCOPED_TRACE(v6);
    std::fill_n(memory[1].begin() + 4 * kSlot, 40, 0xee);
    receive(1, ++id, 4);
    udp.clear();
    const ib::DatagramTo to{handle(0, 1, v6), qp[1]->number(), kQkey};
    post(0, id, {.op = WrOp::SendImm, .slot = 1, .length = 700, .to = to, .immediate = 5});
    run();
    const auto sent = ends[0].completions(), came = ends[1].completions();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].completion.status, Status::Success);
    ASSERT_EQ(came.size(), 1u);
    EXPECT_EQ(came[0].completion.byte_len, 740u);
    EXPECT_EQ(came[0].completion.immediate, 5u);
    EXPECT_TRUE(came[0].completion.datagram);
    EXPECT_EQ(came[0].source_qp, qp[0]->number());
    EXPECT_TRUE(holds(1, 4, 40, 0, 1, 700));
    ASSERT_EQ(udp.size(), 1u);
    const auto area = memory[1].begin() + 4 * kSlot;
    if (v6) {
      EXPECT_TRUE(std::equal(area, area + 40, udp[0].begin() + 14));
    } else {
      EXPECT_TRUE(std::all_of(area, area + 20, [](std::uint8_t b) { return b == 0xee; }));
      EXPECT_TRUE(std::equal(area + 20, area + 40, udp[0].begin() + 14));
    }
  }
  EXPECT_EQ(ends[1].side.statistics().sent, 0u) << "IB-99";
}

// proves: IB-103, IB-133
TEST_F(UdSides, AWrongQkeyIsDroppedAndTheTopBitSelectsTheOwnQkey) {
  up(Service::Ud);
  receive(1, 1, 4);
  const std::uint32_t way = handle(0, 1);
  post(0, 1, {.slot = 1, .length = 10, .to = {way, qp[1]->number(), kQkey + 1}});
  run();
  EXPECT_EQ(ends[1].side.statistics().drops.of(ib::Drop::BadQkey), 1u);
  EXPECT_TRUE(ends[1].completions().empty());
  post(0, 2, {.slot = 1, .length = 10, .to = {way, qp[1]->number(), 0x80000000}});
  run();
  EXPECT_EQ(ends[1].completions().size(), 1u);
}

// proves: IB-134
TEST_F(UdSides, APacketIsDroppedInInitAndServedInRtr) {
  in_init_and_in_rtr(Service::Ud, handle(0, 1));
}

TEST_F(UdSides, OneQueuePairSendsToManyAndOneIsItself) {
  up(Service::Ud);
  receive(0, 10, 5);
  receive(1, 11, 5);
  const std::uint32_t there = handle(0, 1), here = handle(0, 0);
  const ib::AddressVector& av = context_of(*qp[0]).attributes.av;
  EXPECT_TRUE(av.remote.is_any());
  post(0, 1, {.slot = 1, .length = 100, .to = {here, qp[0]->number(), kQkey}});
  post(0, 2, {.slot = 2, .length = 200, .to = {there, qp[1]->number(), kQkey}});
  run();
  const auto own = ends[0].completions(), came = ends[1].completions();
  ASSERT_EQ(own.size(), 3u);
  EXPECT_EQ(std::count_if(own.begin(), own.end(),
                          [](const verbs::Cqe& c) { return c.completion.receive; }),
            1);
  ASSERT_EQ(came.size(), 1u);
  EXPECT_TRUE(holds(0, 5, 40, 0, 1, 100));
  EXPECT_TRUE(holds(1, 5, 40, 0, 2, 200));
  EXPECT_EQ(udp.size(), 1u) << "the other has not been on the wire";
}

// proves: IB-101
TEST_F(UdSides, DatagramsWaitForThePathAndAreSentInOrder) {
  up(Service::Ud);
  for (std::uint64_t i = 0; i < 3; ++i) receive(1, i, 4 + static_cast<std::uint32_t>(i));
  const std::uint32_t way = handle(0, 1), own = handle(0, 0);
  post(0, 1, {.slot = 1, .length = 100, .to = {way, qp[1]->number(), kQkey}});
  post(0, 2, {.slot = 2, .length = 0, .to = {own, 0x777777, kQkey}});
  post(0, 3, {.slot = 3, .length = 300, .to = {way, qp[1]->number(), kQkey}});
  EXPECT_TRUE(ends[0].completions().empty()) << "nobody has answered for the address";
  EXPECT_EQ(ends[0].side.statistics().sent, 0u);
  run();
  const auto came = ends[1].completions();
  ASSERT_EQ(came.size(), 2u);
  EXPECT_TRUE(holds(1, 4, 40, 0, 1, 100));
  EXPECT_TRUE(holds(1, 5, 40, 0, 3, 300));
  EXPECT_EQ(ends[0].completions().size(), 3u);
  // Each has the next PSN (the BTH is at offset 42).
  ASSERT_EQ(udp.size(), 2u);
  EXPECT_EQ((load_be32(&udp[1][42 + 8]) - load_be32(&udp[0][42 + 8])) & ib::kMask24, 2u);
}

// proves: IB-98
TEST_F(UdSides, WithoutANeighborDatagramsAreLostAndOthersGoOn) {
  up(Service::Ud);
  receive(1, 1, 4);
  const std::uint32_t nobody = handle(0, 6), there = handle(0, 1);
  post(0, 1, {.slot = 1, .length = 100, .to = {nobody, 0x777, kQkey}});
  post(0, 2, {.slot = 1, .length = 100, .to = {nobody, 0x777, kQkey}});
  post(0, 3, {.slot = 2, .length = 200, .to = {there, qp[1]->number(), kQkey}});
  for (int i = 0; i < 40; ++i) {
    run();
    now = now + Duration::ms(100);
  }
  EXPECT_EQ(ends[0].side.statistics().unroutable, 2u);
  EXPECT_EQ(ends[0].completions().size(), 3u) << "done when they have left, or could not";
  ASSERT_EQ(ends[1].completions().size(), 1u);
  EXPECT_TRUE(holds(1, 4, 40, 0, 2, 200));
  // A handle without a neighbor is resolved again, and there is one now.
  SideEnd late(6, SideEnd::keyed(3));
  auto* const answering = &late;
  post(0, 4, {.slot = 1, .length = 100, .to = {nobody, 0x777, kQkey}});
  for (int i = 0; i < 40; ++i) {
    ends[0].poll(now);
    for (Bytes& frame : ends[0].sent()) answering->arrive(frame);
    answering->poll(now);
    for (Bytes& frame : answering->sent()) ends[0].arrive(frame);
    now = now + Duration::ms(100);
  }
  EXPECT_EQ(
      late.side.statistics().drops.of(ib::Drop::NoQueuePair) + ends[0].side.statistics().unroutable,
      3u);
  EXPECT_EQ(ends[0].completions().size(), 1u);
}

// proves: IB-98
TEST_F(UdSides, NothingIsSentWithAClosedHandle) {
  up(Service::Ud);
  const std::uint32_t way = handle(0, 1);
  run();
  ends[0].side.paths().close(way);
  post(0, 1, {.slot = 1, .length = 100, .to = {way, qp[1]->number(), kQkey}});
  run();
  EXPECT_EQ(ends[0].side.statistics().unroutable, 1u);
  EXPECT_EQ(ends[0].completions().size(), 1u);
  EXPECT_TRUE(udp.empty());
}

// proves: IB-98
TEST_F(UdSides, AHandleClosedDuringResolutionDoesNotBlockTheQueue) {
  up(Service::Ud);
  const std::uint32_t way = handle(0, 1);
  post(0, 1, {.slot = 1, .length = 100, .to = {way, qp[1]->number(), kQkey}});
  EXPECT_TRUE(ends[0].completions().empty());
  ends[0].side.paths().close(way);
  run();
  EXPECT_EQ(ends[0].side.statistics().unroutable, 1u);
  EXPECT_EQ(ends[0].completions().size(), 1u);
}

TEST_F(UdSides, HandlesOfInvalidAddressesAreRefused) {
  ib::AddressVector av;
  av.local = address_of(0, false);
  av.remote = address_of(1, false);
  const auto verdict = [&](auto&& spoil) {
    ib::AddressVector bad = av;
    spoil(bad);
    return ends[0].side.paths().open(bad, now).verdict;
  };
  using A = ib::AddressVector;
  EXPECT_EQ(verdict([](A&) {}), Modified::Ok);
  EXPECT_EQ(verdict([](A& a) { a.remote = address_of(1, true); }), Modified::BadValue);
  EXPECT_EQ(verdict([](A& a) { a.local = IpAddress::v4(10, 9, 0, 77); }), Modified::BadValue);
  EXPECT_EQ(verdict([](A& a) { a.remote = IpAddress::v4(224, 0, 0, 1); }), Modified::BadValue);
  EXPECT_EQ(verdict([](A& a) { a.hop_limit = 0; }), Modified::BadValue);
}

// proves: IB-100
TEST_F(UdSides, ThePathMtuIsThatOfTheNetworkAlsoAfterReset) {
  SideEnd jumbo(0, SideEnd::keyed(1), 4200);
  auto ud = jumbo.queue_pair({}, Service::Ud);
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(context_of(*ud).attributes.path_mtu, ib::PathMtu::k4096);
    QpChange reset;
    ASSERT_EQ(jumbo.side.modify(*ud, reset, now), Modified::Ok);
  }
  jumbo.side.destroy(std::move(ud));
}

TEST_F(UdSides, ATurnIsAFewPacketsAndAllAreSent) {
  up(Service::Ud);
  const std::uint32_t way = handle(0, 1);
  run();
  for (std::uint64_t i = 0; i < 100; ++i) {
    verbs::SendWr wr;
    wr.wr_id = i;
    wr.flags = verbs::kSignaled;
    ib::set_destination(&wr, {way, qp[1]->number(), kQkey});
    ASSERT_EQ(qp[0]->sq.post(wr), verbs::Post::Ok);
  }
  ends[0].side.sends_posted(*qp[0], now);
  EXPECT_EQ(ends[0].side.statistics().sent, 16u);
  run();
  EXPECT_EQ(ends[0].side.statistics().sent, 100u);
  EXPECT_EQ(ends[1].side.statistics().unreliable.refused, 100u) << "no receive (IB-102)";
  EXPECT_EQ(ends[1].side.statistics().sent, 0u);
}

// ---- what fails

// proves: IB-114
TEST_F(UnreliableSides, AFailedSendLeadsToSqeReceivesGoOnAndRtsResumes) {
  for (const Service s : {Service::Uc, Service::Ud}) {
    SCOPED_TRACE(static_cast<int>(s));
    for (int i = 0; i < 2; ++i) {
      if (qp[i]) ends[i].side.destroy(std::move(qp[i]));
    }
    up(s);
    const std::uint32_t way[2] = {handle(0, 1), handle(1, 0)};
    run();
    udp.clear();
    const auto to = [&](int from) {
      return ib::DatagramTo{way[from], qp[1 - from]->number(), kQkey};
    };
    receive(1, 20, 5);
    receive(0, 21, 5);
    post(0, 1, {.slot = 1, .length = 100, .to = to(0)});
    ASSERT_EQ(qp[0]->state, QpState::Rts);
    post(0, 2, {.slot = 1, .length = 100, .to = to(0), .lkey_error = 0x5500});
    EXPECT_EQ(qp[0]->state, QpState::Sqe);
    post(0, 3, {.slot = 1, .length = 100, .to = to(0)});
    auto done = ends[0].completions();
    ASSERT_EQ(done.size(), 3u);
    EXPECT_EQ(done[0].completion.status, Status::Success);
    EXPECT_EQ(done[1].completion.status, Status::LocalProtection);
    EXPECT_EQ(done[2].completion.status, Status::Flushed);
    EXPECT_EQ(ends[0].log.count(QpEvent::Failed), 0u);
    // Incoming packets are accepted.
    post(1, 4, {.slot = 2, .length = 50, .to = to(1)});
    run();
    done = ends[0].completions();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].completion.wr_id, 21u);
    // Posted, and not yet processed before the move: it is flushed.
    verbs::SendWr early;
    early.wr_id = 5;
    ASSERT_EQ(qp[0]->sq.post(early), verbs::Post::Ok);
    QpChange rts;
    rts.to = QpState::Rts;
    ASSERT_EQ(ends[0].side.modify(*qp[0], rts, now), Modified::Ok);
    done = ends[0].completions();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].completion.wr_id, 5u);
    EXPECT_EQ(done[0].completion.status, Status::Flushed);
    receive(1, 22, 6);
    post(0, 6, {.slot = 3, .length = 100, .to = to(0)});
    run();
    done = ends[0].completions();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].completion.status, Status::Success);
    EXPECT_EQ(ends[1].completions().size(), 3u);  // two receives and its own send
    EXPECT_EQ(udp.size(), 3u);
    EXPECT_EQ(qp[0]->state, QpState::Rts);
  }
}

// proves: IB-116
TEST_F(UnreliableSides, AFailedReceiveLeadsToErrorAlsoInSqe) {
  for (const Service s : {Service::Uc, Service::Ud}) {
    SCOPED_TRACE(static_cast<int>(s));
    for (int i = 0; i < 2; ++i) {
      if (qp[i]) ends[i].side.destroy(std::move(qp[i]));
    }
    up(s);
    ends[0].log.events.clear();
    const std::uint32_t way = handle(1, 0);
    run();
    post(0, 1, {.op = WrOp::Read, .slot = 1, .length = 8});  // neither service has this operation
    ASSERT_EQ(qp[0]->state, QpState::Sqe);
    EXPECT_EQ(ends[0].completions()[0].completion.status, Status::LocalOperation);
    receive(0, 2, 5, kSlot, 0x5500);
    receive(0, 3, 5);
    post(1, 4, {.slot = 2, .length = 50, .to = {way, qp[0]->number(), kQkey}});
    run();
    EXPECT_EQ(qp[0]->state, QpState::Error);
    const auto done = ends[0].completions();
    ASSERT_EQ(done.size(), 2u);
    EXPECT_EQ(done[0].completion.status, Status::LocalProtection);
    EXPECT_EQ(done[1].completion.status, Status::Flushed);
    EXPECT_EQ(ends[0].log.count(QpEvent::RefusedFault), 1u);
  }
}

// proves: IB-106
TEST_F(UnreliableSides, AfterAResetTheQueuePairStartsAnew) {
  for (const Service s : {Service::Uc, Service::Ud}) {
    SCOPED_TRACE(static_cast<int>(s));
    for (int i = 0; i < 2; ++i) {
      if (qp[i]) ends[i].side.destroy(std::move(qp[i]));
    }
    up(s);
    const std::uint32_t way = handle(0, 1);
    run();
    QpChange reset;
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(ends[i].side.modify(*qp[i], reset, now), Modified::Ok);
      EXPECT_EQ(context_of(*qp[i]).attributes.qkey, 0u);
      ready(i);
    }
    receive(1, 1, 5);
    post(0, 1, {.slot = 1, .length = 1000, .to = {way, qp[1]->number(), kQkey}});
    run();
    EXPECT_EQ(ends[1].completions().size(), 1u);
    EXPECT_EQ(ends[0].completions().size(), 1u);
  }
}

}  // namespace
}  // namespace urnic::roce::test
