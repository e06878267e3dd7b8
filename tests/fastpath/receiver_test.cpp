// The parts of the room together: FAST, SLOW, downgrade, upgrade over whole streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tests/fastpath/mini_receiver.h"

namespace urnic::testing {
namespace {

using fastpath::ContextConfig;
using fastpath::InLogicVariant;
using fastpath::Outcome;
using fastpath::Reason;

struct Cut {
  std::uint64_t begin, end;
};

// One segment per `per_segment` FPDUs, as an aligned sender makes them.
std::vector<Cut> aligned_cuts(const TestStream& s, std::size_t per_segment = 1) {
  std::vector<Cut> cuts;
  for (std::size_t i = 0; i < s.fpdus.size(); i += per_segment) {
    const std::size_t last = std::min(i + per_segment, s.fpdus.size()) - 1;
    cuts.push_back({s.fpdus[i].begin, s.fpdus[last].end});
  }
  return cuts;
}

ByteView bytes_of(const TestStream& s, const Cut& c) {
  return ByteView(s.bytes).subspan(c.begin, c.end - c.begin);
}

TestStream sends(Rng& rng, int n, std::size_t payload = 400) {
  TestStream s;
  for (int i = 0; i < n; ++i) s.add(rng, TestStream::Send, payload, true);
  return s;
}

ContextConfig one_drop() {
  ContextConfig c;
  c.max_recovery_attempts = 1;
  c.max_same_segment = 0;
  c.upgrade_after = 1;
  return c;
}

// Corrupts the payload until the connection is downgraded by it.
void downgrade_by(MiniReceiver& r, const TestStream& s, const Cut& c) {
  Octets bad(bytes_of(s, c).begin(), bytes_of(s, c).end());
  bad[0] ^= 0x40;  // a length that runs past the segment: what a misaligned segment looks like
  while (r.fast()) r.arrive(c.begin, bad);
}

TEST(Receiver, R44_R45_PlacedDataIsForgottenAtTheDowngradeAndTakenAgain) {
  Rng rng(1);
  const TestStream s = sends(rng, 4);
  const auto cut = aligned_cuts(s);
  MiniReceiver r(s, one_drop());
  EXPECT_EQ(r.arrive(cut[2].begin, bytes_of(s, cut[2])), Fate::Fast);  // packet 3
  EXPECT_EQ(r.counters.size(), 1u);
  // Packet 4 arrives cut in two: misaligned, downgraded, stored.
  const Cut head{cut[3].begin, cut[3].begin + 100}, tail{cut[3].begin + 100, cut[3].end};
  EXPECT_EQ(r.arrive(head.begin, bytes_of(s, head)), Fate::Dropped);
  EXPECT_EQ(r.arrive(head.begin, bytes_of(s, head)), Fate::Stored);
  EXPECT_FALSE(r.fast());
  EXPECT_EQ(r.counters.size(), 1u) << "the hole of what is stored, not of what was placed";
  EXPECT_EQ(r.list[0].begin, StreamOffset(0));
  EXPECT_EQ(r.list[0].block, StreamOffset(head.begin)) << "R-45, R-46: packet 3 is forgotten";
  EXPECT_EQ(r.arrive(tail.begin, bytes_of(s, tail)), Fate::Stored);
  EXPECT_EQ(r.arrive(cut[0].begin, bytes_of(s, cut[0])), Fate::Stored);
  EXPECT_EQ(r.arrive(cut[1].begin, bytes_of(s, cut[1])), Fate::Stored);
  EXPECT_EQ(r.list.rcv_nxt(), StreamOffset(cut[2].begin)) << "R-45: not over packet 3";
  EXPECT_EQ(r.delivered.sends, 2u);
  EXPECT_EQ(r.arrive(cut[2].begin, bytes_of(s, cut[2])), Fate::Stored) << "R-47: new again";
  EXPECT_TRUE(r.complete());
  EXPECT_EQ(r.placed_twice, 1u);
  EXPECT_EQ(r.delivered.sends, 4u) << "R-48: each once";
  EXPECT_EQ(r.memory, s.memory);
}

TEST(Receiver, R49_ATriggeringSegmentThatWouldCloseTheHoleDoesNotJumpOverForgottenData) {
  Rng rng(2);
  const TestStream s = sends(rng, 3);
  const auto cut = aligned_cuts(s);
  MiniReceiver r(s, one_drop());
  r.arrive(cut[1].begin, bytes_of(s, cut[1]));
  r.arrive(cut[2].begin, bytes_of(s, cut[2]));
  // In order, up to the edge of the block, and bad: stored at the downgrade.
  downgrade_by(r, s, cut[0]);
  EXPECT_EQ(r.list.rcv_nxt(), StreamOffset(cut[0].end));
  EXPECT_EQ(r.list.size(), 0u);
  EXPECT_EQ(r.delivered.sends, 0u);
}

TEST(Receiver, R27_R28_APersistentlyMisalignedPeerIsServedSlow) {
  for (const auto variant : {InLogicVariant::Fig9, InLogicVariant::Fig10}) {
    Rng rng(3);
    const TestStream s = sends(rng, 50, 700);
    ContextConfig config;
    config.variant = variant;
    MiniReceiver r(s, config);
    // A middlebox that cuts every 500 octets; the sender repeats what is not acknowledged.
    int arrivals = 0;
    while (!r.complete()) {
      const std::uint64_t una = r.list.rcv_nxt().value();
      const std::uint64_t end = std::min<std::uint64_t>(una - una % 500 + 500, s.bytes.size());
      r.arrive(una, bytes_of(s, {una, end}));
      ASSERT_LT(++arrivals, 1000);
    }
    EXPECT_FALSE(r.fast());
    EXPECT_EQ(r.downgrades, 1u);
    EXPECT_EQ(r.context.config.max_same_segment, 4u);
    EXPECT_LE(arrivals, 4 + 1 + 73) << "E-8: four drops, not thirty-two";
    EXPECT_EQ(r.delivered.sends, 50u);
    EXPECT_EQ(r.memory, s.memory);
  }
}

TEST(Receiver, R29_ACorruptedSegmentOnSlowEndsTheStream) {
  Rng rng(4);
  const TestStream s = sends(rng, 2);
  const auto cut = aligned_cuts(s);
  ContextConfig config = one_drop();
  config.initiated_as = fastpath::ConnectionType::Slow;
  MiniReceiver r(s, config);
  Octets bad(bytes_of(s, cut[0]).begin(), bytes_of(s, cut[0]).end());
  bad[50] ^= 1;
  r.arrive(0, bad);
  EXPECT_TRUE(r.dead);
  EXPECT_EQ(r.delivered.sends, 0u);
}

TEST(Receiver, R55_R56_CyclesKeepDataAndCountsExact) {
  Rng rng(5);
  const TestStream s = sends(rng, 200);
  const auto cut = aligned_cuts(s);
  MiniReceiver r(s, one_drop());
  for (std::size_t i = 0; i < cut.size(); ++i) {
    const auto piece = bytes_of(s, cut[i]);
    if (i % 20 == 10) {  // cut in two until it is taken
      for (int k = 0; k < 4 && r.list.rcv_nxt() == StreamOffset(cut[i].begin); ++k) {
        r.arrive(cut[i].begin, piece.first(50));
      }
      EXPECT_FALSE(r.fast());
      EXPECT_EQ(r.arrive(cut[i].begin + 50, piece.subspan(50)), Fate::Stored)
          << "R-52: a partial FPDU is pending";
    } else {
      r.arrive(cut[i].begin, piece);
    }
  }
  EXPECT_TRUE(r.complete());
  EXPECT_GT(r.upgrades, 2u);
  EXPECT_EQ(r.delivered.sends, 200u);
  EXPECT_EQ(r.memory, s.memory);
}

// Puts a whole valid FPDU of a Send into the payload of FPDU `i`, as any consumer could, and
// returns where it lies. It asks for the memory that its own octets go to.
Cut embed_fpdu(TestStream& s, std::size_t i) {
  constexpr std::uint32_t kAt = 10, kPayload = 20;
  const auto& f = s.fpdus[i];
  const auto begin = s.bytes.begin() + static_cast<std::ptrdiff_t>(f.begin);
  Octets ulpdu(begin + 2, begin + 2 + load_be16(&*begin));
  const std::uint32_t address = load_be32(ulpdu.data()) + kAt;
  Octets inner(TestStream::kHeader + kPayload, 0x66);
  store_be32(inner.data(), address);
  inner[4] = TestStream::Send;
  inner[5] = 1;
  const Octets trap = make_fpdu(inner);
  std::ranges::copy(trap, ulpdu.begin() + TestStream::kHeader + kAt);
  std::ranges::copy(trap, s.memory.begin() + address);
  std::ranges::copy(make_fpdu(ulpdu), begin);
  const std::uint64_t at = f.begin + 2 + TestStream::kHeader + kAt;
  return {at, at + trap.size()};
}

// E-12: a middlebox lets a segment begin at an FPDU inside a payload, out of order.
TEST(Receiver, E12_AnEmbeddedFpduPlacedOutOfOrderIsFoundWhenTheHoleClosesAndUndone) {
  Rng rng(6);
  TestStream s = sends(rng, 3, 500);
  const Cut trap_cut = embed_fpdu(s, 1);
  const auto cut = aligned_cuts(s);
  {
    MiniReceiver r(s, ContextConfig{});
    r.tolerate_false_frames = true;
    EXPECT_EQ(r.arrive(trap_cut.begin, bytes_of(s, trap_cut)), Fate::Fast) << "believed, for now";
    EXPECT_EQ(r.counters[0].sends, 1u);
    EXPECT_EQ(r.arrive(cut[0].begin, bytes_of(s, cut[0])), Fate::Fast);
    EXPECT_EQ(r.delivered.sends, 1u);
    // The chain of FPDUs from RCV.NXT runs across the block.
    EXPECT_EQ(r.arrive(cut[1].begin, bytes_of(s, cut[1])), Fate::Stored);
    EXPECT_EQ(r.verdict.outcome, Outcome::Downgrade);
    EXPECT_EQ(r.verdict.reason, Reason::Seam);
    r.arrive(cut[2].begin, bytes_of(s, cut[2]));
    EXPECT_TRUE(r.complete());
    EXPECT_EQ(r.delivered.sends, 3u) << "the message that never was is not delivered";
    EXPECT_EQ(r.memory, s.memory);
  }
  {
    ContextConfig store;
    store.place_out_of_order = false;
    MiniReceiver r(s, store);
    EXPECT_EQ(r.arrive(trap_cut.begin, bytes_of(s, trap_cut)), Fate::Stored);
    for (const Cut& c : cut) EXPECT_EQ(r.arrive(c.begin, bytes_of(s, c)), Fate::Fast);
    EXPECT_TRUE(r.complete());
    EXPECT_EQ(r.false_frames, 0u);
    EXPECT_EQ(r.memory, s.memory);
  }
}

// ---- random networks
// -----------------------------------------------------------------------------

using Rows = std::array<std::uint64_t, static_cast<std::size_t>(Reason::kCount)>;

// Aligned and re-cut segments in any order, lost, repeated, overlapping; holes limited or not;
// little or much memory; every policy. The receiver checks itself at each arrival; here: it ends,
// with the right memory and every message once.
void run_network(std::uint64_t seed, Rows* rows) {
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  Rng rng(seed);
  TestStream s;
  const std::size_t largest = rng.chance(0.1) ? 5000 : 600;
  ddp::MessageCounts total;
  for (int m = 0; m < 60; ++m) {
    const auto kind = static_cast<TestStream::Kind>(rng.below(TestStream::kKinds));
    const std::uint64_t pieces = 1 + rng.below(4);
    for (std::uint64_t p = 1; p <= pieces; ++p) s.add(rng, kind, rng.below(largest), p == pieces);
    count_message(total, kind);
  }
  std::vector<Cut> traps;
  if (rng.chance(0.2)) {
    for (std::size_t i = 0; i < s.fpdus.size(); i += 1 + rng.below(8)) {
      if (s.fpdus[i].end - s.fpdus[i].begin > 100) traps.push_back(embed_fpdu(s, i));
    }
  }
  ContextConfig config;
  config.variant = rng.chance(0.5) ? InLogicVariant::Fig9 : InLogicVariant::Fig10;
  config.max_recovery_attempts = static_cast<std::uint32_t>(1 + rng.below(40));
  config.max_same_segment = static_cast<std::uint32_t>(rng.below(6));
  config.upgrade_after = static_cast<std::uint32_t>(1 + rng.below(4));
  config.place_out_of_order = rng.chance(0.7);
  config.initiated_as =
      rng.chance(0.1) ? fastpath::ConnectionType::Slow : fastpath::ConnectionType::Fast;
  const std::uint32_t holes = std::vector<std::uint32_t>{1, 2, 3, 8, 256}[rng.below(5)];
  MiniReceiver r(s, config, holes, rng.chance(0.3) ? rng.below(4) * 16384 : 64u << 20);
  r.tolerate_false_frames = true;
  r.first_sn = static_cast<std::uint32_t>(rng.next());  // wraps sooner or later

  const auto cuts = aligned_cuts(s, 1 + rng.below(3));
  bool middlebox = rng.chance(0.3);
  const double loss = rng.chance(0.5) ? 0.2 : 0.0;
  const bool corrupting = rng.chance(0.3);
  std::uint64_t arrivals = 0;
  while (!r.complete() && !r.dead) {
    ASSERT_LT(++arrivals, 200000u) << "no end";
    if (rng.chance(0.005)) middlebox = !middlebox;
    // A sender with a window: any segment of it may come next, most often the oldest.
    const std::uint64_t una = r.list.rcv_nxt().value();
    auto oldest = std::ranges::find_if(cuts, [&](const Cut& c) { return c.end > una; });
    if (rng.chance(0.6)) {
      oldest += static_cast<std::ptrdiff_t>(
          rng.below(std::min<std::uint64_t>(12, static_cast<std::uint64_t>(cuts.end() - oldest))));
    }
    Cut c = *oldest;
    if (middlebox) {  // shifted and resized
      c.begin = c.begin - std::min<std::uint64_t>(c.begin, rng.below(50));
      c.end = std::min<std::uint64_t>(c.begin + 1 + rng.below(1400), s.bytes.size());
    } else if (rng.chance(0.05)) {  // joined
      const auto next = oldest + 1;
      if (next != cuts.end()) c.end = next->end;
    }
    if (!traps.empty() && rng.chance(0.1)) {  // a cut exactly there
      const auto t = std::ranges::find_if(traps, [&](const Cut& x) { return x.begin > una; });
      if (t != traps.end() && t->begin < una + 4000) c = *t;
    }
    if (rng.chance(loss)) continue;
    Octets payload(bytes_of(s, c).begin(), bytes_of(s, c).end());
    // Corruption that the checksum does not notice, where the drop repairs it: on FAST, below
    // limits.
    if (corrupting && r.fast() && rng.chance(0.02) && r.context.recovery_attempts == 0) {
      payload[rng.below(payload.size())] ^= static_cast<std::uint8_t>(1 + rng.below(255));
    }
    const Fate fate = r.arrive(c.begin, payload);
    if (fate == Fate::Fast || fate == Fate::Stored || fate == Fate::Dropped) {
      ++(*rows)[static_cast<std::size_t>(r.verdict.reason)];
    }
    if (::testing::Test::HasFailure()) return;
  }
  ASSERT_FALSE(r.dead);
  EXPECT_EQ(r.memory, s.memory);
  EXPECT_EQ(r.delivered.sends, total.sends);
  EXPECT_EQ(r.delivered.read_responses, total.read_responses);
  EXPECT_EQ(r.delivered.read_requests, total.read_requests);
  if (traps.empty() || !config.place_out_of_order) {
    EXPECT_EQ(r.false_frames, 0u);
  }
  EXPECT_TRUE(r.buffer.empty());
  EXPECT_EQ(r.pool.in_use(), 0u);
  if (config.initiated_as == fastpath::ConnectionType::Slow) {
    EXPECT_EQ(r.upgrades, 0u);
  }
  // I-3: without a downgrade nothing is ever placed twice.
  if (r.downgrades == 0) {
    EXPECT_EQ(r.placed_twice, 0u);
  }
}

class ReceiverNetwork : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(ReceiverNetwork, R101_R102_AnyArrivalGivesTheSameMemoryAndCounts) {
  Rows rows{};
  run_network(GetParam(), &rows);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReceiverNetwork, ::testing::Range<std::uint64_t>(1, 301));

TEST(ReceiverNetworkRows, EveryRowOfTheDecisionIsReached) {
  Rows rows{};
  for (std::uint64_t seed = 1; seed <= 300; ++seed) run_network(seed, &rows);
  // The last three are Fig 3's, for streams with markers: fig3_test.cpp.
  for (std::size_t i = 0; i < static_cast<std::size_t>(Reason::CrcCaseA); ++i) {
    EXPECT_GT(rows[i], 0u) << fastpath::reason_name(static_cast<Reason>(i));
    RecordProperty(std::string(fastpath::reason_name(static_cast<Reason>(i))),
                   std::to_string(rows[i]));
  }
}

}  // namespace
}  // namespace urnic::testing
