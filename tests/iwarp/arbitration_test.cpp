// FAST and SLOW connections at the same time.

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "tests/iwarp/out_logic.h"

namespace urnic::test {
namespace {

// A SLOW connection whose hole closes has megabytes to parse, which must not all happen in one
// poll.
// proves: R-8
TEST(Arbitration, ASlowBacklogIsParsedInTurns) {
  Receiver r(receiver(ConnectionType::Slow), 4096);
  Bytes stream;
  std::vector<std::uint64_t> at;
  constexpr std::uint32_t kSends = 2000;
  for (std::uint32_t i = 0; i < kSends; ++i) {
    ASSERT_TRUE(r.post(i, 1400));
    at.push_back(stream.size());
    const Bytes f = send_fpdu(r.first + i, 1400);
    stream.insert(stream.end(), f.begin(), f.end());
  }
  at.push_back(stream.size());
  for (std::size_t i = 1; i < kSends; ++i) {
    r.segment(at[i], ByteView(stream).subspan(at[i], at[i + 1] - at[i]));
  }
  r.run();
  EXPECT_TRUE(r.done().empty());
  r.segment(0, ByteView(stream).first(at[1]));
  std::size_t polls = 0, most = 0, before = 0;
  do {
    r.poll();
    ++polls;
    most = std::max(most, r.done().size() - before);
    before = r.done().size();
    if (before != kSends) {
      EXPECT_LE(r.engine().next_deadline(), r.now()) << "there is work: no sleep";
    }
  } while (before != kSends && polls < 1000);
  EXPECT_EQ(before, kSends);
  EXPECT_LE(most, (64u + 256u + 16u) * 1024 / 1400) << "bytes of one poll are bounded";
  EXPECT_GE(polls, 8u);
  EXPECT_EQ(r.engine().iwarp().state().pool.in_use(), 0u);
}

// Bytes before the FIN are delivered before it, over any number of turns and in any order. Also if
// our FIN was first, so that TCP waits for nothing more.
// proves: E-50
TEST(Arbitration, SlowBytesBeforeAFinAreDeliveredFirst) {
  for (const auto& [sends, we_close] :
       {std::pair{2u, false}, std::pair{1000u, false}, std::pair{1000u, true}}) {
    SCOPED_TRACE(std::to_string(sends) + (we_close ? ", closed here first" : ""));
    Receiver r(receiver(ConnectionType::Slow), 2048);
    if (we_close) r.engine().iwarp().disconnect(r.qp(), r.now());
    Bytes stream;
    std::uint64_t second = 0;
    for (std::uint32_t i = 0; i < sends; ++i) {
      ASSERT_TRUE(r.post(i, 1400));
      const Bytes f = send_fpdu(r.first + i, 1400);
      if (i == 1) second = stream.size();
      stream.insert(stream.end(), f.begin(), f.end());
    }
    for (std::uint64_t at = second; at < stream.size(); at += 1460) {
      const std::uint64_t n = std::min<std::uint64_t>(1460, stream.size() - at);
      r.segment(at, ByteView(stream).subspan(at, n), at + n == stream.size());
    }
    r.run();
    r.arrive(0, Bytes(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(second)));
    for (int i = 0; i < 100; ++i) r.poll();
    ASSERT_EQ(r.done().size(), sends);
    for (const verbs::Cqe& c : r.done()) EXPECT_EQ(c.completion.status, verbs::Status::Success);
    for (const CmEvent& e : r.node().events) EXPECT_NE(e.kind, CmEvent::Kind::Failed) << e.message;
  }
}

// The FPDU can never be completed. The end is reported as abnormal.
// proves: E-50
TEST(Arbitration, AFinAfterPartOfAnFpduEndsTheConnection) {
  for (const bool again : {false, true}) {
    SCOPED_TRACE(again ? "the FIN comes with bytes that came before" : "the FIN comes alone");
    Receiver r(receiver(ConnectionType::Slow));
    ASSERT_TRUE(r.post(0, 1400));
    const Bytes f = send_fpdu(r.first, 1400);
    const Bytes part(f.begin(), f.begin() + 700);
    r.arrive(0, part);
    EXPECT_FALSE(r.failed(""));
    if (again) {
      r.arrive(0, part, true);
    } else {
      r.arrive(700, {}, true);
    }
    EXPECT_TRUE(r.failed("closed the connection with work outstanding"));
    EXPECT_EQ(r.qp().state, verbs::QpState::Error);
  }
}

// Three FAST and three SLOW connections, all saturated, on one wire: each gets its share, with
// traffic in one direction and in both.
// proves: R-8
TEST(Arbitration, SaturatedFastAndSlowConnectionsShareTheWire) {
  for (const bool both_ways : {false, true}) {
    sim::PairOptions o;
    o.mtu = 9000;
    o.faults_left = o.faults_right = "rate=1000mbit,delay=20us";
    sim::Pair pair(o);
    constexpr std::size_t kEach = 3, kAll = 2 * kEach;
    constexpr std::uint32_t kWrite = 32 << 10;
    Bytes source(kWrite, 5), sink(kWrite);
    struct Side {
      sim::Node* node;
      std::uint32_t source, sink;
      verbs::QueuePair* qp[kAll];
    } sides[2] = {{&pair.left(), 0, 0, {}}, {&pair.right(), 0, 0, {}}};
    for (Side& s : sides) {
      s.source = s.node->register_memory(source.data(), kWrite, verbs::kLocalRead);
      s.sink =
          s.node->register_memory(sink.data(), kWrite, verbs::kLocalWrite | verbs::kRemoteWrite);
      for (auto& qp : s.qp) qp = s.node->make_qp(8, 8);
    }
    for (std::size_t i = 0; i < kAll; ++i) {
      const auto type = i < kEach ? ConnectionType::Fast : ConnectionType::Slow;
      const auto set = [&](engine::ConnectParams& p) { p.context.initiated_as = type; };
      ASSERT_TRUE(pair.connect(*sides[0].qp[i], *sides[1].qp[i], set, set));
    }
    const auto post = [&] {
      for (int d = 0; d < (both_ways ? 2 : 1); ++d) {
        Side &from = sides[d], &to = sides[1 - d];
        from.node->drain_completions();
        for (verbs::QueuePair* qp : from.qp) {
          const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(source.data()), kWrite,
                               from.source};
          verbs::SendWr wr;
          wr.op = verbs::WrOp::Write;
          wr.flags = verbs::kSignaled;
          wr.sges = {&sge, 1};
          wr.remote_address = reinterpret_cast<std::uintptr_t>(sink.data());
          wr.rkey = to.sink;
          while (from.node->post_send(*qp, wr, pair.now()) == verbs::Post::Ok) {
          }
        }
      }
      return false;
    };
    pair.run_until(post, Duration::ms(300));
    for (int d = 0; d < (both_ways ? 2 : 1); ++d) {
      std::uint64_t least = ~0ull, most = 0, fast = 0, slow = 0;
      for (std::size_t i = 0; i < kAll; ++i) {
        const ConnectionStats s = sides[1 - d].node->engine().iwarp().qp_stats(*sides[1 - d].qp[i]);
        EXPECT_EQ(s.iwarp.fast, i < kEach);
        least = std::min(least, s.verbs.write_bytes_received);
        most = std::max(most, s.verbs.write_bytes_received);
        (i < kEach ? fast : slow) += s.verbs.write_bytes_received;
      }
      EXPECT_GT(fast + slow, 300u * 1000 * 1000 / 8 * 7 / 10) << "the wire is full";
      EXPECT_GE(static_cast<double>(least) / static_cast<double>(most), 0.6);
      const double share = static_cast<double>(slow) / static_cast<double>(fast + slow);
      EXPECT_GE(share, 0.4);
      EXPECT_LE(share, 0.6);
    }
  }
}

}  // namespace
}  // namespace urnic::test
