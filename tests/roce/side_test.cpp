// Queue pairs of a side: moves and their values, ends, dropped packets.
#include "roce/side.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>

#include "base/inet_checksum.h"
#include "ib/icrc.h"
#include "roce/side_end.h"
#include "tests/support/allocator.h"

namespace urnic::roce::test {
namespace {

using verbs::QpState;

struct OneSide : ::testing::Test {
  OneSide() : qp(end.queue_pair()) {}
  ~OneSide() override {
    if (qp) end.side.destroy(std::move(qp));
  }
  Modified modify(const QpChange& c) { return end.side.modify(*qp, c, now); }
  void ready() { connect(end, *qp, pairing, 0, 0x123456, now); }
  verbs::Post post(std::uint64_t id, verbs::WrOp op = verbs::WrOp::Send) {
    verbs::SendWr wr;
    wr.wr_id = id;
    wr.op = op;
    wr.flags = verbs::kSignaled;
    const verbs::Post p = qp->sq.post(wr);
    end.side.sends_posted(*qp, now);
    return p;
  }
  // A packet from the peer, framed as the peer frames it.
  Bytes from_peer(ib::PacketHeader h, IpAddress peer = address_of(1, false)) {
    FrameConfig config{MacAddress{{2, 9, 9, 9, 9, 9}}, end.wire.interface().mac(), 0};
    config.av.local = peer;
    config.av.remote = address_of(0, false);
    const FrameHeaders headers(config);
    h.bth.dest_qp = qp->number();
    Bytes frame(headers.size() + ib::packet_bytes(h.bth.opcode, 0));
    const std::size_t n = ib::emit_packet(h, {}, frame.data() + headers.size());
    headers.finish(frame.data(), n, 0);
    return frame;
  }
  static ib::PacketHeader request(ib::Operation op, std::uint32_t psn) {
    ib::PacketHeader h;
    h.bth.opcode = ib::Opcode(ib::ServiceType::Rc, op);
    h.bth.psn = ib::Psn(psn);
    h.bth.ack_request = true;
    return h;
  }
  void give(const Bytes& frame) {
    end.arrive(frame);
    end.poll(now);
  }

