// urnic against a peer that behaves like Linux rxe, over a wire that loses 1 % of the packets in
// each direction. The data is right in all four directions, and the measures against loss have the
// documented benefit.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/support/rxe_wire.h"

namespace urnic::test {
namespace {

constexpr const char* kLine = "rate=10gbit,delay=50us";
constexpr std::uint32_t kEach = 65536, kMany = 24;
constexpr Duration kTimer = Duration::us(67109);

engine::Options options(bool probe, ib::ConnectionType type) {
  engine::Options o;
  o.seed = 3;
  o.roce.probe = probe;
  o.roce.loss.type = type;
  return o;
}

void fill(RxeWire::Bytes* to, std::uint64_t seed) {
  Rng rng(seed);
  for (std::uint8_t& b : *to) b = static_cast<std::uint8_t>(rng.next());
}

// Virtual time for Writes or Reads of ours, all outstanding at once; compares their data.
Duration we_ask(verbs::WrOp op, const char* faults, bool probe) {
  RxeWire w(options(probe, ib::ConnectionType::Fast), kLine, kTimer, kEach * kMany);
  fill(&w.ours, 1);
  fill(&w.theirs, 2);
  w.faults(faults);
  const Instant from = w.now;
  for (std::uint32_t i = 0; i < kMany; ++i) w.post(op, i, std::uint64_t{i} * kEach, kEach);
  EXPECT_TRUE(w.run(
      [&] {
        w.node().drain_completions();
        return w.node().send_done.size() >= kMany;
      },
      Duration::s(60)));
  for (const verbs::Cqe& c : w.node().send_done) {
    EXPECT_EQ(c.completion.status, verbs::Status::Success);
  }
  EXPECT_TRUE(w.ours == w.theirs);
  return w.now - from;
}

struct Asked {
  Duration took;
  RxePeer::Counters peer;
  RoceStats ours;
};
// The same for the peer's requests.
Asked it_asks(bool read, const char* faults, ib::ConnectionType type, std::uint32_t rounds = 1) {
  RxeWire w(options(true, type), kLine, kTimer, kEach * kMany);
  fill(&w.ours, 1);
  fill(&w.theirs, 2);
  w.faults(faults);
  const Instant from = w.now;
  for (std::uint32_t i = 0; i < kMany * rounds; ++i) {
    const std::uint64_t at = std::uint64_t{i % kMany} * kEach;
    const auto begin = w.theirs.begin() + static_cast<std::ptrdiff_t>(at);
    if (read) {
      w.peer->read(at, w.key, kEach);
    } else {
      w.peer->write(at, w.key, RxeWire::Bytes(begin, begin + kEach));
    }
  }
  EXPECT_TRUE(w.run([&] { return w.peer->outstanding() == 0; }, Duration::s(600)));
  if (read) {
    RxeWire::Bytes all;
    for (const auto& one : w.peer->done) all.insert(all.end(), one.begin(), one.end());
    EXPECT_TRUE(all == w.ours);
  } else {
    EXPECT_TRUE(w.ours == w.theirs);
  }
  return {w.now - from, w.peer->counters, w.stats()};
}

TEST(RxePeer, OnACleanWireNothingIsRetransmitted) {
  EXPECT_LT(we_ask(verbs::WrOp::Write, "", true), Duration::ms(3));
  EXPECT_LT(we_ask(verbs::WrOp::Read, "", true), Duration::ms(3));
  for (const bool read : {false, true}) {
    const Asked a = it_asks(read, "", ib::ConnectionType::Fast);
    EXPECT_EQ(a.peer.repeated + a.peer.timeouts + a.peer.naks_taken + a.peer.ignored, 0u) << read;
    EXPECT_EQ(a.ours.requests_duplicate, 0u);
    EXPECT_LT(a.took, Duration::ms(4));
  }
}

// proves: S-5
TEST(RxePeer, TheProbeSpeedsUpOurWritesUnderLoss) {
  const Duration on = we_ask(verbs::WrOp::Write, "loss=0.01,seed=4", true);
  const Duration off = we_ask(verbs::WrOp::Write, "loss=0.01,seed=4", false);
  EXPECT_LT(on * 3, off);
}

TEST(RxePeer, OurReadsAreRightOverABadWire) {
  we_ask(verbs::WrOp::Read, "loss=0.01,seed=5", true);
  we_ask(verbs::WrOp::Read, "loss=0.01,dup=0.02,reorder=0.01:4,corrupt=0.01,seed=6", true);
}

// proves: S-4
TEST(RxePeer, KeepingPacketsSpeedsUpItsWritesUnderLoss) {
  Duration kept, dropped;
  for (int seed = 1; seed <= 4; ++seed) {
    const std::string line = "loss=0.01,seed=" + std::to_string(seed);
    const char* const faults = line.c_str();
    const Asked fast = it_asks(false, faults, ib::ConnectionType::Fast, 20);
    const Asked slow = it_asks(false, faults, ib::ConnectionType::Slow, 20);
    EXPECT_GT(fast.ours.requests_held, 0u);
    EXPECT_GT(fast.peer.naks_taken, 0u);
    kept = kept + fast.took;
    dropped = dropped + slow.took;
  }
  EXPECT_LT(kept * 13, dropped * 10);
}

// The peer ignores packets after a hole, so only its timer helps.
TEST(RxePeer, ItsReadsAreServedAlthoughItDropsPacketsAfterAHole) {
  const Asked a = it_asks(true, "loss=0.005,seed=3", ib::ConnectionType::Fast);
  EXPECT_GT(a.peer.ignored, 0u);
  EXPECT_GT(a.peer.repeated, 0u);
  EXPECT_GT(a.ours.requests_duplicate, 0u);
}

}  // namespace
}  // namespace urnic::test
