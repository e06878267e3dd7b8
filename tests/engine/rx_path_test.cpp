// The receive path of a whole engine against a peer played by hand: what each rule of the
// specification says about one segment, seen in memory, completions and ACKs.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "sim/pair.h"
#include "tests/support/hand_peer.h"

namespace urnic::test {
namespace {

using fastpath::ConnectionType;

// Four FPDUs of the same size, a Write each, at 0, kSize, 2 kSize, 3 kSize of the stream.
constexpr std::uint32_t kPayload = 402;
constexpr std::uint64_t kSize = 2 + 14 + kPayload + 2 + 4;

struct RxPath : ::testing::Test {
  HandPeer p;
  Rng rng{17};
  std::vector<Octets> data, fpdus;

  void prepare(std::size_t n = 4) {
    for (std::size_t i = 0; i < n; ++i) {
      data.push_back(testing::random_octets(rng, kPayload));
      fpdus.push_back(p.write(i * 1000, data.back()));
      ASSERT_EQ(fpdus.back().size(), kSize);
    }
  }
  void up(std::uint32_t max_attempts = 32) {
    ASSERT_TRUE(p.up([&](engine::ConnectParams& c) {
      c.context.max_recovery_attempts = max_attempts;
      c.context.max_same_segment = 0;
    }));
    ASSERT_TRUE(p.fast());
    prepare();
  }
  void up_slow() {
    ASSERT_TRUE(
        p.up([](engine::ConnectParams& c) { c.context.initiated_as = ConnectionType::Slow; }));
    prepare();
  }
  std::vector<Answer> send(std::size_t i) { return p.send(i * kSize, fpdus[i]); }
  Octets spoiled(std::size_t i) const {
    Octets f = fpdus[i];
    f[100] ^= 0x40;
    return f;
  }
  std::vector<Answer> send_spoiled(std::size_t i) { return p.send(i * kSize, spoiled(i)); }
  bool placed(std::size_t i) const { return p.at(i * 1000, kPayload) == data[i]; }
  // From FAST to SLOW by segment 0 in two pieces, until the limit is met; all of it is received
  // then.
  void make_downgraded() {
    const auto cut = fpdus[0].begin() + 100;
    for (int i = 0; i < 50 && p.fast(); ++i) p.send(0, Octets(fpdus[0].begin(), cut));
    ASSERT_FALSE(p.fast());
    p.send(100, Octets(cut, fpdus[0].end()));
    ASSERT_EQ(p.rcv_nxt(), kSize);
  }
};

// Receives completed so far; all of them by a message and none by a flush.
std::size_t good_receives(HandPeer& p) {
  for (const verbs::Cqe& c : p.receives()) EXPECT_EQ(c.completion.status, ddp::Status::Success);
  return p.receives().size();
}

Octets joined(std::initializer_list<Octets> parts) {
  Octets all;
  for (const Octets& part : parts) testing::append(all, part);
  return all;
}

// ---- types and alignment -----------------------------------------------------------------------

TEST_F(RxPath, TheConsumersTypeIsTheConnectionsAndCanBeAsked_R1) {
  ASSERT_TRUE(
      p.up([](engine::ConnectParams& c) { c.context.initiated_as = ConnectionType::Slow; }));
  EXPECT_FALSE(p.stats().fast);
  EXPECT_FALSE(p.stats().slow_reason.empty());
  HandPeer other;
  ASSERT_TRUE(
      other.up([](engine::ConnectParams& c) { c.context.initiated_as = ConnectionType::Fast; }));
  EXPECT_TRUE(other.stats().fast);
}

// proves, T-3, T-7
TEST_F(RxPath, AlignedValidSegmentsAreCutThroughAndAcknowledged) {
  up();
  auto a = send(0);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_TRUE(a[0].pure_ack());
  EXPECT_EQ(a[0].ack, kSize);
  EXPECT_TRUE(placed(0));
  a = p.send(kSize, joined({fpdus[1], fpdus[2], fpdus[3]}));
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, 4 * kSize);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(placed(i));
  const ConnectionStats s = p.stats();
  EXPECT_EQ(s.bytes_fast, 4 * kSize);
  EXPECT_EQ(s.bytes_slow, 0u);
  EXPECT_EQ(s.bytes_copied, 4u * kPayload) << "one copy of each payload octet";
  EXPECT_EQ(p.node().engine().reassembly_in_use(), 0u);
}

// proves, T-1
TEST_F(RxPath, EverythingOnSlowGoesThroughTheReassemblyBuffer) {
  up_slow();
  for (std::size_t i = 0; i < 4; ++i) {
    const auto a = send(i);
    ASSERT_EQ(a.size(), 1u);
    EXPECT_EQ(a[0].ack, (i + 1) * kSize);
    EXPECT_TRUE(placed(i));
    EXPECT_FALSE(p.fast());
  }
  const ConnectionStats s = p.stats();
  EXPECT_EQ(s.bytes_slow, 4 * kSize);
  EXPECT_EQ(s.bytes_fast, 0u);
  EXPECT_EQ(s.bytes_copied, 4 * (kSize + kPayload)) << "into the buffer and out of it";
}

TEST_F(RxPath, AlignedSegmentsOfADowngradedConnectionAreStored_R3) {
  up(1);  // N of the upgrade is 64
  make_downgraded();
  for (std::size_t i = 1; i < 4; ++i) send(i);
  EXPECT_FALSE(p.fast());
  EXPECT_EQ(p.stats().bytes_fast, 0u);
  EXPECT_EQ(p.stats().bytes_slow, 4 * kSize);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(placed(i));
}

TEST_F(RxPath, MisalignedSegmentsAreNeverCutThrough_R4) {
  up(1000);
  Octets all;
  for (const Octets& f : fpdus) testing::append(all, f);
  // Cut inside an FPDU, in order and not; and beginning inside one with whole ones behind it.
  const auto piece = [&](std::size_t from, std::size_t to) {
    return Octets(all.begin() + static_cast<std::ptrdiff_t>(from),
                  all.begin() + static_cast<std::ptrdiff_t>(to));
  };
  p.send(0, piece(0, kSize - 1));
  p.send(0, piece(0, kSize + 1));
  p.send(0, piece(0, 1));
  p.send(10, piece(10, kSize));
  p.send(kSize - 4, piece(kSize - 4, 3 * kSize));
  EXPECT_TRUE(p.untouched());
  EXPECT_EQ(p.stats().bytes_fast, 0u);
  EXPECT_EQ(p.rcv_nxt(), 0u);
}

TEST_F(RxPath, NothingIsAcknowledgedBeforeItsCrcIsGood_R5) {
  up();
  for (int i = 0; i < 3; ++i) {
    for (const Answer& a : send_spoiled(0)) EXPECT_EQ(a.ack, 0u);
  }
  const auto a = send(0);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, kSize);
}

