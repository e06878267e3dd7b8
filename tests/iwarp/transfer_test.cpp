// First transfers between two engines in virtual time: start-up, Write, Send, Read, close.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "base/rng.h"
#include "sim/pair.h"

namespace urnic::sim {
namespace {

using verbs::Sge;
using verbs::WrOp;

constexpr std::uint8_t kAll = verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead;

struct Buffer {
  Buffer(Node& node, std::size_t n, std::uint64_t seed = 0, std::uint8_t access = kAll) : bytes(n) {
    if (seed != 0) {
      Rng rng(seed);
      for (auto& b : bytes) b = static_cast<std::uint8_t>(rng.next());
    }
    stag = node.register_memory(bytes.data(), bytes.size(), access);
  }
  Sge sge(std::size_t offset, std::size_t length) const {
    return {reinterpret_cast<std::uint64_t>(bytes.data()) + offset,
            static_cast<std::uint32_t>(length), stag};
  }
  std::uint64_t to(std::size_t offset = 0) const {
    return reinterpret_cast<std::uint64_t>(bytes.data()) + offset;
  }
  std::vector<std::uint8_t> bytes;
  std::uint32_t stag;
};

struct Transfer : ::testing::Test {
  PairOptions options;
  std::unique_ptr<Pair> pair;
  verbs::QueuePair *left = nullptr, *right = nullptr;

  void up() {
    pair = std::make_unique<Pair>(options);
    left = pair->left().make_qp();
    right = pair->right().make_qp();
    ASSERT_TRUE(pair->connect(*left, *right));
  }
  void post(WrOp op, const Sge& sge, std::uint64_t id = 0, std::uint64_t to = 0,
            std::uint32_t rkey = 0) {
    verbs::SendWr wr;
    wr.wr_id = id;
    wr.op = op;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, 1};
    wr.remote_address = to;
    wr.rkey = rkey;
    ASSERT_EQ(pair->left().post_send(*left, wr, pair->now()), verbs::Post::Ok);
  }
  bool done(std::size_t left_sends, std::size_t right_receives, Duration limit = Duration::s(20)) {
    return pair->run_until(
        [&] {
          pair->left().drain_completions();
          pair->right().drain_completions();
          return pair->left().send_done.size() >= left_sends &&
                 pair->right().receive_done.size() >= right_receives;
        },
        limit);
  }
};

// proves: R-1
TEST_F(Transfer, ConnectionIsFastOnBothSidesAfterStartup) {
  up();
  EXPECT_EQ(left->state, verbs::QpState::Rts);
  EXPECT_EQ(right->state, verbs::QpState::Rts);
  pair->run_for(Duration::ms(100));
  EXPECT_TRUE(pair->left().engine().iwarp().qp_stats(*left).iwarp.fast);
  EXPECT_TRUE(pair->right().engine().iwarp().qp_stats(*right).iwarp.fast);
}

// proves: R-2
TEST_F(Transfer, OneMiBOfWritesArrivesWithoutTheReassemblyBuffer) {
  up();
  Buffer src(pair->left(), 1 << 20, 7), dst(pair->right(), 1 << 20);
  for (std::size_t i = 0; i < 16; ++i) {
    const Sge sge = src.sge(i * 65536, 65536);
    post(WrOp::Write, sge, i, dst.to(i * 65536), dst.stag);
  }
  ASSERT_TRUE(done(16, 0));
  EXPECT_EQ(src.bytes, dst.bytes);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(pair->left().send_done[i].completion.wr_id, i);
    EXPECT_EQ(pair->left().send_done[i].completion.status, verbs::Status::Success);
  }
  const ConnectionStats s = pair->right().engine().iwarp().qp_stats(*right);
  EXPECT_EQ(s.verbs.write_bytes_received, 1u << 20);
  EXPECT_EQ(s.iwarp.bytes_slow, 0u);
  EXPECT_EQ(s.iwarp.bytes_copied, s.verbs.payload_placed);  // one copy per payload byte
  EXPECT_EQ(s.iwarp.downgrades, 0u);
}

