// A queue pair that is destroyed after its orderly end: posted work is still sent, and the
// consumer's memory is not used any more.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/pair.h"
#include "tests/support/allocator.h"

namespace urnic::sim {
namespace {

using Kind = engine::CmEvent::Kind;
using verbs::WrOp;

constexpr std::size_t kBytes = 300'000;

// Left and right are connected. Right has memory that left may write.
struct Leaving : ::testing::Test {
  Leaving() : pair(PairOptions{}), from(kBytes), to(kBytes, 0) {
    std::iota(from.begin(), from.end(), std::uint8_t{1});
    qp = pair.left().make_qp();
    peer = pair.right().make_qp();
    source = pair.left().register_memory(from.data(), kBytes, verbs::kLocalWrite);
    sink = pair.right().register_memory(
        to.data(), kBytes,
        verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic);
    expected = from;
    EXPECT_TRUE(pair.connect(*qp, *peer));
    pair.left().events.clear();
    pair.right().events.clear();
  }
  verbs::Sge piece(std::size_t at, std::uint32_t n) {
    return {reinterpret_cast<std::uintptr_t>(from.data() + at), n, source};
  }
  void write(std::size_t at, std::uint32_t n, std::uint32_t key) {
    const verbs::Sge sges[] = {piece(at, n / 2), piece(at + n / 2, n - n / 2)};
    verbs::SendWr wr;
    wr.wr_id = at;
    wr.op = WrOp::Write;
    wr.flags = verbs::kSignaled;
    wr.sges = sges;
    wr.remote_address = reinterpret_cast<std::uintptr_t>(to.data() + at);
    wr.rkey = key;
    ASSERT_EQ(pair.left().post_send(*qp, wr, pair.now()), verbs::Post::Ok);
  }
  void write_all() {
    for (std::size_t at = 0; at < kBytes; at += 50'000) write(at, 50'000, sink);
  }
  void read(std::uint32_t flags = verbs::kSignaled, WrOp op = WrOp::Read) {
    const verbs::Sge sge = piece(0, op == WrOp::Read ? 1000 : 8);
    verbs::SendWr wr;
    wr.op = op;
    wr.flags = static_cast<std::uint8_t>(flags);
    wr.sges = {&sge, 1};
    wr.remote_address = reinterpret_cast<std::uintptr_t>(to.data());
    wr.rkey = sink;
    ASSERT_EQ(pair.left().post_send(*qp, wr, pair.now()), verbs::Post::Ok);
  }
  void disconnect() { pair.left().engine().iwarp().disconnect(*qp, pair.now()); }
  // From here on the memory may belong to another program.
  void destroy() {
    pair.left().engine().iwarp_control().destroy(qp, pair.now());
    pair.left().drain_completions();
    completed = pair.left().send_done.size();
    EXPECT_TRUE(pair.left().engine().deregister(source));
    std::fill(from.begin(), from.end(), 0xee);
  }
  std::vector<Kind> kinds(Node& n) {
    std::vector<Kind> out;
    for (const auto& e : n.events) out.push_back(e.kind);
    return out;
  }
  // One request without a response, another one after a fence, and Writes. Then the queue pair is
  // destroyed.
  void leave_behind(WrOp one, WrOp other) {
    pair.set_faults_right("loss=1");
    read(verbs::kSignaled, one);
    pair.run_for(Duration::us(100));
    read(verbs::kSignaled | verbs::kFence, other);
    write_all();
    disconnect();
    destroy();
    pair.set_faults_right("");
    ASSERT_TRUE(pair.run_until([&] { return peer_ended(); }, Duration::s(5)));
    EXPECT_TRUE(to == expected);
    pair.run_for(Duration::ms(500));
    expect_gone();
  }
  // A request names no memory while nothing of ours arrives, and the queue pair goes at once. The
  // peer hears the Terminate all the same.
  void fail_unheard() {
    const verbs::Sge none{0x1000, 8, 0x12345601};
    verbs::SendWr wr;
    wr.sges = {&none, 1};
    ASSERT_EQ(pair.left().post_send(*qp, wr, pair.now()), verbs::Post::Ok);
    ASSERT_TRUE(pair.run_until([&] { return qp->state == verbs::QpState::Error; }, Duration::s(5)));
    pair.left().events.clear();
    destroy();
    pair.set_faults_left("");
    ASSERT_TRUE(pair.run_until([&] { return peer_ended(); }, Duration::s(5)));
    EXPECT_NE(pair.right().events[0].message.find("Terminate"), std::string::npos)
        << pair.right().events[0].message;
    pair.run_for(Duration::s(1));
    expect_gone();
  }
  bool peer_ended() { return !pair.right().events.empty(); }
  // The connection has left no state here, and no event was reported.
  void expect_gone() {
    pair.left().drain_completions();
    EXPECT_EQ(pair.left().send_done.size(), completed);
    EXPECT_TRUE(pair.left().events.empty());
    const auto t = pair.left().engine().tables();
    EXPECT_EQ(t.connections, t.time_wait);
    EXPECT_EQ(t.queue_pairs, 0u);
    EXPECT_EQ(t.regions, 0u);
    EXPECT_EQ(pair.left().engine().iwarp().events().leaving(), 0u);
    EXPECT_TRUE(std::all_of(from.begin(), from.end(), [](std::uint8_t b) { return b == 0xee; }));
  }

