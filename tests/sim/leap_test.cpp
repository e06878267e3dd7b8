// Time leaps: a machine was suspended, or a process was stopped. Expired timers fire once, living
// peers are kept, and everything else ends as it would without a leap.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/roce/connect_ends.h"
#include "tests/support/workload.h"

namespace urnic::test {
namespace {

using Kind = engine::CmEvent::Kind;

// Which side was suspended: one machine with both ends, or one of the two ends.
enum class Who : std::uint8_t { Both, Left, Right };
constexpr Who kAll[] = {Who::Both, Who::Left, Who::Right};
const Duration kLeaps[] = {Duration::s(3), Duration::s(3600), Duration::s(86'400)};

std::string text(Who who, Duration d) {
  const char* const names[] = {"both", "left", "right"};
  return std::string(names[static_cast<int>(who)]) + " " + std::to_string(d.count_ms() / 1000) +
         " s";
}

void leap(sim::Pair& pair, Who who, Duration d) {
  if (who == Who::Both) return pair.leap(d);
  pair.leap(who == Who::Left ? pair.left() : pair.right(), d);
}

// A few leaps at random times, while other work is in progress.
class Leaps {
 public:
  Leaps(sim::Pair& pair, std::uint64_t seed, double chance)
      : pair_(pair), rng_(seed * 31 + 7), chance_(chance) {}
  void turn() {
    if (left_ == 0 || !rng_.chance(chance_)) return;
    --left_;
    const Who who = kAll[rng_.below(3)];
    leap(pair_, who, kLeaps[rng_.below(3)]);
  }
  static constexpr unsigned kMost = 3;
  unsigned done() const { return kMost - left_; }

 private:
  sim::Pair& pair_;
  Rng rng_;
  const double chance_;  // per turn of the engines
  unsigned left_ = kMost;
};

// The seeds of a run, or only the one in URNIC_TEST_SEED.
struct Seeds {
  Seeds() {
    if (const char* one = std::getenv("URNIC_TEST_SEED"))
      first = last = std::strtoull(one, nullptr, 10);
  }
  std::uint64_t first = 1, last = std::getenv("URNIC_TEST_SOAK") != nullptr ? 5000 : 150;
  // Most seeds contain a leap.
  unsigned some() const { return first == last ? 0 : static_cast<unsigned>(last / 2); }
};

sim::PairOptions kept_alive(std::uint64_t seed = 1) {
  sim::PairOptions o;
  o.seed = seed;
  o.left.keepalive = o.right.keepalive = true;
  return o;
}

// Two ends in full operation, and the number of frames that each has sent.
struct Leap : ::testing::Test {
  void up(const sim::PairOptions& o = kept_alive()) {
    pair = std::make_unique<sim::Pair>(o);
    left = pair->left().make_qp();
    right = pair->right().make_qp();
    ASSERT_TRUE(pair->connect(*left, *right));
    pair->run_for(Duration::ms(500));
    pair->left().events.clear();
    pair->right().events.clear();
    const auto count = [this](const urnic_frame& f) { sent += f.len[0] != 0 ? 1 : 0; };
    pair->watch_left(count);
    pair->watch_right(count);
  }
  void expect_alive() {
    EXPECT_TRUE(left->state == verbs::QpState::Rts);
    EXPECT_TRUE(right->state == verbs::QpState::Rts);
    for (const auto& e : pair->left().events) ADD_FAILURE() << "left: " << e.message;
    for (const auto& e : pair->right().events) ADD_FAILURE() << "right: " << e.message;
  }
  std::unique_ptr<sim::Pair> pair;
  verbs::QueuePair *left = nullptr, *right = nullptr;
  unsigned sent = 0;
};

TEST_F(Leap, AnIdleConnectionIsProbedOnceAndSurvives) {
  for (const Who who : kAll) {
    for (const Duration d : kLeaps) {
      SCOPED_TRACE(text(who, d));
      sent = 0;
      up();
      leap(*pair, who, d);
      pair->run_for(Duration::s(1));
      EXPECT_LE(sent, 12u) << "a probe and its answer, and who has which address, by each";
      expect_alive();
      pair->run_for(Duration::s(200));
      expect_alive();
    }
  }
}

// The answer to pending segments is already in the port, or arrives a moment later.
TEST_F(Leap, ALivingPeerWithDataInFlightIsNotGivenUp) {
  for (const Who who : kAll) {
    for (const Duration d : kLeaps) {
      for (unsigned at = 1; at < 45; at += 3) {
        SCOPED_TRACE(text(who, d) + " at " + std::to_string(at));
        up();
        pair->set_faults_right("delay=20ms");
        pair->set_faults_left("delay=20ms");
        WorkloadOptions w;
        w.messages = 20;
        w.limit = Duration::s(200) + d;
        unsigned turns = 0;
        w.each_turn = [&] {
          if (++turns == at) leap(*pair, who, d);
        };
        Workload work(*pair, *left, *right, w);
        EXPECT_EQ(work.run(), "");
        EXPECT_GE(turns, at);
        expect_alive();
        if (HasFailure()) return;
      }
    }
  }
}

// Segments are in flight, the timer fires because of the leap, and then their ACKs are read. That
// time is not a round-trip time: later losses must still be retransmitted quickly.
// proves: E-43
TEST_F(Leap, LossesAfterALeapAreRetransmittedAsSoonAsBefore) {
  for (const Duration d : kLeaps) {
    SCOPED_TRACE(text(Who::Both, d));
    up();
    pair->set_faults_left("delay=1ms");
    pair->set_faults_right("delay=1ms");
    WorkloadOptions w;
    w.messages = 40;
    w.limit = Duration::s(200) + d;
    unsigned turns = 0;
    Instant lossy = Instant::never();
    constexpr Duration kLossy = Duration::ms(50);
    w.each_turn = [&] {
      if (++turns == 4) leap(*pair, Who::Both, d);
      if (turns == 12) {
        lossy = pair->now();
        pair->set_faults_left("loss=1");
        pair->set_faults_right("loss=1");
        pair->wake_at(lossy + kLossy);
      }
      if (!lossy.is_never() && pair->now() >= lossy + kLossy) {
        pair->set_faults_left("");
        pair->set_faults_right("");
      }
    };
    Workload work(*pair, *left, *right, w);
    EXPECT_EQ(work.run(), "");
    ASSERT_FALSE(lossy.is_never());
    EXPECT_GT(pair->now() - lossy, kLossy);
    EXPECT_LT(pair->now() - lossy, Duration::s(1));
    expect_alive();
  }
}

// It had sent three probes and waits for the last answer, which arrives.
TEST_F(Leap, ALivingPeerThatWasProbedIsKept) {
  for (const Duration d : kLeaps) {
    SCOPED_TRACE(text(Who::Left, d));
    sim::PairOptions o = kept_alive();
    o.right.keepalive = false;
    up(o);
    pair->set_faults_left("loss=1");
    const Duration idle = pair->left().engine().iwarp().state().options.keepalive_idle;
    pair->run_for(idle * 2 - Duration::s(2));  // the last answer may arrive until then
    pair->set_faults_left("");
    expect_alive();
    pair->leap(pair->left(), d);
    pair->run_for(Duration::s(60));
    if (d > idle) {
      expect_alive();
    } else {
      // It was probed in time, and the time is over.
      ASSERT_EQ(pair->left().events.size(), 1u);
      EXPECT_EQ(pair->left().events[0].code, Errc::timed_out);
    }
  }
}

TEST_F(Leap, ADeadPeerIsDetectedAfterTheLeap) {
  for (const Duration d : kLeaps) {
    SCOPED_TRACE(text(Who::Left, d));
    up();
    pair->set_faults_left("loss=1");
    pair->leap(pair->left(), d);
    ASSERT_TRUE(pair->run_until([&] { return !pair->left().events.empty(); }, Duration::s(65)));
    EXPECT_EQ(pair->left().events[0].code, Errc::timed_out);
    pair->run_for(Duration::s(1));
    EXPECT_EQ(pair->left().events.size(), 1u) << "told once";
    EXPECT_EQ(pair->left().engine().tables().connections, 0u);
  }
}

// Every moment of opening and ending a connection, in turns of the engines.
TEST_F(Leap, OpeningOrClosingAConnectionHasExactlyOneOutcome) {
  unsigned outcomes[2] = {};
  for (unsigned at = 1; at < 40; ++at) {
    for (const Who who : kAll) {
      SCOPED_TRACE(std::to_string(at) + ": " + text(who, Duration::s(86'400)));
      sim::Pair p(kept_alive());
      p.set_faults_left("delay=3ms");
      p.set_faults_right("delay=3ms");
      EXPECT_TRUE(p.right().engine().iwarp().listen(7000, 16));
      auto* const one = p.left().make_qp();
      auto* const other = p.right().make_qp();
      const auto params = p.left().engine().iwarp().default_params();
      ASSERT_TRUE(p.left()
                      .engine()
                      .iwarp()
                      .connect(*one, *SocketAddress::parse("10.0.0.2:7000"), params, p.now())
                      .ok());
      unsigned turns = 0;
      bool closing = false;
      p.run_until(
          [&] {
            if (++turns == at) leap(p, who, Duration::s(86'400));
            for (const auto& e : std::exchange(p.right().events, {})) {
              if (e.kind != Kind::ConnectRequest) continue;
              (void)p.right().engine().iwarp().accept(e.request.id, *other, params,
                                                      p.now_of(p.right()));
            }
            if (!closing && one->state == verbs::QpState::Rts) {
              closing = true;
              p.left().engine().iwarp().disconnect(*one, p.now_of(p.left()));
            }
            return false;
          },
          Duration::s(90'000));
      ASSERT_GT(turns, at);
      unsigned begun = 0, ended = 0;
      for (const auto& e : p.left().events) {
        begun += e.kind == Kind::Established || e.kind == Kind::ConnectFailed ? 1 : 0;
        ended += e.kind == Kind::Disconnected || e.kind == Kind::Failed ? 1 : 0;
        if (e.kind == Kind::ConnectFailed) {
          EXPECT_EQ(e.code, Errc::timed_out) << e.message;
        }
      }
      EXPECT_EQ(begun, 1u);
      EXPECT_EQ(ended, closing ? 1u : 0u);
      ++outcomes[closing ? 1 : 0];
      for (sim::Node* n : {&p.left(), &p.right()}) {
        EXPECT_EQ(n->engine().tables().connections, 0u) << "nothing is left of it";
      }
    }
  }
  EXPECT_GT(outcomes[0], 0u) << "some are given up,";
  EXPECT_GT(outcomes[1], 0u) << "and some are not";
}

TEST(LeapProperty, IwarpDeliversEverythingOnceInOrderAndKeepsLivingPeers) {
  unsigned leaps = 0;
  const Seeds seeds;
  for (std::uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim::PairOptions o = kept_alive(seed);
    const char* const wires[] = {"", "loss=0.01", "delay=2ms,jitter=1ms", "reorder=0.05:3,dup=0.02",
                                 "rate=100mbit,delay=500us,loss=0.003"};
    o.faults_left = wires[seed % 5];
    o.faults_right = wires[(seed / 5) % 5];
    sim::Pair pair(o);
    auto* left = pair.left().make_qp(64, 64);
    auto* right = pair.right().make_qp(64, 64);
    ASSERT_TRUE(pair.connect(*left, *right));
    pair.run_for(Duration::ms(500));  // the opening has its own timeout (Leap.AConnection...)
    Leaps at(pair, seed, 0.02);
    WorkloadOptions w;
    w.seed = seed;
    w.messages = 30;
    w.limit = Duration::s(86'400 * 10);
    w.each_turn = [&] { at.turn(); };
    const Instant began = pair.now();
    Workload work(pair, *left, *right, w);
    EXPECT_EQ(work.run(), "");
    EXPECT_EQ(work.failures(), "");
    leaps += at.done();
    // Apart from the leaps themselves, it does not take hours.
    EXPECT_LT((pair.now() - began) - kLeaps[2] * Leaps::kMost, Duration::s(3600));
    pair.left().engine().iwarp().disconnect(*left, pair.now_of(pair.left()));
    pair.run_for(Duration::s(200));
    EXPECT_EQ(pair.left().engine().tables().connections, 0u);
    EXPECT_EQ(pair.right().engine().tables().connections, 0u);
    if (HasFailure()) return;
  }
  EXPECT_GE(leaps, seeds.some());
}

// ---- RoCE

struct LeapRoce : RoceConnectEnds {};

TEST_F(LeapRoce, EverythingArrivesOnceInOrderAndLivingPeersAreKept) {
  unsigned leaps = 0;
  const Seeds seeds;
  for (std::uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim::PairOptions o = both();
    o.seed = seed;
    const char* const wires[] = {"", "loss=0.005", "delay=500us", "reorder=0.03:3", "dup=0.02"};
    o.faults_left = wires[seed % 5];
    o.faults_right = wires[(seed / 5) % 5];
    ByHand h;
    h.ack_timeout = 16;  // 268 ms: an ARP request may be lost and is repeated
    h.retry_count = 7;
    up(o, h);
    constexpr std::size_t kRoom = 1 << 20, kPiece = 16'384, kCount = kRoom / kPiece;
    rooms(kRoom);
    Bytes expected = ours->bytes, was = theirs->bytes;
    for (std::size_t i = 0; i < kCount; ++i) {
      if (i % 4 == 1) receive(*right, i, i * kPiece, kPiece);
      const auto op = i % 4 == 1   ? verbs::WrOp::Send
                      : i % 4 == 2 ? verbs::WrOp::Read
                                   : verbs::WrOp::Write;
      post(*left, op, i, kPiece, i * kPiece);
    }
    Leaps at(*pair, seed, 0.2);
    ASSERT_TRUE(pair->run_until(
        [&] {
          at.turn();
          pair->left().drain_completions();
          pair->right().drain_completions();
          return pair->left().send_done.size() >= kCount &&
                 pair->right().receive_done.size() >= kCount / 4;
        },
        Duration::s(86'400 * 10)));
    leaps += at.done();
    for (std::size_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(pair->left().send_done[i].completion.wr_id, i);
      EXPECT_EQ(pair->left().send_done[i].completion.status, verbs::Status::Success);
      const auto piece = [&](const Bytes& from) {
        return Bytes(from.begin() + static_cast<std::ptrdiff_t>(i * kPiece),
                     from.begin() + static_cast<std::ptrdiff_t>((i + 1) * kPiece));
      };
      if (i % 4 == 1) {
        EXPECT_TRUE(piece(inbox->bytes) == piece(expected));
      } else if (i % 4 == 2) {
        EXPECT_TRUE(piece(ours->bytes) == piece(was));
      } else {
        EXPECT_TRUE(piece(theirs->bytes) == piece(expected));
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GE(leaps, seeds.some());
}

TEST_F(LeapRoce, AnIdleConnectionSendsLittleAndSurvives) {
  for (const Who who : kAll) {
    for (const Duration d : kLeaps) {
      SCOPED_TRACE(text(who, d));
      connected();
      pair->run_for(Duration::s(1));
      unsigned sent = 0;
      const auto count = [&](const urnic_frame& f) { sent += f.len[0] != 0 ? 1 : 0; };
      pair->watch_left(count);
      pair->watch_right(count);
      leap(*pair, who, d);
      pair->run_for(Duration::s(1));
      EXPECT_LE(sent, 12u);
      expect_carries();
    }
  }
}

TEST_F(LeapRoce, OpeningAConnectionHasOneOutcomeAndLeavesNothing) {
  unsigned outcomes[2] = {};
  for (unsigned at = 0; at < 30; ++at) {
    for (const Who who : kAll) {
      SCOPED_TRACE(std::to_string(at) + ": " + text(who, Duration::s(86'400)));
      open();
      pair->set_faults_left("delay=3ms");
      pair->set_faults_right("delay=3ms");
      ASSERT_TRUE(ask().ok());
      unsigned turns = 0;
      bool answered = false;
      pair->run_until(
          [&] {
            if (++turns == at) leap(*pair, who, Duration::s(86'400));
            if (!answered && !pair->right().roce_requests.empty()) {
              answered = true;
              const auto handle = pair->right().roce_requests.back().id;
              (void)connections(pair->right())
                  .accept(handle, *right, wish(), pair->now_of(pair->right()));
            }
            return false;
          },
          Duration::s(90'000));
      const auto of = [&](sim::Node& n) {
        return told(n, Kind::Established) + told(n, Kind::ConnectFailed);
      };
      EXPECT_EQ(of(pair->left()), 1u);
      const bool up = told(pair->left(), Kind::Established) == 1;
      ++outcomes[up ? 1 : 0];
      if (up) {
        EXPECT_EQ(told(pair->left(), Kind::Disconnected) + told(pair->left(), Kind::Failed),
                  told(pair->right(), Kind::Disconnected) + told(pair->right(), Kind::Failed) +
                      told(pair->right(), Kind::ConnectFailed));
      } else {
        EXPECT_EQ(find(pair->left(), Kind::ConnectFailed)->code, Errc::timed_out);
        EXPECT_EQ(tables(pair->left()).cm_connections, 0u);
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(outcomes[1], 0u);
}

}  // namespace
}  // namespace urnic::test
