// Connections made and ended over and over in virtual time: orderly from either side, abortive, and
// with a peer that forgets the connection while nobody hears of it. Memory and tables are sampled
// whenever all is quiet and stay as they were.
//
// URNIC_TEST_SOAK=1: a million of them (./run-tests --long).
#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "sim/pair.h"

namespace urnic::sim {
namespace {

constexpr unsigned kSamples = 10;
// Tables that are sized by the largest number of connections in TIME-WAIT may still grow by a step.
constexpr std::size_t kSlack = 256 * 1024;

unsigned connections() {
  return std::getenv("URNIC_TEST_SOAK") != nullptr ? 1'000'000 : 10'000;
}

std::size_t heap() {
  const struct mallinfo2 m = mallinfo2();
  return m.uordblks + m.hblkhd;
}

class Churn {
 public:
  Churn() : pair_(options()) {
    stag_left_ = pair_.left().register_memory(left_.data(), left_.size(), 0);
    stag_right_ = pair_.right().register_memory(right_.data(), right_.size(), ddp::kLocalWrite);
  }

  // One connection, one Send, one end.
  void one(unsigned n) {
    auto* left = pair_.left().make_qp(4, 4, 1);
    auto* right = pair_.right().make_qp(4, 4, 1);
    const ddp::Sge sink{reinterpret_cast<std::uint64_t>(right_.data()), 64, stag_right_};
    pair_.right().post_receive(*right, {1, {&sink, 1}}, pair_.now());
    ASSERT_TRUE(pair_.connect(*left, *right)) << n;
    send(pair_.left(), *left, left_.data(), stag_left_);
    ASSERT_TRUE(until([&] { return received_ != 0; })) << n;
    received_ = 0;
    end(n, *left, *right);
    ASSERT_TRUE(until([&] {
      return left->state == verbs::QpState::Error && right->state == verbs::QpState::Error;
    })) << n;
    pair_.left().engine().destroy_qp(left, pair_.now());
    pair_.right().engine().destroy_qp(right, pair_.now());
    pair_.left().events.clear();
    pair_.right().events.clear();
  }

  // Everything that waits for time to pass has passed.
  void quiet() {
    pair_.run_for(Duration::s(5));
    collect();
    EXPECT_EQ(pair_.left().engine().connection_count(), 0u);
    EXPECT_EQ(pair_.right().engine().connection_count(), 0u);
    EXPECT_EQ(pair_.right().engine().reassembly_in_use(), 0u);
  }

  std::array<unsigned, 4> ended{};  // orderly by left, by right, abortive, vanished

 private:
  static PairOptions options() {
    PairOptions o;
    o.left.tcp.time_wait = o.right.tcp.time_wait = Duration::s(1);
    o.completions = 64;
    return o;
  }

  void send(Node& node, verbs::QueuePair& qp, const std::uint8_t* from, std::uint32_t stag) {
    const ddp::Sge sge{reinterpret_cast<std::uint64_t>(from), 64, stag};
    ddp::SendWr wr;
    wr.sges = {&sge, 1};
    node.post_send(qp, wr, pair_.now());
  }

  void end(unsigned n, verbs::QueuePair& left, verbs::QueuePair& right) {
    engine::Engine& a = pair_.left().engine();
    engine::Engine& b = pair_.right().engine();
    const unsigned kind = n % 16;
    if (kind == 15) {
      // The left host forgets everything; its RST is lost. The right one has something to say.
      ++ended[3];
      pair_.set_faults_left("loss=1");
      a.abort(left, pair_.now());
      pair_.run_for(Duration::us(100));
      pair_.set_faults_left("");
      send(pair_.right(), right, right_.data(), stag_right_);
    } else if (kind >= 12) {
      ++ended[2];
      kind == 12 ? a.abort(left, pair_.now()) : b.abort(right, pair_.now());
    } else if (kind % 2 != 0) {
      ++ended[1];
      b.disconnect(right, pair_.now());
    } else {
      ++ended[0];
      a.disconnect(left, pair_.now());
      if (kind == 10) b.disconnect(right, pair_.now());  // both at once
    }
  }

  void collect() {
    std::array<verbs::Cqe, 16> done;
    while (pair_.left().poll_send(done) > 0 || pair_.left().poll_receive(done) > 0 ||
           pair_.right().poll_send(done) > 0) {
    }
    for (int n; (n = pair_.right().poll_receive(done)) > 0;) {
      for (int i = 0; i < n; ++i) {
        received_ += done[static_cast<std::size_t>(i)].completion.status == ddp::Status::Success;
      }
    }
  }
  template <typename Done>
  bool until(Done done) {
    return pair_.run_until(
        [&] {
          collect();
          return done();
        },
        Duration::s(30));
  }

  Pair pair_;
  std::array<std::uint8_t, 64> left_{}, right_{};
  std::uint32_t stag_left_ = 0, stag_right_ = 0;
  unsigned received_ = 0;
};

TEST(Connections, MadeAndEndedManyTimesLeaveNothingBehind) {
  Churn churn;
  const unsigned all = connections(), step = all / kSamples;
  std::size_t first = 0;
  for (unsigned n = 0; n < all; ++n) {
    churn.one(n);
    if (HasFatalFailure()) return;
    if ((n + 1) % step != 0) continue;
    churn.quiet();
    const std::size_t now = heap();
    std::printf("%8u connections: %zu octets of heap\n", n + 1, now);
    if (first == 0) first = now;
    EXPECT_LE(now, first + kSlack);
  }
  std::printf("orderly %u and %u, abortive %u, vanished %u\n", churn.ended[0], churn.ended[1],
              churn.ended[2], churn.ended[3]);
  for (const unsigned n : churn.ended) EXPECT_GT(n, 0u);
}

}  // namespace
}  // namespace urnic::sim
