// Congestion control of a requester (S-10): what closes its window, and what does not.
#include "ib/congestion.h"

#include "tests/ib/requester_bench.h"

namespace urnic::ib {
namespace {

using verbs::WrOp;

class RequesterCongestion : public RequesterBench {
 protected:
  RequesterCongestion() { rules.congestion = CongestionRule::Window; }

  std::uint32_t window() { return r().state().congestion.packets(); }
  const CongestionCounters& counted() { return r().state().congestion.counters(); }
  std::uint32_t next_psn() { return r().state().fresh.psn.value(); }
  void post_packets(std::uint32_t n) { post(WrOp::Write, n * kPmtu); }

  // Sends Writes, each window answered after 50 us, until the window has `packets` packets, or for
  // 100 round trips.
  void open(std::uint32_t packets) {
    for (int i = 0; i < 100 && window() < packets; ++i) {
      if (r().state().wqes.queue().all_started()) post_packets(200);
      leave();
      pass(Duration::us(50));
      ack(next_psn() - 1);
      completions();
    }
    ASSERT_GE(window(), packets);
  }
  // Fills the window; returns the packets in flight.
  std::uint32_t fill() {
    leave();
    while (r().state().in_flight < window()) {
      post_packets(200);
      leave();
    }
    return r().state().in_flight;
  }
};

// proves: S-10
TEST_F(RequesterCongestion, AtMostAWindowOfPacketsIsInFlight) {
  post_packets(200);
  EXPECT_EQ(leave().size(), AimdWindow::kFirst);
  ack(next_psn() - 1 - AimdWindow::kFirst / 2);
  const std::size_t more = leave().size();
  EXPECT_GE(more, AimdWindow::kFirst / 2);
  EXPECT_EQ(r().state().in_flight, window());
}

// proves: S-10
TEST_F(RequesterCongestion, WithCongestionControlOffTheConfiguredWindowApplies) {
  rules.congestion = CongestionRule::Off;
  rules.window = 77;
  post_packets(200);
  EXPECT_EQ(leave().size(), 77u);
  for (int i = 0; i < 10; ++i) r().notified(now);
  ack(next_psn() - 1);
  EXPECT_EQ(leave().size(), 77u);
  EXPECT_EQ(counted().cnps, 10u);
  EXPECT_EQ(counted().cnps_ignored, 10u);
  EXPECT_EQ(counted().cuts, 0u);
}

// proves: S-10
TEST_F(RequesterCongestion, AFullWindowRequestsAnAckAndAReducedOneEveryQuarter) {
  rules.ack_every = 1000;
  post_packets(200);
  const auto sent = leave();
  EXPECT_TRUE(sent.back().ask());
  std::size_t asks = 0;
  for (const SentPacket& p : sent) asks += p.ask() ? 1 : 0;
  EXPECT_EQ(asks, 4u);
}

// proves: S-10, IB-146
TEST_F(RequesterCongestion, ACnpReducesTheWindowOncePerFlight) {
  open(256);
  ASSERT_EQ(fill(), 256u);
  for (int i = 0; i < 50; ++i) r().notified(now);
  EXPECT_EQ(window(), 128u);
  EXPECT_EQ(counted().cnps, 50u);
  EXPECT_EQ(counted().cnps_ignored, 49u);
  // The packets sent before have arrived: the next CNP is new information.
  ack(next_psn() - 1);
  EXPECT_EQ(fill(), 128u);
  r().notified(now);
  EXPECT_EQ(window(), 64u);
}

// proves: S-10
TEST_F(RequesterCongestion, ACnpWithNothingInFlightIsIgnoredAndCounted) {
  open(256);
  ack(next_psn() - 1);
  ASSERT_TRUE(r().drained());
  r().notified(now);
  EXPECT_EQ(window(), 256u);
  EXPECT_EQ(counted().cnps, 1u);
  EXPECT_EQ(counted().cnps_ignored, 1u);
}

// proves: S-10
TEST_F(RequesterCongestion, AFloodOfCnpsDoesNotReduceTheWindowBelowTheFloor) {
  open(256);
  for (int i = 0; i < 200; ++i) {
    ASSERT_GE(fill(), AimdWindow::kFloor);
    for (int k = 0; k < 20; ++k) r().notified(now);
    pass(Duration::us(50));
    ack(next_psn() - 1);
    completions();
  }
  EXPECT_EQ(window(), AimdWindow::kFloor);
}

// proves: S-10
TEST_F(RequesterCongestion, ATimeoutReducesTheWindowToTheFloorForRepetitionsToo) {
  open(256);
  ASSERT_EQ(fill(), 256u);
  pass(Duration::ms(5));
  ASSERT_EQ(r().counters().timeouts, 1u);
  EXPECT_EQ(window(), AimdWindow::kFloor);
  const auto again = leave();
  EXPECT_EQ(again.size(), AimdWindow::kFloor);
  EXPECT_TRUE(again.back().ask());
  ack(again[0].psn());
  EXPECT_EQ(leave().size(), 1u);
}

// proves: S-10
TEST_F(RequesterCongestion, SingleLossesDoNotReduceTheWindow) {
  open(256);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(fill(), 256u);
    const std::uint32_t una = r().state().una.psn.value();
    nak(una + 100, NakCode::SequenceError);
    EXPECT_EQ(window(), 256u);
    pass(Duration::us(50));
    leave();
    ack(next_psn() - 1);
    completions();
  }
  EXPECT_EQ(counted().cuts, 0u);
}

// proves: S-10
TEST_F(RequesterCongestion, LosingMoreThanATwentiethReducesTheWindow) {
  qp.peer_selective = true;
  open(256);
  for (const std::uint32_t lost : {12u, 13u}) {
    ASSERT_EQ(fill(), 256u);
    const Psn una = r().state().una.psn;
    pass(Duration::us(50));
    // Everything after the first one has arrived.
    SackBytes bytes;
    SackWriter writer(&bytes, lost);
    for (std::uint32_t i = lost; i < 256; ++i) writer.set(i);
    ParsedPacket p = acknowledge((una - 1).value(), Syndrome::ack(kNoCredits), 0);
    p.header.bth.opcode = kSackOpcode;
    p.payload = writer.payload();
    take(p);
    pass(Duration::us(50));
    EXPECT_EQ(window(), lost == 12 ? 256u : 179u) << lost;
    leave();
    pass(Duration::us(50));
    ack(next_psn() - 1);
    completions();
    for (int i = 0; i < 3; ++i) {  // later windows forget the losses of the first
      fill();
      pass(Duration::us(50));
      ack(next_psn() - 1);
      completions();
    }
  }
}

// proves: S-10
TEST_F(RequesterCongestion, LongerRoundTripsReduceTheWindow) {
  open(256);
  for (int i = 0; i < 3; ++i) {
    fill();
    pass(Duration::us(500));
    ack(next_psn() - 1);
    completions();
  }
  EXPECT_LT(window(), 256u);
  EXPECT_GE(counted().cuts, 1u);
}

// proves: S-10
TEST_F(RequesterCongestion, ARepeatedPacketIsNotUsedToMeasureARoundTrip) {
  open(256);
  fill();
  const std::uint32_t una = r().state().una.psn.value();
  pass(Duration::us(500));
  nak(una, NakCode::SequenceError);
  leave();
  pass(Duration::us(500));
  ack(next_psn() - 1);
  completions();
  EXPECT_EQ(window(), 256u);
}

// proves: S-10
TEST_F(RequesterCongestion, WithAReducedWindowReadsAreSentOneByOne) {
  post_packets(200);
  for (int i = 0; i < 20; ++i) {
    leave();
    if (r().drained()) break;
    if (r().state().in_flight != 0) r().notified(now);
    pass(Duration::us(50));
    ack(next_psn() - 1);
    completions();
  }
  ASSERT_LT(window(), 10u);
  while (!r().state().wqes.queue().all_started() || r().state().fresh.packet != 0) {
    leave();
    pass(Duration::us(50));
    ack(next_psn() - 1);
    completions();
  }
  ASSERT_TRUE(r().drained());
  ASSERT_LT(window(), 100u);
  post(WrOp::Read, 100 * kPmtu);
  post(WrOp::Read, 100 * kPmtu);
  EXPECT_EQ(leave().size(), 1u) << "one may be longer than the window";
}

// proves: S-10
TEST_F(RequesterCongestion, DcqcnReactsToCnpsAndNotToRoundTrips) {
  rules.congestion = CongestionRule::Dcqcn;
  EXPECT_EQ(fill(), 256u);
  pass(Duration::ms(1));
  ack(next_psn() - 1);
  EXPECT_EQ(window(), 256u);
  completions();
  ASSERT_EQ(fill(), 256u);
  r().notified(now);
  EXPECT_EQ(window(), 128u);
  EXPECT_EQ(counted().cuts, 1u);
  pass(Duration::us(10));
  r().notified(now);
  EXPECT_EQ(window(), 128u);
  EXPECT_EQ(counted().cnps_ignored, 1u);
  pass(Duration::us(200));
  ack(next_psn() - 1);
  EXPECT_GT(window(), 190u);
}

// The ACK of a packet sent after a loss may have waited for the repetition.
// proves: S-10
TEST(Congestion, ARoundWithALossIsNotUsedToMeasureARoundTrip) {
  constexpr std::uint32_t kMost = 256;
  const Duration trip = Duration::us(50);
  for (const bool loses : {false, true}) {
    Congestion c(CongestionRule::Window, kMost);
    Instant now = Instant::from_ns(1'000'000);
    std::uint32_t psn = 0;
    const auto round = [&](Duration takes, bool lose) {
      c.left(Psn(psn), true, false, true, now);
      if (lose) c.lost(1, Psn(psn + 1), now);
      now = now + takes;
      ++psn;
      c.acknowledged(Psn(psn), Psn(psn), now);
    };
    for (int i = 0; i < 12; ++i) round(trip, false);
    round(Duration::ms(20), loses);
    EXPECT_EQ(c.counters().cuts, loses ? 0u : 1u);
  }
}

}  // namespace
}  // namespace urnic::ib