// proves: R-109
TEST_F(Transfer, SendsCompleteInOrderWithTheirLengths) {
  up();
  Buffer src(pair->left(), 100000, 3), dst(pair->right(), 100000);
  std::vector<std::size_t> lengths = {0, 1, 3, 100, 1440, 1441, 5000, 20000};
  std::size_t at = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Sge sge = dst.sge(at, 20000 > 100000 - at ? 100000 - at : 20000);
    ASSERT_TRUE(pair->right().post_receive(*right, {100 + i, {&sge, 1}}, pair->now()));
    at += lengths[i];
  }
  at = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Sge sge = src.sge(at, lengths[i]);
    post(WrOp::Send, sge, i);
    at += lengths[i];
  }
  ASSERT_TRUE(done(lengths.size(), lengths.size()));
  EXPECT_EQ(std::memcmp(src.bytes.data(), dst.bytes.data(), at), 0);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto& c = pair->right().receive_done[i].completion;
    EXPECT_EQ(c.wr_id, 100 + i);
    EXPECT_EQ(c.byte_len, lengths[i]);
  }
}

// proves: E-16
TEST_F(Transfer, ReadBringsRemoteBytesWithoutRemoteWriteOnTheSink) {
  up();
  Buffer remote(pair->right(), 300000, 11), local(pair->left(), 300000, 0, verbs::kLocalWrite);
  for (std::size_t i = 0; i < 3; ++i) {
    const Sge sge = local.sge(i * 100000, 100000);
    post(WrOp::Read, sge, i, remote.to(i * 100000), remote.stag);
  }
  ASSERT_TRUE(done(3, 0));
  EXPECT_EQ(remote.bytes, local.bytes);
  EXPECT_EQ(pair->left().engine().iwarp().qp_stats(*left).verbs.read_response_bytes_received,
            300000u);
}

TEST_F(Transfer, WriteToAnUnknownStagTerminatesWith_1_1_0) {
  up();
  Buffer src(pair->left(), 100, 1);
  const Sge sge = src.sge(0, 100);
  post(WrOp::Write, sge, 0, 0, 0x00beef01);
  pair->run_for(Duration::s(1));
  EXPECT_EQ(pair->right().engine().iwarp().qp_stats(*right).iwarp.ddp.terminates_sent, 1u);
  const auto& events = pair->left().events;
  ASSERT_FALSE(events.empty());
  bool told = false;
  for (const auto& e : events) {
    told |= e.message.find("layer 1 type 1 code 0") != std::string::npos;
  }
  EXPECT_TRUE(told);
  EXPECT_EQ(left->state, verbs::QpState::Error);
}

TEST_F(Transfer, OrderlyCloseEndsBothSidesWithoutReset) {
  up();
  pair->left().engine().iwarp().disconnect(*left, pair->now());
  pair->run_for(Duration::s(2));
  const auto last = [](Node& n) { return n.events.back().kind; };
  EXPECT_EQ(last(pair->left()), engine::CmEvent::Kind::Disconnected);
  EXPECT_EQ(last(pair->right()), engine::CmEvent::Kind::Disconnected);
  EXPECT_EQ(left->state, verbs::QpState::Error);
}

TEST_F(Transfer, ConnectToAPortNobodyListensOnIsRefused) {
  options.seed = 9;
  pair = std::make_unique<Pair>(options);
  left = pair->left().make_qp();
  const auto to = SocketAddress::parse("10.0.0.2:4444");
  ASSERT_TRUE(pair->left()
                  .engine()
                  .iwarp()
                  .connect(*left, *to, pair->left().engine().iwarp().default_params(), pair->now())
                  .ok());
  ASSERT_TRUE(pair->run_until([&] { return !pair->left().events.empty(); }, Duration::s(5)));
  EXPECT_EQ(pair->left().events.front().kind, engine::CmEvent::Kind::ConnectFailed);
  EXPECT_EQ(pair->left().events.front().code, Errc::refused);
}

TEST_F(Transfer, RejectCarriesPrivateDataToTheConnector) {
  pair = std::make_unique<Pair>(options);
  left = pair->left().make_qp();
  ASSERT_TRUE(pair->right().engine().iwarp().listen(5000, 4));
  ASSERT_TRUE(pair->left()
                  .engine()
                  .iwarp()
                  .connect(*left, *SocketAddress::parse("10.0.0.2:5000"),
                           pair->left().engine().iwarp().default_params(), pair->now())
                  .ok());
  ASSERT_TRUE(pair->run_until([&] { return !pair->right().events.empty(); }, Duration::s(5)));
  const std::uint8_t why[] = {'n', 'o'};
  pair->right().engine().iwarp().reject(pair->right().events.front().request.id, why, pair->now());
  ASSERT_TRUE(pair->run_until([&] { return !pair->left().events.empty(); }, Duration::s(5)));
  EXPECT_EQ(pair->left().events.front().code, Errc::rejected);
  EXPECT_EQ(pair->left().events.front().private_data, "no");
}

