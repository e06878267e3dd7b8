// RoCE's side in an engine, beside iWARP's: frames of each, queue pair numbers, reports of
// failures, and turns.
#include <gtest/gtest.h>

#include <algorithm>

#include "ib/packet.h"
#include "port/memory_port.h"
#include "roce/frame.h"
#include "tests/roce/engine_ends.h"

namespace urnic::test {
namespace {

using verbs::QpState;
using verbs::Status;
using verbs::WrOp;

using RoceEngine = RoceEnds;

// ---- turns

// One long message each: neither waits for the end of the other, though the port has little room.
// proves: E-51
TEST(RoceTurns, NeitherTransportMonopolizesThePort) {
  auto [a, b] = port::make_memory_pair({.max_frame = 1518, .ring = 8});
  engine::Options options;
  options.speaks_roce = true;
  options.mtu = 1500;
  options.addresses = {"10.0.0.1/24"};
  sim::Node one(options, std::move(a));
  options.addresses = {"10.0.0.2/24"};
  options.seed = 2;
  sim::Node two(options, std::move(b));
  Instant now = Instant::from_ns(1000);
  const auto pass = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      now = now + Duration::us(20);
      one.engine().poll(now);
      two.engine().poll(now);
    }
  };
  verbs::QueuePair* roce[2] = {one.make_roce_qp(), two.make_roce_qp()};
  connect(one, *roce[0], {}, 0, roce[1]->number(), 1, now);
  connect(two, *roce[1], {}, 1, roce[0]->number(), 0, now);
  verbs::QueuePair* stream[2] = {one.make_qp(), two.make_qp()};
  ASSERT_TRUE(two.engine().iwarp().listen(7000, 1));
  ASSERT_TRUE(one.engine().iwarp().connect(*stream[0], *SocketAddress::parse("10.0.0.2:7000"),
                                           one.engine().iwarp().default_params(), now));
  for (int i = 0; i < 1000 && stream[0]->state != QpState::Rts; ++i) {
    pass(1);
    if (two.events.empty() || two.events.front().kind != engine::CmEvent::Kind::ConnectRequest) {
      continue;
    }
    ASSERT_TRUE(two.engine().iwarp().accept(two.events.front().request.id, *stream[1],
                                            two.engine().iwarp().default_params(), now));
    two.events.clear();
  }
  ASSERT_EQ(stream[0]->state, QpState::Rts);

  constexpr std::uint32_t kLong = 4u << 20;
  Room from(one, kLong, 1), to[2] = {Room(two, kLong, 2), Room(two, kLong, 3)};
  const verbs::Sge sge{from.at(), kLong, from.key};
  verbs::SendWr wr;
  wr.op = WrOp::Write;
  wr.flags = verbs::kSignaled;
  wr.sges = {&sge, 1};
  for (int i = 0; i < 2; ++i) {
    wr.remote_address = to[i].at();
    wr.rkey = to[i].key;
    ASSERT_EQ(one.post_send(i == 0 ? *roce[0] : *stream[0], wr, now), verbs::Post::Ok);
  }
  const auto arrived = [&](int i) {
    std::size_t n = 0;
    for (std::size_t at = 0; at < kLong; at += 1000) n += to[i].bytes[at] == from.bytes[at];
    return n * 1000;
  };
  while (one.send_done.empty()) {
    pass(50);
    one.drain_completions();
  }
  EXPECT_GT(arrived(0), kLong / 5) << "of RoCE, when the first was through";
  EXPECT_GT(arrived(1), kLong / 5) << "of iWARP";
  for (int i = 0; i < 4000 && one.send_done.size() < 2; ++i) {
    pass(50);
    one.drain_completions();
  }
  ASSERT_EQ(one.send_done.size(), 2u);
  EXPECT_EQ(to[0].bytes, from.bytes);
  EXPECT_EQ(to[1].bytes, from.bytes);
}

// ---- frames