// proves
TEST_F(RxPath, MessagesAreDeliveredOnlyWhenAllBeforeThemIsPlaced) {
  for (const bool fast : {true, false}) {
    SCOPED_TRACE(fast ? "FAST" : "SLOW");
    HandPeer h;
    ASSERT_TRUE(h.up([&](engine::ConnectParams& c) {
      c.context.initiated_as = fast ? ConnectionType::Fast : ConnectionType::Slow;
    }));
    for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(h.post_receive(i, i * 1000, 900));
    const Octets a = HandPeer::send_message(1, Octets(100, 1));
    const Octets b1 = HandPeer::send_message(2, Octets(200, 2), 0, false);
    const Octets b2 = HandPeer::send_message(2, Octets(50, 3), 200, true);
    const Octets c = HandPeer::send_message(3, Octets(70, 4));
    const std::uint64_t at_b1 = a.size(), at_b2 = at_b1 + b1.size(), at_c = at_b2 + b2.size();
    h.send(at_c, c);
    h.send(at_b2, b2);
    EXPECT_TRUE(h.receives().empty());
    h.send(0, a);
    ASSERT_EQ(good_receives(h), 1u);
    EXPECT_EQ(h.receives()[0].completion.byte_len, 100u);
    h.send(at_b1, b1);
    ASSERT_EQ(good_receives(h), 3u);
    for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(h.receives()[i].completion.wr_id, i);
    EXPECT_EQ(h.receives()[1].completion.byte_len, 250u);
    EXPECT_EQ(h.at(1000, 250), joined({Octets(200, 2), Octets(50, 3)}));
  }
}

// proves, H-3
TEST_F(RxPath, SegmentsOutOfOrderAreInMemoryBeforeTheGapIsFilled) {
  up();
  const auto a = send(2);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, 0u);
  ASSERT_EQ(a[0].sack.size(), 1u);
  EXPECT_EQ(a[0].sack[0], std::make_pair(2 * kSize, 3 * kSize));
  EXPECT_TRUE(placed(2));
  EXPECT_EQ(p.rcv_nxt(), 0u);
  EXPECT_EQ(p.stats().bytes_slow, 0u);
}

// proves, H-8
TEST_F(RxPath, WhatWasReceivedIsNeverPlacedAgain) {
  for (const bool fast : {true, false}) {
    SCOPED_TRACE(fast ? "FAST" : "SLOW");
    HandPeer h;
    ASSERT_TRUE(h.up([&](engine::ConnectParams& c) {
      c.context.initiated_as = fast ? ConnectionType::Fast : ConnectionType::Slow;
    }));
    const Octets one = h.write(0, Octets(300, 1)), two = h.write(1000, Octets(300, 2)),
                 far = h.write(2000, Octets(300, 3));
    h.send(0, one);
    h.send(3 * one.size(), far);
    // The buffers are the consumer's again.
    std::fill(h.region.begin(), h.region.end(), 0xcc);
    EXPECT_EQ(h.send(0, one).size(), 1u) << "a duplicate is acknowledged";
    h.send(3 * one.size(), far);
    h.send(0, joined({one, two}));
    EXPECT_EQ(h.at(0, 300), Octets(300, 0xcc));
    EXPECT_EQ(h.at(1000, 300), Octets(300, 2)) << "the new part of an overlap is taken";
    if (fast) {
      EXPECT_EQ(h.at(2000, 300), Octets(300, 0xcc)) << "placed before, though not delivered";
    }
    EXPECT_EQ(h.rcv_nxt(), 2 * one.size());
  }
}