  Instant now = Instant::from_ns(1);
  Pairing pairing;
  SideEnd end{0};
  std::unique_ptr<verbs::QueuePair> qp;
};

TEST_F(OneSide, IsConnectedByHand) {
  EXPECT_EQ(qp->state, QpState::Reset);
  EXPECT_EQ(modify(to_rtr(pairing, 0, 5)), Modified::NoSuchMove);
  ready();
  EXPECT_EQ(qp->state, QpState::Rts);
  const ib::QpAttributes& a = context_of(*qp).attributes;
  EXPECT_EQ(a.dest_qp, 0x123456u);
  EXPECT_EQ(a.sq_psn.value(), pairing.psn[0]);
  EXPECT_EQ(a.rq_psn.value(), pairing.psn[1]);
  EXPECT_EQ(a.path_mtu, pairing.mtu);
  EXPECT_EQ(a.responder_depth, 4);
  EXPECT_EQ(a.initiator_depth, 4);
  EXPECT_EQ(a.ack_timeout, 8);
  EXPECT_EQ(a.min_rnr_timer, 1);
  EXPECT_EQ(a.access, pairing.access);
}

// proves: IB-109
TEST_F(OneSide, InvalidValuesAreRefusedAndChangeNothing) {
  QpChange c = to_init(pairing);
  c.pkey_index = 1;
  EXPECT_EQ(modify(c), Modified::BadValue);
  c = to_init(pairing);
  c.port = 2;
  EXPECT_EQ(modify(c), Modified::BadValue);
  c = to_init(pairing);
  c.access = 0x80;
  EXPECT_EQ(modify(c), Modified::BadValue);
  EXPECT_EQ(qp->state, QpState::Reset);
  ASSERT_EQ(modify(to_init(pairing)), Modified::Ok);

  const QpChange rtr = to_rtr(pairing, 0, 9);
  const auto refused = [&](auto&& spoil) {
    QpChange bad = rtr;
    spoil(bad);
    EXPECT_EQ(modify(bad), Modified::BadValue);
    EXPECT_EQ(qp->state, QpState::Init);
    EXPECT_EQ(context_of(*qp).attributes.dest_qp, 0u);
  };
  refused([](QpChange& q) { q.dest_qp = 1u << 24; });
  refused([](QpChange& q) { q.rq_psn = 1u << 24; });
  refused([](QpChange& q) { q.path_mtu = ib::PathMtu::k2048; });
  refused([](QpChange& q) { q.path_mtu = ib::PathMtu{1000}; });
  refused([](QpChange& q) { q.min_rnr_timer = 32; });
  refused([](QpChange& q) { q.responder_depth = 17; });
  refused([](QpChange& q) { q.av.remote = address_of(1, true); });
  refused([](QpChange& q) { q.av.remote = IpAddress(); });
  refused([](QpChange& q) { q.av.hop_limit = 0; });
  refused([](QpChange& q) { q.av.local = IpAddress::v4(10, 9, 0, 77); });
  QpChange without = rtr;
  without.mask &= ~verbs::kQpAttrRqPsn;
  EXPECT_EQ(modify(without), Modified::MissingAttribute);
  QpChange foreign = rtr;
  foreign.mask |= verbs::kQpAttrSqPsn;
  EXPECT_EQ(modify(foreign), Modified::ForeignAttribute);
  foreign = rtr;
  foreign.mask |= verbs::kQpAttrAltPath;
  EXPECT_EQ(modify(foreign), Modified::Unsupported);
  ASSERT_EQ(modify(rtr), Modified::Ok);

  for (const auto spoil :
       {+[](QpChange& q) { q.sq_psn = 1u << 24; }, +[](QpChange& q) { q.initiator_depth = 17; },
        +[](QpChange& q) { q.ack_timeout = 32; }, +[](QpChange& q) { q.retry_count = 8; },
        +[](QpChange& q) { q.rnr_retry = 8; }}) {
    QpChange bad = to_rts(pairing, 0);
    spoil(bad);
    EXPECT_EQ(modify(bad), Modified::BadValue);
    EXPECT_EQ(qp->state, QpState::Rtr);
  }
}

// proves: IB-106
TEST_F(OneSide, ResetForgetsWorkCompletionsAndNumbersOfPackets) {
  ready();
  ASSERT_EQ(qp->rq.post({7, {}}), verbs::ReceiveQueue::Post::Ok);
  ASSERT_EQ(qp->sq.post({}), verbs::Post::Ok);
  end.side.fail(*qp);
  ASSERT_EQ(qp->state, QpState::Error);
  ASSERT_EQ(end.cq.size(), 2u);
  ASSERT_EQ(qp->rq.post({8, {}}), verbs::ReceiveQueue::Post::Ok);
  QpChange reset;
  EXPECT_EQ(modify(reset), Modified::Ok);
  EXPECT_FALSE(context_of(*qp).requester);
  EXPECT_TRUE(end.completions().empty());
  EXPECT_TRUE(qp->sq.empty());
  EXPECT_EQ(qp->rq.posted(), 0u);
  EXPECT_EQ(context_of(*qp).attributes.dest_qp, 0u);
  EXPECT_EQ(context_of(*qp).attributes.number, qp->number());
  give(from_peer(request(ib::Operation::SendOnly, pairing.psn[1])));
  EXPECT_EQ(end.side.statistics().drops.of(ib::Drop::WrongState), 1u);
  pairing.psn[0] = 77;
  ready();
  EXPECT_EQ(qp->state, QpState::Rts);
  EXPECT_EQ(context_of(*qp).requester.rc(), nullptr) << "before anything is sent";
  ASSERT_EQ(qp->sq.post({}), verbs::Post::Ok);
  end.side.sends_posted(*qp, now);
  EXPECT_EQ(context_of(*qp).requester.rc()->state().una.psn.value(), pairing.psn[0]);
}

// proves: IB-106, IB-120
TEST_F(OneSide, AfterResetTheFirstRequestIsReportedAgain) {
  for (std::size_t use = 1; use <= 2; ++use) {
    ASSERT_EQ(modify(to_init(pairing)), Modified::Ok);
    ASSERT_EQ(modify(to_rtr(pairing, 0, 9)), Modified::Ok);
    give(from_peer(request(ib::Operation::WriteOnly, pairing.psn[1])));
    EXPECT_EQ(end.log.count(QpEvent::Established), use);
    ASSERT_EQ(modify({}), Modified::Ok);
  }
}

// The connection manager waits for the first request of the connection it has accepted. When the
// queue pair is reset, that connection is over.
// proves: IB-106
TEST_F(OneSide, AfterResetNoConnectionWaitsForTheFirstRequest) {
  ready();
  context_of(*qp).tells_first_request = true;
  ASSERT_EQ(modify({}), Modified::Ok);
  ready();
  give(from_peer(request(ib::Operation::WriteOnly, pairing.psn[1])));
  EXPECT_EQ(end.side.statistics().responders.requests, 1u);
  EXPECT_EQ(end.log.count(QpEvent::Established), 0u);
}

// proves: IB-106
TEST_F(OneSide, AfterResetTheLastReceiveIsReportedAgain) {
  verbs::SharedReceiveQueue shared(kPd, 4, 1);
  auto sharing = end.queue_pair({.shared_rq = &shared});
  QpChange error;
  error.to = QpState::Error;
  for (int use = 1; use <= 2; ++use) {
    connect(end, *sharing, pairing, 0, 0x123456, now);
    EXPECT_EQ(end.log.last_receives, use - 1);
    ASSERT_EQ(end.side.modify(*sharing, error, now), Modified::Ok);
    EXPECT_EQ(end.log.last_receives, use);
    ASSERT_EQ(end.side.modify(*sharing, {}, now), Modified::Ok);
  }
  end.side.destroy(std::move(sharing));
}

// proves: IB-106, E-54
TEST_F(OneSide, ResetUnbindsItsWindowsOfType2) {
  Bytes bytes(100);
  const std::uint32_t region = end.memory.register_memory(kPd, bytes.data(), bytes.size(),
                                                          verbs::kLocalWrite | verbs::kBindWindow);
  const verbs::Requester us(kPd, qp->number());
  const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
  const auto bind = [&](verbs::WindowType type) {
    const std::uint32_t rkey = end.memory.allocate_window(kPd, type) + 1;
    EXPECT_TRUE(end.memory.bind({at, bytes.size(), region, rkey, verbs::kRemoteWrite}, us));
    return rkey;
  };
  const std::uint32_t one = bind(verbs::WindowType::One), two = bind(verbs::WindowType::Two);
  ready();
  ASSERT_EQ(modify({}), Modified::Ok);
  ready();
  EXPECT_NE(end.memory.find(one), nullptr);
  EXPECT_EQ(end.memory.find(two), nullptr);
}

// However creating fails for want of memory, it leaves nothing behind.
TEST_F(OneSide, CreatingWithoutMemoryGivesTheNumberBack) {
  Options two = SideEnd::keyed(3);
  two.most_queue_pairs = 2;
  SideEnd few(0, two);
  auto first = few.queue_pair();
  std::unique_ptr<verbs::QueuePair> second;
  const auto create_second = [&](std::uint64_t after) {
    const urnic::testing::NoMemory none(after);
    try {
      second = few.queue_pair();
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  };
  std::uint64_t failures = 0;
  while (!create_second(failures)) {
    ++failures;
    EXPECT_EQ(few.side.queue_pairs(), 1u);
  }
  ASSERT_NE(second, nullptr) << "no number is left after " << failures << " failures";
  EXPECT_GE(failures, 2u) << "the queue pair and its context";
  EXPECT_EQ(few.side.queue_pairs(), 2u);
  few.side.destroy(std::move(first));
  few.side.destroy(std::move(second));
  EXPECT_EQ(few.side.queue_pairs(), 0u);
}

// The peer knows our address; its answer to our ARP request was lost.
TEST_F(OneSide, APeerThatIsHeardIsAnsweredBeforeItsAddressIsResolved) {
  ready();
  ASSERT_EQ(context_of(*qp).path.route, Route::Awaited);
  (void)end.sent();
  give(from_peer(request(ib::Operation::SendOnly, pairing.psn[1]), address_of(2, false)));
  EXPECT_EQ(context_of(*qp).path.route, Route::Awaited) << "that is somebody else";
  give(from_peer(request(ib::Operation::WriteOnly, pairing.psn[1])));
  const std::vector<Bytes> sent = end.sent();
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(MacAddress::from_bytes(sent.back().data()), (MacAddress{{2, 9, 9, 9, 9, 9}}));
  // Our ARP requests stay unanswered: back to the former state.
  for (int i = 0; i < 4; ++i) end.poll(now = now + Duration::s(1));
  EXPECT_NE(context_of(*qp).path.route, Route::Known);
}

// Its middle packets are sent in runs.
// proves: S-11
TEST_F(OneSide, AResponseDoesNotWaitForTheEndOfALongMessage) {
  ready();
  std::uint32_t psn = pairing.psn[1];
  const auto ask = [&] { give(from_peer(request(ib::Operation::WriteOnly, psn++))); };
  // It answers the peer it hears, once its own address is settled.
  for (int i = 0; i < 3 && context_of(*qp).path.route != Route::Known; ++i) ask();
  ASSERT_EQ(context_of(*qp).path.route, Route::Known);
  (void)end.sent();
  std::vector<std::uint8_t> bytes(60 * 1024);
  verbs::Sge sge{reinterpret_cast<std::uintptr_t>(bytes.data()), 60 * 1024, 0};
  sge.lkey = end.memory.register_memory(kPd, bytes.data(), bytes.size(), 0);
  verbs::SendWr wr;
  wr.op = verbs::WrOp::Write;
  wr.sges = {&sge, 1};
  ASSERT_EQ(qp->sq.post(wr), verbs::Post::Ok);
  end.side.sends_posted(*qp, now);
  EXPECT_GT(end.sent().size(), 10u) << "of the message";
  ask();
  const std::vector<Bytes> sent = end.sent();
  ASSERT_GT(sent.size(), 10u) << "of the message";
  const auto opcode_of = [](const Bytes& frame) {
    return ib::Opcode(frame[14 + ib::kIpv4UdpBytes]).operation();
  };
  EXPECT_EQ(opcode_of(sent[0]), ib::Operation::Acknowledge);
  EXPECT_EQ(opcode_of(sent[1]), ib::Operation::WriteMiddle);
}

// A half is made with the first request that needs it.
TEST_F(OneSide, AnIdleQueuePairHasNoHalvesAndEachIsMadeForItsFirstRequest) {
  ready();
  const Context& c = context_of(*qp);
  EXPECT_TRUE(c.requester);
  EXPECT_TRUE(c.responder);
  EXPECT_EQ(c.requester.rc(), nullptr);
  EXPECT_EQ(c.responder.rc(), nullptr);
  give(from_peer(request(ib::Operation::WriteOnly, pairing.psn[1])));
  EXPECT_NE(c.responder.rc(), nullptr);
  EXPECT_EQ(c.requester.rc(), nullptr) << "only receives";
  ASSERT_EQ(post(1), verbs::Post::Ok);
  EXPECT_NE(c.requester.rc(), nullptr);
}

// proves: IB-117
TEST_F(OneSide, PostedRequestsThatWereNeverSentAreFlushed) {
  ready();
  ASSERT_EQ(qp->sq.post({}), verbs::Post::Ok);
  ASSERT_TRUE(end.side.fail(*qp));
  ASSERT_EQ(context_of(*qp).requester.rc(), nullptr);
  const auto done = end.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].completion.status, verbs::Status::Flushed);
}

// proves: IB-117
TEST_F(OneSide, ErrorFlushesBothQueuesAndWhateverIsPostedLater) {
  ASSERT_EQ(modify(to_init(pairing)), Modified::Ok);
  ASSERT_EQ(qp->rq.post({1, {}}), verbs::ReceiveQueue::Post::Ok);
  ASSERT_EQ(qp->rq.post({2, {}}), verbs::ReceiveQueue::Post::Ok);
  QpChange error;
  error.to = QpState::Error;
  ASSERT_EQ(modify(error), Modified::Ok);
  post(3);
  ASSERT_EQ(qp->rq.post({4, {}}), verbs::ReceiveQueue::Post::Ok);
  end.side.receives_posted(*qp, now);
  const auto all = end.completions();
  ASSERT_EQ(all.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(all[i].completion.wr_id, i + 1);
    EXPECT_EQ(all[i].completion.status, verbs::Status::Flushed);
    EXPECT_EQ(all[i].completion.receive, i != 2);
    EXPECT_EQ(all[i].qp_number, qp->number());
  }
  EXPECT_EQ(end.side.statistics().sent, 0u);
}

// proves: IB-117
TEST_F(OneSide, PacketsInErrorAreDropped) {
  ready();
  ASSERT_EQ(qp->rq.post({1, {}}), verbs::ReceiveQueue::Post::Ok);
  QpChange error;
  error.to = QpState::Error;
  ASSERT_EQ(modify(error), Modified::Ok);
  give(from_peer(request(ib::Operation::SendOnly, pairing.psn[1])));
  EXPECT_EQ(end.side.statistics().drops.of(ib::Drop::WrongState), 1u);
  EXPECT_EQ(end.side.statistics().responders.rnr_naks, 0u);
  EXPECT_EQ(end.side.statistics().responders.requests, 0u);
  EXPECT_EQ(end.log.count(QpEvent::Established), 0u);
  EXPECT_EQ(end.completions().size(), 1u);
}

// A queue pair may stay in Error for as long as its program likes.
// proves: S-8
TEST_F(OneSide, MemoryOfKeptPacketsIsReturnedInError) {
  Options options = SideEnd::keyed(1);
  options.loss.type = ib::ConnectionType::Fast;
  SideEnd fast{0, options};
  auto mine = fast.queue_pair();
  const auto keep_one = [&] {
    connect(fast, *mine, pairing, 0, 0x123456, now);
    Bytes frame = from_peer(request(ib::Operation::SendOnly, pairing.psn[1] + 1));
    store_be32(frame.data() + 42 + 4, mine->number());
    ib::seal(ByteView(frame).subspan(14, 28), MutBytes(frame).subspan(42));
    fast.arrive(frame);
    fast.poll(now);
    EXPECT_GT(fast.side.held_bytes(), 0u);
  };
  const auto move_to = [&](QpState to) {
    QpChange change;
    change.to = to;
    EXPECT_EQ(fast.side.modify(*mine, change, now), Modified::Ok);
  };
  keep_one();
  move_to(QpState::Error);
  EXPECT_EQ(fast.side.held_bytes(), 0u);
  move_to(QpState::Reset);
  keep_one();
  EXPECT_TRUE(fast.side.fail(*mine));
  EXPECT_EQ(fast.side.held_bytes(), 0u);
  move_to(QpState::Reset);
  keep_one();
  move_to(QpState::Reset);
  EXPECT_EQ(fast.side.held_bytes(), 0u);
  keep_one();
  fast.side.destroy(std::move(mine));
  EXPECT_EQ(fast.side.held_bytes(), 0u);
}

// proves: IB-120
TEST_F(OneSide, RequestsAreDroppedInInitAndServedAndReportedInRtr) {
  ASSERT_EQ(modify(to_init(pairing)), Modified::Ok);
  ASSERT_EQ(qp->rq.post({1, {}}), verbs::ReceiveQueue::Post::Ok);
  const Bytes send = from_peer(request(ib::Operation::SendOnly, pairing.psn[1]));
  give(send);
  EXPECT_EQ(end.side.statistics().drops.of(ib::Drop::WrongState), 1u);
  EXPECT_EQ(qp->rq.posted(), 1u);
  ASSERT_EQ(modify(to_rtr(pairing, 0, 9)), Modified::Ok);
  EXPECT_FALSE(verbs::may_post_send(qp->state));
  give(send);
  ASSERT_EQ(end.completions().size(), 1u);
  EXPECT_EQ(end.log.count(QpEvent::Established), 1u);
  EXPECT_EQ(end.side.statistics().responders.requests, 1u);
  give(from_peer(request(ib::Operation::WriteOnly, pairing.psn[1] + 1)));  // no second event
  EXPECT_EQ(end.side.statistics().responders.requests, 2u);
  EXPECT_EQ(end.log.count(QpEvent::Established), 1u);
}

// proves: IB-2
TEST_F(OneSide, ADroppedPacketIsCountedByReasonAndChangesNothing) {
  ready();
  ASSERT_EQ(qp->rq.post({1, {}}), verbs::ReceiveQueue::Post::Ok);
  const ib::PacketHeader h = request(ib::Operation::SendOnly, pairing.psn[1]);
  const Bytes good = from_peer(h);
  const auto reseal = [](Bytes* f) {
    ib::seal(ByteView(*f).subspan(14, 28), MutBytes(*f).subspan(42));
  };
  Bytes bad = good;
  bad.back() ^= 1;
  give(bad);
  bad = good;
  bad[14 + 20 + 5] ^= 4;  // UDP length
  give(bad);
  bad = good;
  bad[42 + 1] |= 1;  // TVer
  reseal(&bad);
  give(bad);
  bad = good;
  bad[42 + 7] ^= 1;  // QPN
  reseal(&bad);
  give(bad);
  bad = good;
  bad[42 + 3] ^= 1;  // P_Key
  reseal(&bad);
  give(bad);
  bad = good;
  bad[42] |= 0x20;  // UC
  reseal(&bad);
  give(bad);
  give(from_peer(h, IpAddress::v4(10, 9, 0, 9)));
  const ib::DropCounters drops = end.side.statistics().drops;
  EXPECT_EQ(drops.of(ib::Drop::BadIcrc), 1u);
  EXPECT_EQ(drops.of(ib::Drop::Malformed), 1u);
  EXPECT_EQ(drops.of(ib::Drop::BadVersion), 1u);
  EXPECT_EQ(drops.of(ib::Drop::NoQueuePair), 1u);
  EXPECT_EQ(drops.of(ib::Drop::BadPkey), 1u);
  EXPECT_EQ(drops.of(ib::Drop::WrongService), 1u);
  EXPECT_EQ(drops.of(ib::Drop::WrongAddress), 1u);
  EXPECT_EQ(end.side.statistics().responders.requests, 0u);
  EXPECT_TRUE(end.completions().empty());
  give(good);
  EXPECT_EQ(end.side.statistics().responders.requests, 1u);
  EXPECT_EQ(end.completions().size(), 1u);
}

// Ports may deliver a frame in two pieces.
// proves: IB-1
TEST_F(OneSide, FramesInTwoPiecesAreJoinedBeforeTheyAreChecked) {
  ready();
  Bytes bytes = from_peer(request(ib::Operation::WriteOnly, pairing.psn[1]));
  for (const std::size_t cut : {42u, 54u, 58u}) {
    port::Frame frame{};
    frame.data[0] = bytes.data();
    frame.data[1] = bytes.data() + cut;
    frame.len[0] = static_cast<std::uint32_t>(cut);
    frame.len[1] = static_cast<std::uint32_t>(bytes.size() - cut);
    net::FrameHead head;
    head.copy(frame);
    head.copy_whole(frame);
    head.classify();
    Arrived a;
    ASSERT_TRUE(end.side.stage(frame, head, &a));
    end.side.process(head, a, now);
  }
  const Statistics s = end.side.statistics();
  EXPECT_EQ(s.responders.requests, 1u);
  EXPECT_EQ(s.responders.duplicates, 2u);
  EXPECT_EQ(s.drops.of(ib::Drop::BadIcrc), 0u);
}

// A socket does not report the identification that the ICRC was computed with; a frame has it.
// proves: IB-1
TEST_F(OneSide, AHiddenIdentificationIsFoundOnlyForSocketFrames) {
  ready();
  Bytes bytes = from_peer(request(ib::Operation::WriteOnly, pairing.psn[1]));
  bytes[14 + 4] = 0x12;  // the identification it was sent with
  ib::seal(ByteView(bytes).subspan(14, 28), MutBytes(bytes).subspan(42));
  bytes[14 + 4] = 0;  // the one that the socket reports
  bytes[14 + 10] = bytes[14 + 11] = 0;
  store_be16(&bytes[14 + 10], inet_checksum(inet_sum_words(&bytes[14], 20)));
  for (const auto csum : {URNIC_CSUM_UNKNOWN, URNIC_CSUM_SOCKET}) {
    port::Frame frame{};
    frame.data[0] = bytes.data();
    frame.len[0] = static_cast<std::uint32_t>(bytes.size());
    frame.csum = csum;
    net::FrameHead head;
    head.copy(frame);
    head.copy_whole(frame);
    head.classify();
    Arrived a;
    ASSERT_TRUE(end.side.stage(frame, head, &a));
    end.side.process(head, a, now);
    const Statistics s = end.side.statistics();
    EXPECT_EQ(s.drops.of(ib::Drop::BadIcrc), 1u);
    EXPECT_EQ(s.responders.requests, csum == URNIC_CSUM_SOCKET ? 1u : 0u);
  }
}

TEST_F(OneSide, PacketsToADestroyedQueuePairAreDropped) {
  ready();
  const Bytes send = from_peer(request(ib::Operation::SendOnly, pairing.psn[1]));
  give(send);
  const std::uint64_t rnr = end.side.statistics().responders.rnr_naks;
  end.side.destroy(std::move(qp));
  EXPECT_EQ(end.side.queue_pairs(), 0u);
  qp = end.queue_pair();
  give(send);
  EXPECT_EQ(end.side.statistics().drops.of(ib::Drop::NoQueuePair), 1u);
  EXPECT_EQ(end.side.statistics().responders.rnr_naks, rnr) << "what it counted is kept";
  EXPECT_EQ(end.side.statistics().received, 2u);
}

// Without a neighbor, requests are lost and cost retries until none is left.
// proves: IB-71
TEST_F(OneSide, AnUnreachablePeerEndsInRetryExceeded) {
  pairing.retry_count = 1;
  ready();
  post(1);
  for (int i = 0; i < 10000 && qp->state == QpState::Rts && !end.next().is_never(); ++i) {
    now = std::max(now, end.next());
    end.poll(now);
    end.sent();
  }
  const auto all = end.completions();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].completion.status, verbs::Status::RetryExceeded);
  EXPECT_EQ(qp->state, QpState::Error);
  EXPECT_EQ(end.side.statistics().unroutable, 2u);
  EXPECT_EQ(end.side.statistics().sent, 0u);
}