// An engine alone, whose port's other end is the test.
struct Alone {
  explicit Alone(engine::Options o) {
    auto [a, b] = port::make_memory_pair({.max_frame = 1518});
    o.addresses = {"10.0.0.1/24"};
    o.mtu = 1500;
    wire = std::move(b);
    node = std::make_unique<sim::Node>(o, std::move(a));
    node->engine().poll(now);
  }
  roce::Statistics statistics() { return node->engine().roce().statistics(); }
  std::uint64_t dropped(net::DropReason r) {
    return node->engine().interface().counters().dropped_by(r);
  }
  void arrive(const IpAddress& from, const IpAddress& to) {
    roce::FrameConfig config;
    config.source = MacAddress{{2, 9, 9, 9, 9, 9}};
    config.destination = node->engine().interface().mac();
    config.av.local = from;
    config.av.remote = to;
    const roce::FrameHeaders headers(config);
    ib::PacketHeader h;
    h.bth.opcode = ib::Opcode(ib::ServiceType::Rc, ib::Operation::SendOnly);
    h.bth.dest_qp = 0x777;
    port::Frame f;
    ASSERT_EQ(wire.tx_reserve(0, 200, &f, 1), 1u);
    const std::size_t n = ib::emit_packet(h, {}, f.data[0] + headers.size());
    f.len[0] = static_cast<std::uint32_t>(headers.finish(f.data[0], n, 0));
    f.len[1] = 0;
    wire.tx_commit(0, &f, 1);
    node->engine().poll(now);
  }
  Instant now = Instant::from_ns(1000);
  port::Port wire;
  std::unique_ptr<sim::Node> node;
};

const IpAddress kUs = address_of(0), kPeer = address_of(1), kOther = IpAddress::v4(10, 0, 0, 99);

engine::Options speaks(bool iwarp, bool roce) {
  engine::Options o;
  o.speaks_iwarp = iwarp;
  o.speaks_roce = roce;
  return o;
}

TEST(RoceFrames, AreAcceptedByAnEngineWithRoce) {
  Alone e(speaks(true, true));
  e.arrive(kPeer, kUs);
  EXPECT_EQ(e.statistics().received, 1u);
  EXPECT_EQ(e.statistics().drops.of(ib::Drop::NoQueuePair), 1u);
}

// proves: IB-2
TEST(RoceFrames, AreDroppedByAnEngineWithoutRoce) {
  Alone e(speaks(true, false));
  e.arrive(kPeer, kUs);
  EXPECT_EQ(e.statistics().received, 0u);
}

TEST(RoceFrames, ToOthersOrFromAnOwnAddressAreDroppedBeforeParsing) {
  Alone e(speaks(true, true));
  e.arrive(kPeer, kOther);
  EXPECT_EQ(e.dropped(net::DropReason::NotForUs), 1u);
  e.arrive(kUs, kUs);
  EXPECT_EQ(e.dropped(net::DropReason::Source), 1u) << "nobody on the wire has our address (E-46)";
  EXPECT_EQ(e.statistics().received, 0u);
}

// proves: IB-2
TEST_F(RoceEngine, ATcpSegmentIsDroppedByAnEngineWithRoceOnly) {
  sim::PairOptions options = both();
  options.right.speaks_iwarp = false;
  up(options);
  verbs::QueuePair* const stream = pair->left().make_qp();
  ASSERT_TRUE(pair->right().engine().iwarp().listen(7000, 1));
  engine::ConnectParams params = pair->left().engine().iwarp().default_params();
  params.timeout = Duration::s(1);
  ASSERT_TRUE(pair->left().engine().iwarp().connect(*stream, *SocketAddress::parse("10.0.0.2:7000"),
                                                    params, pair->now()));
  pair->run_for(Duration::s(5));
  EXPECT_TRUE(pair->right().events.empty());
  ASSERT_FALSE(pair->left().events.empty());
  EXPECT_EQ(pair->left().events.back().kind, engine::CmEvent::Kind::ConnectFailed);
  EXPECT_EQ(pair->left().events.back().code, Errc::timed_out) << "not a word came back";
  rooms(4096);
  post(*left, WrOp::Write, 1, 1000, 0);
  ASSERT_TRUE(run(1));
  EXPECT_EQ(pair->left().send_done[0].completion.status, Status::Success);
}