// proves: R-99, H-9
TEST_F(RxPath, MessagesOfADuplicateOrAnOverlapCountOnce) {
  ASSERT_TRUE(p.up());
  std::vector<Octets> m;
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(p.post_receive(i, i * 1000, 900));
    m.push_back(HandPeer::send_message(static_cast<std::uint32_t>(i + 1), Octets(100, 7)));
  }
  const std::uint64_t n = m[0].size();
  p.send(2 * n, m[2]);
  p.send(2 * n, m[2]);
  p.send(n, joined({m[1], m[2], m[3]}));
  p.send(n, joined({m[1], m[2], m[3]}));
  EXPECT_TRUE(p.receives().empty());
  p.send(0, joined({m[0], m[1]}));
  ASSERT_EQ(good_receives(p), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(p.receives()[i].completion.wr_id, i);
}

// ---- drops -------------------------------------------------------------------------------------

// proves, T-9
TEST_F(RxPath, ASegmentWithOneBadFpduIsDroppedWhole) {
  up();
  const Octets broken[] = {joined({fpdus[0], spoiled(1), fpdus[2]}),
                           joined({fpdus[0], fpdus[1], spoiled(2)}),
                           joined({fpdus[0], spoiled(1), Octets{0xff, 0xff, 1, 2}})};
  for (const Octets& b : broken) {
    for (const Answer& a : p.send(0, b)) {
      EXPECT_EQ(a.ack, 0u);
      EXPECT_TRUE(a.sack.empty());
    }
    EXPECT_TRUE(p.untouched()) << "not even the valid FPDU in front";
    EXPECT_TRUE(p.fast());
    EXPECT_EQ(p.rcv_nxt(), 0u);
  }
  EXPECT_EQ(p.stats().bytes_fast, 0u);
  EXPECT_EQ(p.connection()->context.recovery_attempts, 3u);
}

TEST_F(RxPath, ADroppedSegmentLeavesNoTrace_R25) {
  up();
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_TRUE(p.post_receive(i, 20000 + i * 1000, 900));
  send(3);
  const ConnectionStats before = p.stats();
  const auto a = send_spoiled(1);
  for (const Answer& x : a) {
    EXPECT_EQ(x.ack, 0u);
    ASSERT_EQ(x.sack.size(), 1u);
    EXPECT_EQ(x.sack[0], std::make_pair(3 * kSize, 4 * kSize));
  }
  EXPECT_EQ(p.holes(), 1u);
  EXPECT_EQ(p.rcv_nxt(), 0u);
  const ConnectionStats after = p.stats();
  EXPECT_EQ(after.payload_placed, before.payload_placed);
  EXPECT_EQ(after.bytes_fast, before.bytes_fast);
  EXPECT_EQ(after.holes_opened, before.holes_opened);
  EXPECT_EQ(p.at(1000, kPayload), Octets(kPayload, 0));
  EXPECT_TRUE(p.receives().empty());
}

// proves
TEST_F(RxPath, TheGoodRetransmissionOfADroppedSegmentIsCutThrough) {
  up();
  send_spoiled(0);
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(p.rcv_nxt(), 0u);
  send(0);
  EXPECT_TRUE(placed(0));
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(p.stats().bytes_fast, kSize);
  EXPECT_EQ(p.stats().bytes_slow, 0u);
}

// proves
TEST_F(RxPath, AMisalignedPeerIsServedInTheEnd) {
  up(3);
  Octets all;
  for (const Octets& f : fpdus) testing::append(all, f);
  std::size_t sent = 0;
  for (std::size_t at = 0; at < all.size(); at = p.rcv_nxt()) {
    ASSERT_LT(++sent, 100u) << "no end";
    p.send(at, Octets(all.begin() + static_cast<std::ptrdiff_t>(at),
                      all.begin() + static_cast<std::ptrdiff_t>(std::min(at + 100, all.size()))));
  }
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(placed(i));
  EXPECT_FALSE(p.fast());
  EXPECT_EQ(p.stats().recovery_attempts, 3u) << "exactly so many drops";
  EXPECT_EQ(p.stats().downgrades, 1u);
  EXPECT_EQ(p.stats().bytes_slow, all.size());
}

// proves: R-29
TEST_F(RxPath, ACrcErrorInSlowDataTerminates) {
  up_slow();
  send(0);
  send_spoiled(1);
  EXPECT_EQ(p.stats().terminates_sent, 1u);
  EXPECT_FALSE(placed(1));
  EXPECT_NE(p.qp->state, verbs::QpState::Rts);
}

