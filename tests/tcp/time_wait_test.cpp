// TIME-WAIT without a control block: the same replies as the control block gives.
#include "tcp/time_wait.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/support/allocator.h"
#include "tests/tcp/host.h"

namespace urnic::tcp::test {
namespace {

const FlowKey kKey{IpAddress::v4(10, 0, 0, 1), IpAddress::v4(10, 0, 0, 2), 1000, 2000};

class TimeWaitTest : public ::testing::Test {
 protected:
  // A control block in TIME-WAIT: 100 bytes were received, 50 were sent.
  Tcb in_time_wait(bool timestamps) {
    Config config;
    config.timestamps = timestamps;
    config.challenge_key = 5;
    Tcb t;
    Segment syn = segment(peer, kSyn);
    syn.opts.has_mss = syn.opts.sack_permitted = true;
    syn.opts.mss = 1460;
    open_passive(t, config, Seq(9000), syn, now);
    leave(t, 0);
    take(t, segment(peer + 1, kAck, 9001));
    take(t, segment(peer + 1, kAck, 9001, 100));
    leave(t, 50);
    shutdown_send(t, now);
    leave(t, 50);
    take(t, segment(peer + 101, kAck, 9052));
    take(t, segment(peer + 101, kAck | kFin, 9052));
    EXPECT_EQ(t.state, State::TimeWait);
    return t;
  }
  Segment segment(Seq seq, std::uint16_t flags, std::uint32_t ack = 0, std::size_t bytes = 0) {
    Segment s;
    s.src_port = 2000;
    s.dst_port = 1000;
    s.seq = seq;
    s.ack = Seq(ack);
    s.flags = flags;
    s.window = 60000;
    s.opts.has_ts = true;
    s.opts.tsval = ++stamp;
    s.payload = ByteView(zeros).first(bytes);
    return s;
  }
  void take(Tcb& t, const Segment& s) {
    const Check c = check(t, s, now);
    ASSERT_EQ(c.action, Action::Process);
    take_ack(t, s, c, now);
    if (c.arrival != Arrival::None) commit(t, c.begin, c.end, c.fin, false, now);
    leave(t, 50);
  }
  void leave(Tcb& t, std::uint64_t source) {
    for (SendPlan p; (p = plan_send(t, {StreamOffset(source), false}, now)).kind != Send::None;) {
      sent(t, p, p.limit, false, now);
    }
  }