// ---- numbers

// Two engines with the same seed choose the same numbers.
// proves: E-49
TEST_F(RoceEngine, NoTwoQueuePairsHaveTheSameNumber) {
  std::vector<std::uint32_t> of_roce, of_iwarp;
  {
    sim::Pair first(both());
    for (int i = 0; i < 5; ++i) of_roce.push_back(first.left().make_roce_qp()->number());
    for (int i = 0; i < 5; ++i) of_iwarp.push_back(first.left().make_qp()->number());
  }
  sim::Pair second(both());
  sim::Node& node = second.left();
  verbs::CompletionQueue cq(16);
  const auto chosen = [&](std::uint32_t number) {
    ddp::StreamConfig config;
    config.id = number;
    config.pd = node.pd;
    return node.engine().iwarp_control().create_qp(config, &cq, &cq);
  };
  std::vector<std::uint32_t> all;
  for (const std::uint32_t number : of_roce) {
    ASSERT_NE(chosen(number), nullptr);
    all.push_back(number);
  }
  for (int i = 0; i < 20; ++i) {
    verbs::QueuePair* const qp = node.make_roce_qp();
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(std::count(all.begin(), all.end(), qp->number()), 0);
    all.push_back(qp->number());
    EXPECT_EQ(chosen(qp->number()), nullptr) << "taken by RoCE";
  }
  // A number that is free again can be requested.
  verbs::QueuePair* const qp = node.make_roce_qp();
  const std::uint32_t free = qp->number();
  qp->control->destroy(qp, second.now());
  EXPECT_NE(chosen(free), nullptr);
}

// ---- failures of a queue pair

// proves: IB-71
TEST_F(RoceEngine, ALostPacketIsResentAfterTheTimeout) {
  up();
  rooms(4096);
  post(*left, WrOp::Write, 1, 10, 0);
  ASSERT_TRUE(run(1));
  pair->set_faults_left("loss=1");
  post(*left, WrOp::Write, 2, 10, 0);
  pair->run_for(Duration::us(1500));
  pair->set_faults_left("");
  ASSERT_TRUE(run(2, 0, Duration::ms(20))) << "a timer of 4 ms";
  EXPECT_EQ(pair->left().send_done[1].completion.status, Status::Success);
  EXPECT_GE(pair->left().engine().roce().statistics().requesters.timeouts, 1u);
}

TEST_F(RoceEngine, ASilentPeerEndsTheQueuePairAndIsReported) {
  up();
  rooms(4096);
  pair->set_faults_left("loss=1");
  post(*left, WrOp::Write, 1, 10, 0);
  post(*left, WrOp::Write, 2, 10, 0);
  ASSERT_TRUE(run(2));
  EXPECT_EQ(pair->left().send_done[0].completion.status, Status::RetryExceeded);
  EXPECT_EQ(pair->left().send_done[1].completion.status, Status::Flushed);
  EXPECT_EQ(left->state, QpState::Error);
  ASSERT_EQ(pair->left().events.size(), 1u);
  EXPECT_EQ(pair->left().events[0].qp, left);
  EXPECT_EQ(pair->left().events[0].kind, verbs::CmEvent::Kind::Failed);
}