// proves, L-1
TEST_F(RxPath, TheRecoveryLimitIsTheConnectionsOwn) {
  for (const std::uint32_t max : {1u, 2u, 5u}) {
    HandPeer h;
    ASSERT_TRUE(h.up([&](engine::ConnectParams& c) {
      c.context.max_recovery_attempts = max;
      c.context.max_same_segment = 0;
    }));
    Octets bad = h.write(0, Octets(100, 1));
    bad[50] ^= 1;
    std::uint32_t drops = 0;
    while (h.fast() && drops < 50) {
      const auto a = h.send(0, bad);
      if (h.fast()) {
        ++drops;
        EXPECT_EQ(h.rcv_nxt(), 0u);
      } else {
        EXPECT_EQ(h.stats().bytes_slow, bad.size()) << "the next one is stored";
        ASSERT_FALSE(a.empty());
      }
    }
    EXPECT_EQ(drops, max);
  }
}

// A length field is corrupted, and the limit is 0 as in Fig 3 without limited recovery.
// proves, L-7
TEST_F(RxPath, ACorruptedLengthWithoutRecoveryEndsInTermination) {
  up(0);
  Octets bad = fpdus[0];
  bad[1] ^= 0x80;
  p.send(0, bad);
  EXPECT_FALSE(p.fast());
  EXPECT_EQ(p.stats().bytes_slow, kSize);
  for (std::size_t i = 1; i < 4; ++i) send(i);
  EXPECT_EQ(p.stats().terminates_sent, 1u);
  EXPECT_TRUE(p.untouched());
  EXPECT_NE(p.qp->state, verbs::QpState::Rts);
}

// ---- downgrade with data placed out of order, Fig 5 ---------------------------------------------

// Arrival 3 (FAST), then the downgrade by an error at 0, then 4, 1, 2.
// proves, H-10
TEST_F(RxPath, DataPlacedBeforeADowngradeComesAgainAndIsRight) {
  up(1);
  const std::uint64_t third = 2 * kSize;
  auto a = send(2);
  ASSERT_EQ(a.back().sack.size(), 1u);
  send_spoiled(3);
  ASSERT_TRUE(p.fast());
  // The consumer's memory must not be believed: what was placed is overwritten here.
  std::fill(p.region.begin() + 2000, p.region.begin() + 2000 + kPayload, 0xdd);
  a = p.send(3 * kSize, Octets(fpdus[3].begin(), fpdus[3].begin() + 100));  // 4, cut: downgrade
  ASSERT_FALSE(p.fast());
  for (const Answer& x : a) {
    EXPECT_EQ(x.ack, 0u);
    for (const auto& block : x.sack) EXPECT_NE(block.first, third) << "no longer reported";
  }
  ASSERT_EQ(a.back().sack.size(), 1u) << "what came after the downgrade is";
  EXPECT_EQ(a.back().sack[0], std::make_pair(3 * kSize, 3 * kSize + 100));
  send(0);
  a = send(1);
  EXPECT_EQ(a.back().ack, third) << "not over what was forgotten";
  EXPECT_EQ(p.rcv_nxt(), third);
  EXPECT_EQ(p.at(2000, kPayload), Octets(kPayload, 0xdd));
  send(2);
  EXPECT_TRUE(placed(2)) << "new data, placed over the earlier placement";
  send(3);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(placed(i));
  EXPECT_EQ(p.rcv_nxt(), 4 * kSize);
}

// proves
TEST_F(RxPath, ATriggeringSegmentThatFillsTheGapDoesNotPassForgottenData) {
  up(1);
  send(1);
  send_spoiled(2);
  ASSERT_TRUE(p.fast());
  // In order, exactly up to the block: with the hole still there RCV.NXT would jump over the block.
  const auto a = send_spoiled(0);
  EXPECT_FALSE(p.fast());
  EXPECT_EQ(a.front().ack, kSize);
}

// proves, H-10
TEST_F(RxPath, SendsCountedBeforeADowngradeCompleteOnceAfterIt) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) { c.context.max_recovery_attempts = 1; }));
  std::vector<Octets> m;
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(p.post_receive(i, i * 1000, 900));
    m.push_back(HandPeer::send_message(static_cast<std::uint32_t>(i + 1), Octets(100 + i, 7)));
  }
  std::vector<std::uint64_t> at = {0};
  for (const Octets& f : m) at.push_back(at.back() + f.size());
  p.send(at[1], m[1]);
  p.send(at[3], m[3]);
  Octets bad = m[0];
  bad[30] ^= 1;
  p.send(at[0], bad);
  ASSERT_TRUE(p.fast());
  p.send(at[0], Octets(m[0].begin(), m[0].begin() + 20));  // misaligned: the limit is met
  ASSERT_FALSE(p.fast());
  EXPECT_TRUE(p.receives().empty());
  for (std::size_t i = 0; i < 4; ++i) p.send(at[i], m[i]);
  ASSERT_EQ(good_receives(p), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(p.receives()[i].completion.wr_id, i);
    EXPECT_EQ(p.receives()[i].completion.byte_len, 100 + i);
  }
}

// ---- upgrade, Fig 6 ----------------------------------------------------------------------------