// proves: R-3
TEST_F(Transfer, SlowConnectionDeliversTheSameBytesThroughTheReassemblyBuffer) {
  options.left.context.initiated_as = options.right.context.initiated_as =
      fastpath::ConnectionType::Slow;
  up();
  Buffer src(pair->left(), 1 << 20, 7), dst(pair->right(), 1 << 20);
  const Sge sge = src.sge(0, 1 << 20);
  post(WrOp::Write, sge, 0, dst.to(), dst.stag);
  ASSERT_TRUE(done(1, 0));
  EXPECT_EQ(src.bytes, dst.bytes);
  const ConnectionStats s = pair->right().engine().iwarp().qp_stats(*right);
  EXPECT_FALSE(s.iwarp.fast);
  EXPECT_EQ(s.iwarp.bytes_fast, 0u);
  EXPECT_GT(s.iwarp.bytes_copied, 2 * s.verbs.payload_placed);  // two copies and the headers
}

// Whatever the wire drops, and on either path: the FPDUs that one side sent are those that the
// other received, by opcode.
TEST_F(Transfer, EveryFpduIsCountedOnceAtEachEnd) {
  for (const auto type : {fastpath::ConnectionType::Fast, fastpath::ConnectionType::Slow}) {
    options.left.context.initiated_as = options.right.context.initiated_as = type;
    options.faults_left = options.faults_right = "loss=0.02,reorder=0.02,dup=0.02";
    up();
    Buffer near(pair->left(), 1 << 18, 7), far(pair->right(), 1 << 18);
    const Sge from = near.sge(0, 100000), into = far.sge(1 << 17, 100000);
    ASSERT_TRUE(pair->right().post_receive(*right, {1, {&into, 1}}, pair->now()));
    for (const WrOp op : {WrOp::Write, WrOp::Send, WrOp::Read}) {
      post(op, from, 0, far.to(), far.stag);
    }
    ASSERT_TRUE(done(3, 1));
    const ConnectionStats l = pair->left().engine().iwarp().qp_stats(*left);
    const ConnectionStats r = pair->right().engine().iwarp().qp_stats(*right);
    EXPECT_EQ(l.iwarp.ddp.fpdus_sent, r.iwarp.ddp.fpdus_received);
    EXPECT_EQ(r.iwarp.ddp.fpdus_sent, l.iwarp.ddp.fpdus_received);
    const auto at = [](ddp::Opcode op) { return static_cast<std::size_t>(op); };
    EXPECT_GE(l.iwarp.ddp.fpdus_sent[at(ddp::Opcode::Write)], 70u);
    EXPECT_GE(l.iwarp.ddp.fpdus_sent[at(ddp::Opcode::Send)], 70u);
    EXPECT_GE(l.iwarp.ddp.fpdus_sent[at(ddp::Opcode::ReadRequest)], 1u);
    EXPECT_GE(r.iwarp.ddp.fpdus_sent[at(ddp::Opcode::ReadResponse)], 70u);
    EXPECT_GT(l.iwarp.tcp.retransmits, 0u);
  }
}

TEST_F(Transfer, JumboFramesAndIPv6Work) {
  options.mtu = 9000;
  pair = std::make_unique<Pair>(options);
  left = pair->left().make_qp();
  right = pair->right().make_qp();
  ASSERT_TRUE(pair->connect(*left, *right, {}, {}, "[fd00::2]:7000"));
  Buffer src(pair->left(), 1 << 20, 5), dst(pair->right(), 1 << 20);
  const Sge sge = src.sge(0, 1 << 20);
  post(WrOp::Write, sge, 0, dst.to(), dst.stag);
  ASSERT_TRUE(done(1, 0));
  EXPECT_EQ(src.bytes, dst.bytes);
}

}  // namespace
}  // namespace urnic::sim