// The peer's packets arrive, but no route leads back to it.
TEST_F(OneSide, ResponsesWithoutARouteAreDroppedAndCounted) {
  Bytes bytes(5 * 1024);
  const std::uint32_t key = end.memory.register_memory(kPd, bytes.data(), bytes.size(),
                                                       verbs::kLocalWrite | verbs::kRemoteRead);
  const IpAddress peer = IpAddress::v4(192, 0, 2, 1);
  QpChange rtr = to_rtr(pairing, 0, 9);
  rtr.av.remote = peer;
  ASSERT_EQ(modify(to_init(pairing)), Modified::Ok);
  ASSERT_EQ(modify(rtr), Modified::Ok);
  give(from_peer(request(ib::Operation::WriteOnly, pairing.psn[1]), peer));
  EXPECT_EQ(end.side.statistics().responders.requests, 1u);
  EXPECT_EQ(end.side.statistics().unroutable, 1u) << "its ACK";
  ib::PacketHeader read = request(ib::Operation::ReadRequest, pairing.psn[1] + 1);
  read.reth = {reinterpret_cast<std::uintptr_t>(bytes.data()), key, 5 * 1024};
  give(from_peer(read, peer));
  EXPECT_EQ(end.side.statistics().unroutable, 6u) << "five responses";
  EXPECT_FALSE(context_of(*qp).responder.rc()->due());
  end.poll(now);
  EXPECT_EQ(end.side.statistics().unroutable, 6u);
  EXPECT_EQ(end.side.statistics().sent, 0u);
}

}  // namespace
}  // namespace urnic::roce::test