  Pair pair;
  std::vector<std::uint8_t> from, to, expected;
  verbs::QueuePair *qp, *peer;
  std::uint32_t source = 0, sink = 0;
  std::size_t completed = 0;
};

// proves: E-25, E-50
TEST_F(Leaving, PostedWorkIsSentFromCopiesAfterDestruction) {
  write_all();
  disconnect();
  EXPECT_EQ(qp->state, verbs::QpState::Sqd);
  destroy();
  EXPECT_EQ(pair.left().engine().iwarp().events().leaving(), 1u);
  ASSERT_TRUE(pair.run_until([&] { return peer_ended(); }, Duration::s(5)));
  EXPECT_EQ(kinds(pair.right()), std::vector<Kind>{Kind::Disconnected});
  EXPECT_TRUE(to == expected);
  pair.run_for(Duration::ms(500));
  expect_gone();
}

// All data sent was lost: it is resent from copies.
// proves: E-25, E-50
TEST_F(Leaving, LostDataIsResentFromCopies) {
  pair.set_faults_left("loss=1");
  for (std::size_t at = 0; at < kBytes; at += 6000) write(at, 6000, sink);  // some have left whole
  disconnect();
  destroy();
  pair.set_faults_left("");
  ASSERT_TRUE(pair.run_until([&] { return peer_ended(); }, Duration::s(9)));
  EXPECT_EQ(kinds(pair.right()), std::vector<Kind>{Kind::Disconnected});
  EXPECT_TRUE(to == expected);
  pair.run_for(Duration::ms(500));
  expect_gone();
}

// Also data that is lost on the way and resent.
// proves: E-25, E-50
TEST_F(Leaving, PostedWorkArrivesOverALossyWire) {
  write_all();
  pair.set_faults_left("loss=0.05");
  disconnect();
  pair.run_for(Duration::us(300));
  destroy();
  pair.run_until([&] { return peer_ended(); }, Duration::s(9));
  EXPECT_EQ(kinds(pair.right()), std::vector<Kind>{Kind::Disconnected});
  EXPECT_TRUE(to == expected);
  pair.run_for(Duration::s(3));
  expect_gone();
}

// A Read, sent or not, has no memory for its data. Requests after it are sent, even after a fence.
// proves: E-50
TEST_F(Leaving, ReadsAreGivenUpButLaterRequestsAreSent) {
  leave_behind(WrOp::Read, WrOp::Read);
}

// An atomic's response has no memory either.
// proves: E-53
TEST_F(Leaving, AtomicsAreGivenUpLikeReads) {
  leave_behind(WrOp::FetchAdd, WrOp::Swap);
}

// Further data from the peer is discarded: the receives posted here belong to the consumer again.
// proves: E-50
TEST_F(Leaving, NoDataIsReceivedAfterDestruction) {
  const verbs::Sge sge = piece(0, 1000);
  ASSERT_TRUE(pair.left().post_receive(*qp, {1, {&sge, 1}}, pair.now()));
  write_all();
  disconnect();
  destroy();
  const verbs::Sge words{reinterpret_cast<std::uintptr_t>(to.data()), 500, sink};
  verbs::SendWr wr;
  wr.flags = verbs::kSignaled;
  wr.sges = {&words, 1};
  ASSERT_EQ(pair.right().post_send(*peer, wr, pair.now()), verbs::Post::Ok);
  ASSERT_TRUE(pair.run_until([&] { return peer_ended(); }, Duration::s(5)));
  pair.run_for(Duration::ms(500));
  EXPECT_TRUE(to == expected);
  expect_gone();
  pair.left().drain_completions();
  EXPECT_TRUE(pair.left().receive_done.empty());
}

// The peer closed first, and our FIN was lost.
// proves: E-50
TEST_F(Leaving, PostedWorkIsSentAfterThePeerClosedToo) {
  pair.set_faults_left("loss=1");
  pair.right().engine().iwarp().disconnect(*peer, pair.now());
  ASSERT_TRUE(pair.run_until([&] { return qp->state == verbs::QpState::Sqd; }, Duration::s(1)));
  destroy();
  pair.set_faults_left("");
  ASSERT_TRUE(pair.run_until([&] { return peer_ended(); }, Duration::s(5)));
  EXPECT_EQ(kinds(pair.right()), std::vector<Kind>{Kind::Disconnected});
  pair.run_for(Duration::ms(500));
  expect_gone();
}

// proves: E-50
TEST_F(Leaving, DestructionWithoutADisconnectIsAnAbort) {
  write_all();
  destroy();
  ASSERT_TRUE(pair.run_until([&] { return peer_ended(); }, Duration::s(5)));
  EXPECT_EQ(kinds(pair.right()), std::vector<Kind>{Kind::Failed});
  EXPECT_EQ(pair.right().events[0].code, Errc::reset);
  expect_gone();
}

// A request without the right to its memory can never be sent.
// proves: E-50
TEST_F(Leaving, WorkThatCannotBeSentEndsTheConnectionByReset) {
  write_all();
  const verbs::Sge none{0x1000, 8, 0x12345601};
  verbs::SendWr wr;
  wr.sges = {&none, 1};
  ASSERT_EQ(pair.left().post_send(*qp, wr, pair.now()), verbs::Post::Ok);
  disconnect();
  destroy();
  ASSERT_TRUE(pair.run_until([&] { return peer_ended(); }, Duration::s(5)));
  EXPECT_EQ(kinds(pair.right()), std::vector<Kind>{Kind::Failed});
  expect_gone();
}

// Posted data is copied to be sent without the consumer, up to a limit.
// proves: E-50
TEST_F(Leaving, MoreThanTheCopyLimitEndsByReset) {
  constexpr std::size_t kMostLeft = std::size_t{1} << 28;
  const std::size_t size = kMostLeft + 4096;
  void* const zeros =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  const auto big =
      pair.left().register_memory(static_cast<std::uint8_t*>(zeros), size, verbs::kLocalWrite);
  const auto post = [&](std::size_t bytes) {
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(zeros), static_cast<std::uint32_t>(bytes),
                         big};
    verbs::SendWr wr;
    wr.op = WrOp::Write;
    wr.sges = {&sge, 1};
    wr.remote_address = reinterpret_cast<std::uintptr_t>(to.data());
    wr.rkey = sink;
    ASSERT_EQ(pair.left().post_send(*qp, wr, pair.now()), verbs::Post::Ok);
    pair.left().engine().iwarp().disconnect(*qp, pair.now());
    pair.left().engine().iwarp_control().destroy(qp, pair.now());
  };
  post(kMostLeft + 1);
  EXPECT_EQ(pair.left().engine().iwarp().events().leaving(), 0u);
  ASSERT_TRUE(pair.run_until([&] { return peer_ended(); }, Duration::s(5)));
  EXPECT_EQ(kinds(pair.right()), std::vector<Kind>{Kind::Failed});
  EXPECT_EQ(pair.right().events[0].code, Errc::reset);