// proves: IB-76
TEST_F(RoceEngine, WorkSucceedsOnceTheAddressIsResolved) {
  sim::PairOptions options = both();
  options.faults_left = options.faults_right = "loss=1";  // not even ARP gets through
  ByHand h;
  h.ack_timeout = 18;  // a second
  h.retry_count = 7;
  up(options, h);
  rooms(4096);
  post(*left, WrOp::Write, 1, 10, 0);
  pair->run_for(Duration::s(5));
  EXPECT_EQ(left->state, QpState::Rts);
  EXPECT_GE(pair->left().engine().roce().statistics().unroutable, 1u);
  pair->set_faults_left("");
  pair->set_faults_right("");
  ASSERT_TRUE(run(1));
  EXPECT_EQ(pair->left().send_done[0].completion.status, Status::Success);
}

// proves: E-43
TEST_F(RoceEngine, WithinOneDeviceFramesAreLoopedBack) {
  sim::Pair only(both());
  sim::Node& node = only.left();
  verbs::QueuePair *one = node.make_roce_qp(), *two = node.make_roce_qp();
  ByHand h, back;
  std::swap(back.psn[0], back.psn[1]);
  connect(node, *one, h, 0, two->number(), 0, only.now());
  connect(node, *two, back, 0, one->number(), 0, only.now());
  Room from(node, 10000, 1), to(node, 10000, 2);
  const verbs::Sge sge{from.at(), 10000, from.key};
  const auto wr = request(WrOp::Write, 1, sge, to.at(), to.key);
  ASSERT_EQ(node.post_send(*one, wr, only.now()), verbs::Post::Ok);
  only.run_until([&] { return node.drain_completions(), !node.send_done.empty(); },
                 Duration::s(10));
  ASSERT_EQ(node.send_done.size(), 1u);
  EXPECT_EQ(node.send_done[0].completion.status, Status::Success);
  EXPECT_EQ(to.bytes, from.bytes);
  // They do not depend on the link.
  node.engine().roce_control().give_up_link("it is gone", only.now());
  EXPECT_EQ(one->state, QpState::Rts);
  EXPECT_TRUE(node.events.empty());
}

// proves: E-43
TEST_F(RoceEngine, GivingUpTheLinkEndsQueuePairsWithAPeerBeyondIt) {
  up();
  verbs::QueuePair* const fresh = pair->left().make_roce_qp();
  pair->left().engine().roce_control().give_up_link("the link is gone", pair->now());
  EXPECT_EQ(left->state, QpState::Error);
  EXPECT_EQ(fresh->state, QpState::Reset) << "has none";
  ASSERT_EQ(pair->left().events.size(), 1u);
  EXPECT_EQ(pair->left().events[0].qp, left);
  EXPECT_EQ(pair->left().events[0].message, "the link is gone");
}

// The completion queues of a node are shared by all its queue pairs.
// proves: E-47
TEST_F(RoceEngine, AnOverrunByOneTransportEndsTheQueuePairsOfBoth) {
  sim::PairOptions options = both();
  options.completions = 4;
  up(options);
  verbs::QueuePair* const stream = pair->left().make_qp();
  ASSERT_TRUE(pair->connect(*stream, *pair->right().make_qp()));
  verbs::QueuePair* const fresh = pair->left().make_roce_qp();
  verbs::QueuePair* const ready = pair->left().make_roce_qp();
  ASSERT_EQ(pair->left().engine().roce_control().move(*ready, to_init(), pair->now()),
            roce::Modified::Ok);
  rooms(4096);
  for (std::uint64_t i = 0; i < 6; ++i) post(*left, WrOp::Write, i, 10, 0);
  pair->run_for(Duration::ms(1));
  EXPECT_EQ(left->state, QpState::Error);
  EXPECT_EQ(stream->state, QpState::Error);
  EXPECT_EQ(ready->state, QpState::Error) << "from Init";
  EXPECT_EQ(fresh->state, QpState::Reset) << "nothing of it can be lost";
  const auto& events = pair->left().events;
  for (const verbs::QueuePair* qp : {left, ready}) {
    EXPECT_EQ(std::count_if(events.begin(), events.end(),
                            [&](const verbs::CmEvent& e) {
                              return e.qp == qp && e.kind == verbs::CmEvent::Kind::Failed &&
                                     e.message.find("overrun") != std::string::npos;
                            }),
              1);
  }
}

