#include "tcp/corruption.h"

#include <gtest/gtest.h>

#include "tcp/tcb_state.h"

namespace urnic::tcp {
namespace {

constexpr std::uint32_t kSegment = 1000;

// Twenty segments in flight on a connection that agreed to E-42, with many bytes acknowledged
// before.
Tcb sender() {
  Tcb t;
  t.state = State::Established;
  t.naming_on = t.sack_on = true;
  t.syn_acked = t.syn_sent = 1;
  for (int i = 0; i < 20; ++i) {
    t.sent_segments.push(t.snd.nxt, kSegment, false, Instant{});
    t.snd.nxt += kSegment;
  }
  t.loss.corruption.spare = 1u << 30;
  return t;
}

void name(Tcb& t, std::uint32_t from, std::uint32_t to) {
  Segment s;
  s.opts.has_corrupted = true;
  s.opts.corrupted = {snd_seq(t, StreamOffset(from)), snd_seq(t, StreamOffset(to))};
  take_corrupted(t, s);
}

std::uint32_t lost(const Tcb& t) {
  return t.sent_segments.lost() / kSegment;
}

// proves: E-42
TEST(Corruption, AtMostEightNamedSegmentsAreResentTogether) {
  Tcb t = sender();
  for (std::uint32_t i = 0; i < 20; ++i) name(t, i * kSegment, (i + 1) * kSegment);
  EXPECT_EQ(lost(t), kNamedTogether);
  EXPECT_EQ(t.loss.state, Recovery::Disorder);
}

// proves: E-42
TEST(Corruption, OnlyWholeUnacknowledgedSegmentsAreResent) {
  Tcb t = sender();
  name(t, kSegment / 2, 2 * kSegment - 1);  // no whole segment
  name(t, 3 * kSegment, 3 * kSegment);      // empty
  name(t, 5 * kSegment, 4 * kSegment);      // backwards
  name(t, 20 * kSegment, 21 * kSegment);    // never sent
  name(t, 0u - kSegment, 0);                // acknowledged long ago
  EXPECT_EQ(lost(t), 0u);
  EXPECT_EQ(t.loss.state, Recovery::Open);
  name(t, 2 * kSegment, 4 * kSegment);
  EXPECT_EQ(lost(t), 2u);
}

// proves: E-42
TEST(Corruption, AnArrivedSegmentIsNotResent) {
  Tcb t = sender();
  Delivery d;
  t.sent_segments.sack(StreamOffset(kSegment), StreamOffset(2 * kSegment), false, &d);
  name(t, kSegment, 2 * kSegment);
  EXPECT_EQ(lost(t), 0u);
  EXPECT_EQ(t.loss.corruption.together, 0u);
}

// proves: E-42
TEST(Corruption, TheCountRestartsWhenNothingIsMissing) {
  Tcb t = sender();
  t.config.rack = false;
  for (std::uint32_t i = 0; i < kNamedTogether; ++i) name(t, i * kSegment, (i + 1) * kSegment);
  ASSERT_EQ(t.loss.corruption.together, kNamedTogether);
  // Everything has arrived.
  t.sent_segments.clear();
  t.snd.una = t.snd.nxt;
  loss_on_progress(t, Segment{}, AckNews{}, Instant{});
  EXPECT_EQ(t.loss.state, Recovery::Open);
  EXPECT_EQ(t.loss.corruption.together, 0u);
}

// proves: E-42
TEST(Corruption, AcknowledgedBytesCountForAtMostOneWindow) {
  Congestion cc;
  cc.smss = kSegment;
  cc.cwnd = 40 * kSegment;
  Corruption c;
  corruption_open(c, cc);
  EXPECT_EQ(c.spare, 32 * kSegment);
  corruption_earned(c, cc, kSegment);
  EXPECT_EQ(c.spare, 33 * kSegment);
  corruption_earned(c, cc, 100 * kSegment);
  EXPECT_EQ(c.spare, 40 * kSegment);
  cc.cwnd = kSegment;
  corruption_earned(c, cc, 1);
  EXPECT_EQ(c.spare, 32 * kSegment) << "one segment's, however small the window";
}

// The ACK that should have named it could not be sent, for lack of a frame.
// proves: E-42
TEST(Corruption, ASegmentThatArrivedMeanwhileIsNotNamed) {
  Tcb t = sender();
  Check c;
  c.begin = StreamOffset(0);
  c.end = StreamOffset(kSegment);
  note_corrupted(t, c);
  EXPECT_TRUE(plan_ack(t).corrupted);
  t.rcv.holes.insert(c.begin, c.end);
  EXPECT_FALSE(plan_ack(t).corrupted);
}

}  // namespace
}  // namespace urnic::tcp