// proves
TEST_F(RxPath, AnUpgradeNeedsAnEmptyBufferAndCutsItsSegmentThrough) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) {
    c.context.max_recovery_attempts = 1;
    c.context.upgrade_after = 1;
  }));
  prepare();
  const Octets head(fpdus[0].begin(), fpdus[0].begin() + 40);
  p.send(0, head);
  p.send(0, head);
  ASSERT_FALSE(p.fast());
  // Part of an FPDU is pending: an aligned segment behind it is out of order, the rest misaligned.
  send(1);
  EXPECT_FALSE(p.fast());
  p.send(40, Octets(fpdus[0].begin() + 40, fpdus[0].end()));
  EXPECT_FALSE(p.fast());
  EXPECT_TRUE(placed(0) && placed(1));
  const std::uint64_t slow = p.stats().bytes_slow;
  send(2);
  EXPECT_TRUE(p.fast());
  EXPECT_TRUE(placed(2));
  EXPECT_EQ(p.stats().bytes_slow, slow) << "the triggering segment is cut through";
  EXPECT_EQ(p.stats().upgrades, 1u);
  EXPECT_EQ(p.connection()->context.recovery_attempts, 0u);
}

TEST_F(RxPath, AConnectionInitiatedSlowStaysSlow_R54) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) {
    c.context.initiated_as = ConnectionType::Slow;
    c.context.upgrade_after = 1;
  }));
  prepare();
  for (std::size_t i = 0; i < 4; ++i) send(i);
  EXPECT_FALSE(p.fast());
  EXPECT_EQ(p.stats().bytes_fast, 0u);
}

// ---- immediate duplicate ACK, section 7 --------------------------------------------------------

// proves
TEST_F(RxPath, ADropInOrderSendsExactlyOneDuplicateAckAtOnce) {
  up();
  send(0);
  for (int i = 0; i < 3; ++i) {
    const auto a = send_spoiled(1);
    ASSERT_EQ(a.size(), 1u) << "one, without any further arrival";
    EXPECT_TRUE(a[0].pure_ack());
    EXPECT_EQ(a[0].ack, kSize) << "RCV.NXT, unchanged";
    EXPECT_TRUE(a[0].sack.empty());
  }
  EXPECT_EQ(p.stats().immediate_dup_acks, 3u);
}

// proves
TEST_F(RxPath, ADropOutOfOrderSendsOneAndTheNextArrivalTheSecond) {
  up();
  auto a = send_spoiled(1);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, 0u);
  EXPECT_TRUE(a[0].sack.empty()) << "what was dropped is not reported";
  const std::uint16_t window = a[0].seg.window;
  a = send(2);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, 0u) << "the second duplicate ACK";
  EXPECT_EQ(a[0].seg.window, window) << "a duplicate has the same window (RFC 5681)";
  EXPECT_EQ(a[0].sack[0], std::make_pair(2 * kSize, 3 * kSize));
  a = send_spoiled(3);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].sack.size(), 1u);
  EXPECT_EQ(a[0].sack[0], std::make_pair(2 * kSize, 3 * kSize));
}

// proves: R-63, E-7
TEST_F(RxPath, AnOwedAckGoesBeforeTheDuplicateAck) {
  up();
  const auto a = p.burst({{0, fpdus[0]}, {kSize, spoiled(1)}, {2 * kSize, fpdus[2]}});
  ASSERT_EQ(a.size(), 3u);
  for (const Answer& x : a) EXPECT_EQ(x.ack, kSize);
  EXPECT_TRUE(a[0].sack.empty()) << "owed for segment 0";
  EXPECT_TRUE(a[1].sack.empty()) << "the duplicate for the drop";
  EXPECT_EQ(a[2].sack.size(), 1u);
}

// proves: E-7
TEST_F(RxPath, InOrderDataIsAcknowledgedOncePerBurst) {
  up();
  const auto a = p.burst({{0, fpdus[0]}, {kSize, fpdus[1]}, {2 * kSize, fpdus[2]}});
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, 3 * kSize);
}

// proves, H-11, E-10
TEST_F(RxPath, WhatTcpRefusesIsNoUlpDrop) {
  p.options.tcp.hole_limit = 1;
  up();
  // A wrong TCP checksum: no answer at all, no trace.
  EXPECT_TRUE(p.burst({{0, fpdus[0], true}}).empty());
  EXPECT_EQ(p.rcv_nxt(), 0u);
  // Not for this connection: at most a reset to whoever sent it.
  for (const Answer& a : p.burst({{0, fpdus[0], false, tcp::kAck, 41000}})) {
    EXPECT_TRUE(a.seg.has(tcp::kRst));
    EXPECT_EQ(a.seg.dst_port, 41000);
  }
  // One hole too many: TCP's ordinary duplicate ACK.
  send(1);
  const auto a = send(3);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].sack.size(), 1u);
  EXPECT_FALSE(placed(3));
  EXPECT_EQ(p.holes(), 1u);
  EXPECT_EQ(p.stats().immediate_dup_acks, 0u);
  EXPECT_EQ(p.stats().recovery_attempts, 0u);
  EXPECT_TRUE(p.fast());
}