// proves: E-47
TEST_F(RoceEngine, APostThatOverrunsAQueueEndsOtherQueuePairsOnItAtOnce) {
  sim::PairOptions options = both();
  options.completions = 2;
  up(options);
  rooms(4096);
  ASSERT_EQ(pair->left().engine().roce_control().move(
                *left, {.to = QpState::Error, .mask = verbs::kQpAttrState}, pair->now()),
            roce::Modified::Ok);
  verbs::QueuePair* const other = pair->left().make_qp();
  for (std::uint64_t i = 0; i < 3; ++i) post(*left, WrOp::Write, i, 10, 0);
  EXPECT_EQ(other->state, QpState::Error) << "it is on that queue too";
}

// Modify QP may overrun a queue with its completions: the next poll comes soon, and ends the queue
// pairs on it.
// proves: E-47
TEST_F(RoceEngine, AnOverrunByModifyIsHandledByTheNextPoll) {
  sim::PairOptions options = both();
  options.completions = 2;
  up(options);
  verbs::QueuePair* const other = pair->right().make_roce_qp();
  ASSERT_EQ(pair->right().engine().roce_control().move(*other, to_init(), pair->now()),
            roce::Modified::Ok);
  rooms(4096);
  for (std::uint64_t i = 0; i < 3; ++i) receive(*right, i, 0, 10);
  ASSERT_EQ(pair->right().engine().roce_control().move(
                *right, {.to = QpState::Error, .mask = verbs::kQpAttrState}, pair->now()),
            roce::Modified::Ok);
  EXPECT_EQ(pair->right().engine().next_deadline(), Instant());
  pair->right().engine().poll(pair->now());
  EXPECT_EQ(other->state, QpState::Error);
}

// E-25 is about resources of iWARP; a RoCE queue pair in between is skipped.
TEST_F(RoceEngine, MemoryInUseByAConnectionIsDeregisteredWithQueuePairsOfBothTransports) {
  up();
  verbs::QueuePair* const stream = pair->left().make_qp();
  ASSERT_TRUE(pair->connect(*stream, *pair->right().make_qp()));
  rooms(4096);
  const Bytes was = ours->bytes;
  pair->set_faults_left("loss=1");
  post(*stream, WrOp::Write, 1, 1000, 0);
  pair->run_for(Duration::us(100));
  ASSERT_TRUE(pair->left().engine().deregister(ours->key));
  std::fill(ours->bytes.begin(), ours->bytes.end(), 0);
  pair->set_faults_left("");
  ASSERT_TRUE(run(1));
  EXPECT_EQ(std::memcmp(theirs->bytes.data(), was.data(), 1000), 0);
}

TEST_F(RoceEngine, AQueuePairMayBeDestroyedInTheMiddleOfItsWork) {
  up();
  rooms(1 << 20);
  post(*left, WrOp::Write, 1, 1 << 20, 0);
  ASSERT_TRUE(pair->run_until(
      [&] { return std::memcmp(&theirs->bytes[99992], &ours->bytes[99992], 8) == 0; },
      Duration::s(1)));
  left->control->destroy(left, pair->now());
  right->control->destroy(right, pair->now());
  const Bytes there = theirs->bytes;
  std::fill(ours->bytes.begin(), ours->bytes.end(), 0);
  pair->run_for(Duration::s(1));
  EXPECT_EQ(theirs->bytes, there) << "nothing is placed any more";
  EXPECT_EQ(pair->left().engine().roce().queue_pairs(), 0u);
  EXPECT_EQ(pair->left().engine().tables().queue_pairs, 0u);
  pair->left().drain_completions();
  EXPECT_TRUE(pair->left().send_done.empty());
}

}  // namespace
}  // namespace urnic::test