  qp = pair.left().make_qp();
  peer = pair.right().make_qp();
  pair.right().events.clear();
  ASSERT_TRUE(pair.connect(*qp, *peer));
  post(kMostLeft);
  EXPECT_EQ(pair.left().engine().iwarp().events().leaving(), 1u);
  munmap(zeros, size);
  EXPECT_TRUE(pair.left().engine().deregister(big));
}

// The engine does not wait long for a peer that never answers.
// proves: E-50
TEST_F(Leaving, ASilentPeerIsGivenUpSoon) {
  write_all();
  disconnect();
  pair.set_faults_right("loss=1");
  destroy();
  pair.run_for(Duration::s(12));
  expect_gone();
}

// The Terminate for the consumer's error reaches the peer even if the queue pair is destroyed at
// once: it is resent after a loss.
// proves: E-50
TEST_F(Leaving, ATerminateIsResentAfterItsQueuePairWasDestroyed) {
  pair.set_faults_left("loss=1");
  write(0, 5'000, sink);
  fail_unheard();
}

// The bytes of a Read for which the peer waits need not be sent any more.
// proves: E-50
TEST_F(Leaving, ATerminateIsSentEvenIfThePeerWaitsForAResponse) {
  const std::uint32_t lent =
      pair.left().register_memory(from.data(), kBytes, verbs::kLocalWrite | verbs::kRemoteRead);
  pair.set_faults_left("loss=1");
  for (int i = 0; i < 4; ++i) {
    const verbs::Sge into{reinterpret_cast<std::uintptr_t>(to.data()), kBytes, sink};
    verbs::SendWr wr;
    wr.op = WrOp::Read;
    wr.sges = {&into, 1};
    wr.remote_address = reinterpret_cast<std::uintptr_t>(from.data());
    wr.rkey = lent;
    ASSERT_EQ(pair.right().post_send(*peer, wr, pair.now()), verbs::Post::Ok);
  }
  pair.run_for(Duration::us(100));  // more than the congestion window allows
  ASSERT_TRUE(pair.left().engine().deregister(lent));
  fail_unheard();
}

// Without memory to copy its work, the connection ends by a RST. In no case is any state left.
// proves: E-50
TEST(LeavingWithoutMemory, ItEndsInOrderOrByReset) {
  struct ConnectionEvents : Leaving {
    void TestBody() override {}
  };
  for (std::uint64_t k = 0;; ++k) {
    SCOPED_TRACE("allocation " + std::to_string(k));
    ConnectionEvents life;
    life.write_all();
    life.disconnect();
    std::uint64_t failed = 0;
    {
      const testing::NoMemory plan(k);
      ASSERT_NO_THROW(life.pair.left().engine().iwarp_control().destroy(life.qp, life.pair.now()));
      failed = plan.failed();
    }
    life.pair.left().drain_completions();
    life.completed = life.pair.left().send_done.size();
    EXPECT_TRUE(life.pair.left().engine().deregister(life.source));
    std::fill(life.from.begin(), life.from.end(), 0xee);
    ASSERT_TRUE(life.pair.run_until([&] { return life.peer_ended(); }, Duration::s(5)));
    const bool orderly = life.kinds(life.pair.right())[0] == Kind::Disconnected;
    EXPECT_TRUE(!orderly || life.to == life.expected);
    life.pair.run_for(Duration::ms(500));
    life.expect_gone();
    EXPECT_TRUE(orderly || failed != 0);
    if (failed == 0 || HasFailure()) break;
  }
}

// ---- errors of the peer, as verbs report them

struct Faults : Leaving {};

// proves: E-50
TEST_F(Faults, AccessWithoutARightIsReportedAsAccessError) {
  write(0, 1000, 0x00beef01);
  ASSERT_TRUE(pair.run_until([&] { return pair.right().events.size() == 2; }, Duration::s(5)));
  EXPECT_EQ(kinds(pair.right()), (std::vector<Kind>{Kind::Failed, Kind::AccessError}));
  EXPECT_NE(pair.right().events[0].message.find("Terminate 1/1/"), std::string::npos);
}

// The peer must not send a Send longer than its receive.
// proves: E-50
TEST_F(Faults, AnInvalidRequestIsReportedAsRequestError) {
  ASSERT_TRUE(pair.right().post_receive(*peer, {1, {}}, pair.now()));
  const verbs::Sge sge = piece(0, 100);
  verbs::SendWr wr;
  wr.sges = {&sge, 1};
  ASSERT_EQ(pair.left().post_send(*qp, wr, pair.now()), verbs::Post::Ok);
  ASSERT_TRUE(pair.run_until([&] { return pair.right().events.size() == 2; }, Duration::s(5)));
  EXPECT_EQ(kinds(pair.right()), (std::vector<Kind>{Kind::Failed, Kind::RequestError}));
}

// proves: E-50
TEST_F(Faults, ALocalErrorIsFatalHere) {
  const verbs::Sge none{0x1000, 8, 0x12345601};
  verbs::SendWr wr;
  wr.sges = {&none, 1};
  ASSERT_EQ(pair.left().post_send(*qp, wr, pair.now()), verbs::Post::Ok);
  ASSERT_TRUE(pair.run_until([&] { return pair.left().events.size() == 2; }, Duration::s(5)));
  EXPECT_EQ(kinds(pair.left()), (std::vector<Kind>{Kind::Failed, Kind::Fatal}));
}

// The last message of the start-up is lost, but not the first Send after it: both are delivered at
// once.
// proves: E-50
TEST(EarlyData, DataBeforeEstablishedIsReportedAsSuch) {
  Pair pair{PairOptions{}};
  Node &l = pair.left(), &r = pair.right();
  verbs::QueuePair *qp = l.make_qp(), *peer = r.make_qp();
  ASSERT_TRUE(r.engine().iwarp().listen(7000, 4));
  ASSERT_TRUE(r.post_receive(*peer, {1, {}}, pair.now()));
  ASSERT_TRUE(l.engine()
                  .iwarp()
                  .connect(*qp, *SocketAddress::parse("10.0.0.2:7000"),
                           l.engine().iwarp().default_params(), pair.now())
                  .ok());
  ASSERT_TRUE(pair.run_until([&] { return !r.events.empty(); }, Duration::s(5)));
  ASSERT_EQ(r.events[0].kind, Kind::ConnectRequest);
  const auto request = r.events[0].request.id;
  r.events.clear();
  pair.set_faults_left("loss=1");
  ASSERT_TRUE(r.engine()
                  .iwarp()
                  .accept(request, *peer, r.engine().iwarp().default_params(), pair.now())
                  .ok());
  ASSERT_TRUE(pair.run_until([&] { return !l.events.empty(); }, Duration::s(5)));
  pair.run_for(Duration::ms(1));
  pair.set_faults_left("");
  ASSERT_EQ(l.post_send(*qp, {}, pair.now()), verbs::Post::Ok);
  ASSERT_TRUE(pair.run_until([&] { return r.events.size() == 2; }, Duration::s(5)));
  EXPECT_EQ(r.events[0].kind, Kind::EarlyData);
  EXPECT_EQ(r.events[1].kind, Kind::Established);
}

}  // namespace
}  // namespace urnic::sim