TEST_F(RxPath, WithTheOptionOffADropIsSilent_R65) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) { c.context.immediate_dup_ack = false; }));
  prepare();
  EXPECT_TRUE(send_spoiled(0).empty());
  EXPECT_TRUE(send_spoiled(2).empty());
  const auto a = send(1);
  ASSERT_EQ(a.size(), 1u) << "the ordinary duplicate ACK of the next arrival";
  EXPECT_EQ(a[0].ack, 0u);
}

// proves
TEST_F(RxPath, TheAckGoesWithEachBoundedDropNotWithTheDowngrade) {
  up(2);
  send(0);
  for (int i = 0; i < 2; ++i) {
    const auto a = send_spoiled(1);
    ASSERT_EQ(a.size(), 1u);
    EXPECT_EQ(a[0].ack, kSize);
  }
  EXPECT_EQ(p.stats().immediate_dup_acks, 2u);
  const Octets part(fpdus[1].begin(), fpdus[1].begin() + 100);
  const auto a = p.send(kSize, part);
  EXPECT_FALSE(p.fast());
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, kSize + 100) << "stored and acknowledged";
  EXPECT_EQ(p.stats().immediate_dup_acks, 2u);
}

// proves: E-4
TEST_F(RxPath, ADroppedSegmentsOwnAcknowledgementIsTaken) {
  up();
  const ddp::Sge sge{p.to(0), 100, p.stag};
  ddp::SendWr wr;
  wr.op = ddp::WrOp::Send;
  wr.flags = ddp::kSignaled;
  wr.sges = {&sge, 1};
  send(0);  // the engine may send from the first FPDU on
  ASSERT_EQ(p.node().post_send(*p.qp, wr, p.now), ddp::Sender::Post::Ok);
  p.pass(Duration::us(10));
  ASSERT_NE(p.connection()->tcb.snd.una, p.connection()->tcb.snd.nxt);
  send_spoiled(1);
  EXPECT_EQ(p.connection()->tcb.snd.una, p.connection()->tcb.snd.nxt);
}

// ---- OutLogic ----------------------------------------------------------------------------------

// proves: R-87, E-6, E-36
TEST_F(RxPath, ATaggedSegmentOutsideItsRegionIsNotPlacedAndTerminatesInOrder) {
  up();
  const Octets outside =
      make_fpdu(ddp::test::write_segment(p.stag, p.to(p.region.size() - 10), Octets(kPayload, 1)));
  // Out of order: dropped, nothing said yet.
  p.send(kSize, outside);
  EXPECT_EQ(p.stats().terminates_sent, 0u);
  EXPECT_EQ(p.holes(), 0u);
  send(0);
  EXPECT_EQ(p.stats().terminates_sent, 0u);
  p.send(kSize, outside);
  EXPECT_EQ(p.stats().terminates_sent, 1u);
  EXPECT_EQ(p.at(p.region.size() - 10, 10), Octets(10, 0));
}

TEST_F(RxPath, ASendOutOfOrderGoesToTheReceiveItsMsnNames_R88) {
  ASSERT_TRUE(p.up());
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(p.post_receive(i, i * 1000, 900));
  p.send(5000, HandPeer::send_message(3, Octets(100, 9), 50, true));
  EXPECT_EQ(p.at(2050, 100), Octets(100, 9));
  EXPECT_EQ(p.at(0, 2050), Octets(2050, 0));
}

// proves
TEST_F(RxPath, NoReadResponseLeavesBeforeItsHoleCloses) {
  up();
  const Octets r1 = p.read_request(1, 10, 5000), r2 = p.read_request(2, 20, 5000);
  p.send(2 * kSize + r1.size(), r2);
  p.send(2 * kSize, r1);
  send(1);
  EXPECT_EQ(p.stats().read_responses_sent, 0u);
  EXPECT_EQ(p.stats().read_requests_received, 0u);
  const auto a = send(0);
  EXPECT_EQ(p.stats().read_requests_received, 2u);
  std::size_t octets = 0;
  for (const Answer& x : a) octets += x.payload.size();
  const std::size_t both = make_fpdu(Octets(14 + 10)).size() + make_fpdu(Octets(14 + 20)).size();
  EXPECT_EQ(octets, both) << "both responses";
}

// proves: R-94
TEST_F(RxPath, AWriteReportsNothing) {
  up();
  ASSERT_TRUE(p.post_receive(1, 20000, 100));
  send(1);
  send(0);
  p.pass(Duration::ms(10));
  EXPECT_TRUE(p.receives().empty());
  EXPECT_TRUE(p.sends().empty());
  EXPECT_TRUE(placed(0) && placed(1));
}

// ---- empty receive queue, section 10 -----------------------------------------------------------

// proves, E-5
TEST_F(RxPath, ASendWithoutAReceiveIsDroppedAndCompletesOnceOneIsPosted) {
  up();
  const Octets m = HandPeer::send_message(1, Octets(100, 5));
  // Behind a valid Write in the same segment: nothing of the segment is taken (E-5).
  const Octets both = joined({fpdus[0], m});
  for (int i = 0; i < 5; ++i) {
    const auto a = p.send(0, both);
    ASSERT_EQ(a.size(), 1u) << "one duplicate ACK per drop (Q-14)";
    EXPECT_EQ(a[0].ack, 0u);
  }
  EXPECT_TRUE(p.untouched());
  EXPECT_EQ(p.rcv_nxt(), 0u);
  EXPECT_NE(p.connection(), nullptr);
  ASSERT_TRUE(p.post_receive(77, 20000, 900));
  p.send(0, both);
  ASSERT_EQ(good_receives(p), 1u);
  EXPECT_EQ(p.receives()[0].completion.wr_id, 77u);
  EXPECT_EQ(p.at(20000, 100), Octets(100, 5));
  EXPECT_TRUE(placed(0));
}