  const Seq peer = Seq(0xffffffc0);  // wraps around
  Instant now = Instant::from_ns(5'000'000'000);
  std::uint32_t stamp = 100;
  std::vector<std::uint8_t> zeros = std::vector<std::uint8_t>(2000);
  HostCounters counters;
  TimeWaitTable table{SipKey{1, 2}};
};

TEST_F(TimeWaitTest, ARepeatedFinIsAcknowledgedAndRestartsTheWait_RFC9293_3_10_7_4) {
  const Tcb t = in_time_wait(true);
  table.add(kKey, t);
  now = now + Duration::s(40);
  Segment reply;
  const auto v =
      table.take(kKey, segment(peer + 101, kAck | kFin, 9052), true, &reply, counters, now);
  EXPECT_EQ(v, TimeWaitTable::Disposition::Reply);
  EXPECT_EQ(reply.seq, Seq(9052));
  EXPECT_EQ(reply.ack, peer + 102);
  EXPECT_EQ(reply.flags, kAck);
  EXPECT_EQ(reply.dst_port, 2000);
  EXPECT_TRUE(reply.opts.has_ts);
  EXPECT_EQ(reply.opts.tsecr, stamp);
  table.run(now + Duration::ms(59999));
  EXPECT_EQ(table.size(), 1u);
  table.run(now + Duration::s(60));
  EXPECT_EQ(table.size(), 0u);
  EXPECT_TRUE(table.next_deadline().is_never());
}

TEST_F(TimeWaitTest, OtherSegmentsDoNotProlongTimeWait) {
  table.add(kKey, in_time_wait(false));
  Segment reply;
  for (int i = 0; i < 5; ++i) {
    now = now + Duration::s(10);
    table.take(kKey, segment(peer + 90000, kAck, 9052, 10), true, &reply, counters, now);
    table.take(kKey, segment(peer + 50, kAck, 9052, 10), true, &reply, counters, now);
  }
  table.run(now + Duration::s(10));
  EXPECT_EQ(table.size(), 0u);
}

TEST_F(TimeWaitTest, ASynReopensIfThereIsAListener_RFC9293_3_6_1) {
  table.add(kKey, in_time_wait(false));
  Segment reply;
  const Segment syn = segment(peer + 5000, kSyn);
  EXPECT_NE(table.take(kKey, syn, false, &reply, counters, now),
            TimeWaitTable::Disposition::Reopen);
  EXPECT_EQ(table.take(kKey, syn, true, &reply, counters, now), TimeWaitTable::Disposition::Reopen);
  EXPECT_EQ(table.take(kKey, syn, true, &reply, counters, now), std::nullopt);
}

TEST_F(TimeWaitTest, OnlyARstAtRcvNxtEndsTimeWait_RFC5961_3) {
  table.add(kKey, in_time_wait(false));
  Segment reply;
  EXPECT_EQ(table.take(kKey, segment(peer + 200, kRst), true, &reply, counters, now),
            TimeWaitTable::Disposition::Reply);
  EXPECT_EQ(counters.challenge_acks, 1u);
  EXPECT_EQ(table.take(kKey, segment(peer + 102, kRst), true, &reply, counters, now),
            TimeWaitTable::Disposition::Nothing);
  EXPECT_EQ(table.size(), 0u);
}

// For random segments, the table replies as the control block would.
TEST_F(TimeWaitTest, RepliesLikeTheControlBlock) {
  Rng rng(11);
  for (const bool timestamps : {false, true}) {
    Tcb t = in_time_wait(timestamps);
    TimeWaitTable one{SipKey{3, 4}};
    one.add(kKey, t);
    HostCounters n1, n2;
    for (int i = 0; i < 3000; ++i) {
      now = now + Duration::ms(static_cast<std::int64_t>(rng.below(5)));
      // Not from before the stream began, because the table does not know that position.
      const auto near = static_cast<std::uint32_t>(rng.below(180)) - 90;
      Segment s = segment(peer + 102 + near,
                          static_cast<std::uint16_t>(rng.below(32) & ~std::uint64_t{kSyn}),
                          9052 - static_cast<std::uint32_t>(rng.below(3)), rng.below(3) * 40);
      if (s.has(kRst) && s.seq == peer + 102) continue;
      if (rng.below(4) == 0) s.opts.tsval -= 50;
      Segment reply;
      const auto v = one.take(kKey, s, false, &reply, n1, now);
      const Check c = check(t, s, now);
      const Answer a = answer(t, c, s, n2, now);
      bool ack = a.kind == Answer::Kind::Send;
      if (a.kind == Answer::Kind::Process) {
        take_ack(t, s, c, now);
        ack = refuse(t, c, false, false, now) == AckNeed::Now;
      }
      ASSERT_EQ(v == TimeWaitTable::Disposition::Reply, ack) << i;
      ASSERT_EQ(one.contains(kKey), true) << i;
    }
    EXPECT_EQ(n1.challenge_acks, n2.challenge_acks);
    EXPECT_EQ(n1.challenge_acks_withheld, n2.challenge_acks_withheld);
    EXPECT_GE(one.next_deadline(), Instant::from_ns(5'000'000'000) + Duration::s(60));
    one.run(t.timers.time_wait - Duration::ns(1));
    EXPECT_EQ(one.size(), 1u);
    one.run(t.timers.time_wait);
    EXPECT_EQ(one.size(), 0u);
  }
}

// If an allocation fails, no entry is left that would never end.
TEST_F(TimeWaitTest, AFailedAllocationLeavesNoEntry) {
  const Tcb t = in_time_wait(true);
  std::uint64_t failed = 1;
  for (std::uint64_t k = 0; failed != 0; ++k) {
    TimeWaitTable fresh(SipKey{1, 2});
    {
      const urnic::testing::NoMemory plan(k);
      try {
        fresh.add(kKey, t);
      } catch (const std::bad_alloc&) {
        EXPECT_EQ(fresh.size(), 0u) << "allocation " << k;
      }
      failed = plan.failed();
    }
    fresh.run(t.timers.time_wait);
    EXPECT_EQ(fresh.size(), 0u) << "allocation " << k;
    EXPECT_TRUE(fresh.next_deadline().is_never());
  }
}

FlowKey from_port(std::uint16_t port) {
  FlowKey key = kKey;
  key.remote_port = port;
  return key;
}

// At the limit, one more connection ends the one that would have ended first. A prolonged one does
// not end.
// proves: E-50
TEST_F(TimeWaitTest, AFullTableDropsTheConnectionThatEndsFirst) {
  TimeWaitTable small(SipKey{1, 2}, 3);
  Tcb t = in_time_wait(true);
  for (std::uint16_t i = 1; i <= 3; ++i) {
    t.timers.time_wait = now + Duration::s(10 + i);
    small.add(from_port(i), t);
  }
  Segment answer;
  ASSERT_TRUE(small.take(from_port(1), segment(peer + 101, kAck | kFin, 9052), false, &answer,
                         counters, now));
  t.timers.time_wait = now + Duration::s(20);
  small.add(from_port(4), t);
  EXPECT_EQ(small.size(), 3u);
  EXPECT_FALSE(small.contains(from_port(2)));
  for (const std::uint16_t i : {1, 3, 4}) EXPECT_TRUE(small.contains(from_port(i))) << i;
  small.run(now + Duration::s(200));
  EXPECT_EQ(small.size(), 0u);
  EXPECT_EQ(small.ends(), 0u);
  t.timers.time_wait = now + Duration::s(260);
  for (std::uint16_t i = 1; i <= 3; ++i) small.add(from_port(i), t);
  EXPECT_EQ(small.size(), 3u) << "and is of use again";
}

// The same endpoints connect again and again, before the time of the old connection is up (RFC
// 6191). The list of ends stays bounded, and each connection has one entry.
// proves: E-50
TEST_F(TimeWaitTest, RepeatedConnectionsLeaveABoundedListOfEnds) {
  Tcb t = in_time_wait(true);
  for (int i = 0; i < 10'000; ++i) {
    now = now + Duration::ms(1);
    t.timers.time_wait = now + Duration::s(60);
    table.add(kKey, t);
    Segment answer;
    if (i == 9'999) break;
    ASSERT_EQ(table.take(kKey, segment(peer + 1000, kSyn), true, &answer, counters, now),
              TimeWaitTable::Disposition::Reopen);
  }
  EXPECT_LE(table.ends(), 1100u);
  table.run(now + Duration::ms(59'999));
  EXPECT_EQ(table.ends(), 1u) << "those of the earlier ones are no ends of the last";
  EXPECT_TRUE(table.contains(kKey));
  table.run(now + Duration::s(60));
  EXPECT_EQ(table.size(), 0u);
}

TEST_F(TimeWaitTest, IsSmall) {
  EXPECT_LE(sizeof(TimeWait), 120u);
}

}  // namespace
}  // namespace urnic::tcp::test