TEST_F(RxPath, ASendOutOfOrderWhoseReceiveIsMissingIsDropped_R114) {
  ASSERT_TRUE(p.up());
  const Octets m1 = HandPeer::send_message(1, Octets(100, 5)),
               m2 = HandPeer::send_message(2, Octets(100, 6));
  ASSERT_TRUE(p.post_receive(1, 1000, 900));
  const auto a = p.send(m1.size(), m2);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_TRUE(a[0].sack.empty());
  EXPECT_EQ(p.holes(), 0u);
  EXPECT_TRUE(p.untouched());
  EXPECT_EQ(p.stats().empty_rq_drops, 1u);
  ASSERT_TRUE(p.post_receive(2, 2000, 900));
  p.send(m1.size(), m2);
  p.send(0, m1);
  ASSERT_EQ(good_receives(p), 2u);
  EXPECT_EQ(p.receives()[1].completion.wr_id, 2u);
}

TEST_F(RxPath, EmptyReceiveQueueDropsAreNoRecoveryAttempts_R115) {
  ASSERT_TRUE(p.up([](engine::ConnectParams& c) {
    c.context.max_recovery_attempts = 1;
    c.context.max_same_segment = 1;
  }));
  const Octets m = HandPeer::send_message(1, Octets(100, 5));
  for (int i = 0; i < 50; ++i) p.send(0, m);
  EXPECT_TRUE(p.fast());
  EXPECT_EQ(p.stats().recovery_attempts, 0u);
  EXPECT_EQ(p.connection()->context.recovery_attempts, 0u);
  EXPECT_EQ(p.stats().empty_rq_drops, 50u);
}

TEST_F(RxPath, OnSlowASendWithoutAReceiveTerminates_R116) {
  ASSERT_TRUE(
      p.up([](engine::ConnectParams& c) { c.context.initiated_as = ConnectionType::Slow; }));
  p.send(0, HandPeer::send_message(1, Octets(100, 5)));
  EXPECT_EQ(p.stats().terminates_sent, 1u);
  EXPECT_NE(p.qp->state, verbs::QpState::Rts);
}

TEST_F(RxPath, AMessageLongerThanItsReceiveTerminatesOnBothTypes_R117) {
  for (const auto type : {ConnectionType::Fast, ConnectionType::Slow}) {
    HandPeer h;
    ASSERT_TRUE(h.up([&](engine::ConnectParams& c) { c.context.initiated_as = type; }));
    ASSERT_TRUE(h.post_receive(1, 0, 99));
    h.send(0, HandPeer::send_message(1, Octets(100, 5)));
    EXPECT_EQ(h.stats().terminates_sent, 1u);
    EXPECT_NE(h.qp->state, verbs::QpState::Rts);
    EXPECT_TRUE(h.untouched());
  }
}

TEST_F(RxPath, AStarvedConnectionIsNudgedWhenAReceiveIsPosted_E17) {
  for (const bool nudge : {true, false}) {
    HandPeer h;
    h.options.rq_nudge = nudge;
    ASSERT_TRUE(h.up());
    const Octets m = HandPeer::send_message(1, Octets(100, 5));
    h.send(0, m);
    ASSERT_TRUE(h.post_receive(1, 0, 900));
    const auto a = h.pass(Duration::us(10));
    EXPECT_EQ(a.size(), nudge ? 3u : 0u);
    for (const Answer& x : a) EXPECT_EQ(x.ack, 0u);
  }
}

// ---- finding the connection --------------------------------------------------------------------

// What is no FPDU and of no connection goes through the validation unit unharmed.
TEST_F(RxPath, SegmentsOfNoConnectionAreTcpsAffair_R72) {
  up();
  const auto a = p.burst({{0, Octets(200, 0xa5), false, tcp::kAck, 41000}});
  ASSERT_EQ(a.size(), 1u);
  EXPECT_TRUE(a[0].seg.has(tcp::kRst));
  EXPECT_TRUE(p.fast());
}

// One completion queue serves the receive queues of two connections; the first of them has a hole.
TEST_F(RxPath, QueuePairsShareACompletionQueueWithHolesOpen_R110) {
  sim::PairOptions o;
  o.right.out_of_order = engine::Options::OutOfOrder::Place;
  sim::Pair pair(o);
  verbs::QueuePair* left[2];
  verbs::QueuePair* right[2];
  constexpr std::size_t kEach = 8;
  Octets receive(2 * kEach * 1000, 0), source(1000, 0x11);
  const std::uint32_t into =
      pair.right().register_memory(receive.data(), receive.size(), ddp::kLocalWrite);
  const std::uint32_t from = pair.left().register_memory(source.data(), source.size(), 0);
  for (std::size_t i = 0; i < 2; ++i) {
    left[i] = pair.left().make_qp();
    right[i] = pair.right().make_qp();
    ASSERT_TRUE(pair.connect(*left[i], *right[i]));
    for (std::size_t k = 0; k < kEach; ++k) {
      const std::size_t slot = i * kEach + k;
      const ddp::Sge sge{reinterpret_cast<std::uintptr_t>(receive.data()) + slot * 1000, 1000,
                         into};
      ASSERT_TRUE(pair.right().post_receive(*right[i], {slot, {&sge, 1}}, pair.now()));
    }
  }
  ASSERT_EQ(right[0]->receive_cq, right[1]->receive_cq);
  const auto send = [&](std::size_t i) {
    const ddp::Sge sge{reinterpret_cast<std::uintptr_t>(source.data()), 1000, from};
    ddp::SendWr wr;
    wr.sges = {&sge, 1};
    ASSERT_EQ(pair.left().post_send(*left[i], wr, pair.now()), ddp::Sender::Post::Ok);
  };
  // The first Send of connection 0 is lost, and the sender hears nothing that would repair it.
  pair.set_faults_left("loss=1.0");
  pair.set_faults_right("loss=1.0");
  send(0);
  pair.run_for(Duration::us(50));
  pair.set_faults_left("");
  for (std::size_t k = 1; k < kEach; ++k) send(0);
  pair.run_for(Duration::us(200));
  ASSERT_NE(pair.right().engine().find(right[0]->connection)->tcb.rcv.holes.size(), 0u);
  for (std::size_t k = 0; k < kEach; ++k) send(1);
  pair.run_for(Duration::us(200));
  pair.right().drain_completions();
  auto& done = pair.right().receive_done;
  ASSERT_EQ(done.size(), kEach) << "all of connection 1, none of the one with a hole";
  for (std::size_t k = 0; k < kEach; ++k) {
    EXPECT_EQ(done[k].completion.wr_id, kEach + k);
    EXPECT_EQ(done[k].completion.status, ddp::Status::Success);
  }
  pair.set_faults_right("");
  pair.run_for(Duration::s(3));
  pair.right().drain_completions();
  ASSERT_EQ(done.size(), 2 * kEach);
  for (std::size_t k = 0; k < kEach; ++k) {
    EXPECT_EQ(done[kEach + k].completion.wr_id, k);
    EXPECT_EQ(done[kEach + k].completion.status, ddp::Status::Success);
  }
}

// Two connections between the same hosts: what one sends must not reach the other.
TEST_F(RxPath, EachConnectionGetsItsOwnSegments_R73) {
  sim::PairOptions o;
  sim::Pair pair(o);
  verbs::QueuePair* left[2];
  verbs::QueuePair* right[2];
  Octets receive(4000, 0), source(2000, 0x11);
  std::fill(source.begin() + 1000, source.end(), 0x22);
  const std::uint32_t into =
      pair.right().register_memory(receive.data(), receive.size(), ddp::kLocalWrite);
  const std::uint32_t from = pair.left().register_memory(source.data(), source.size(), 0);
  const auto address = [](const Octets& v, std::size_t i) {
    return reinterpret_cast<std::uintptr_t>(v.data()) + i;
  };
  for (std::size_t i = 0; i < 2; ++i) {
    left[i] = pair.left().make_qp();
    right[i] = pair.right().make_qp();
    ASSERT_TRUE(pair.connect(*left[i], *right[i]));
    const ddp::Sge sge{address(receive, 2000 * i), 1000, into};
    ASSERT_TRUE(pair.right().post_receive(*right[i], {i, {&sge, 1}}, pair.now()));
  }
  for (int round = 0; round < 2; ++round) {
    const std::size_t i = 1 - static_cast<std::size_t>(round);
    const ddp::Sge sge{address(source, 1000 * i), 1000, from};
    ddp::SendWr wr;
    wr.sges = {&sge, 1};
    ASSERT_EQ(pair.left().post_send(*left[i], wr, pair.now()), ddp::Sender::Post::Ok);
    pair.run_for(Duration::ms(5));
  }
  EXPECT_EQ(receive[0], 0x11);
  EXPECT_EQ(receive[999], 0x11);
  EXPECT_EQ(receive[2000], 0x22);
  EXPECT_EQ(receive[2999], 0x22);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(pair.right().engine().qp_stats(*right[i]).sends_received, 1u);
  }
}

// proves: R-74
TEST_F(RxPath, ATupleThatIsNotKnownFindsNoConnection) {
  up();
  const auto before = p.node().engine().counters();
  const auto a = p.burst({{0, fpdus[0], false, tcp::kAck, 41000}});
  EXPECT_TRUE(p.untouched());
  EXPECT_EQ(p.rcv_nxt(), 0u);
  EXPECT_EQ(p.node().engine().counters().rx_no_connection, before.rx_no_connection + 1);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_TRUE(a[0].seg.has(tcp::kRst));
}

}  // namespace
}  // namespace urnic::test
