#include "fastpath/hole_counters.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/rng.h"

namespace urnic::fastpath {
namespace {

using ddp::MessageCounts;
using tcp::HoleChange;

StreamOffset at(std::uint64_t v) {
  return StreamOffset(v);
}

MessageCounts sends(std::uint32_t n) {
  MessageCounts c;
  c.sends = n;
  return c;
}

// The receive side of one connection: counts what TCP commits, and returns what may be delivered.
struct Receive {
  struct Delivered {
    HoleChange change;
    MessageCounts own, behind;
  };
  Delivered commit(std::uint64_t begin, std::uint64_t end, const MessageCounts& c) {
    Delivered d;
    const tcp::HoleEvent e = holes.insert(at(begin), at(end));
    d.change = e.change;
    d.behind = counters.on_commit(e, c, &d.own);
    EXPECT_EQ(counters.size(), holes.size()) << "in step with the hole list";
    return d;
  }
  Delivered commit(std::uint64_t begin, std::uint64_t end, std::uint32_t n) {
    return commit(begin, end, sends(n));
  }
  void expect_counts(std::initializer_list<std::uint32_t> per_hole) {
    ASSERT_EQ(counters.size(), per_hole.size());
    std::size_t i = 0;
    for (const std::uint32_t n : per_hole) {
      EXPECT_EQ(counters[i].sends, n) << "hole " << i;
      ++i;
    }
  }
  tcp::HoleList holes;
  HoleCounters counters;
};

// ---- the table of section 9.2, row by row

// proves: H-1
TEST(HoleCounters, InOrderWithoutHolesIsDeliveredAtOnce) {
  Receive r;
  const auto d = r.commit(0, 100, 2);
  EXPECT_EQ(d.change, HoleChange::InOrder);
  EXPECT_EQ(d.own.sends, 2u);
  EXPECT_FALSE(d.behind.any());
  r.expect_counts({});
}

// proves: H-1
TEST(HoleCounters, InOrderThatLeavesTheHoleOpenLeavesItsCountsAlone) {
  Receive r;
  r.commit(200, 300, 5);
  const auto d = r.commit(0, 100, 1);
  EXPECT_EQ(d.change, HoleChange::InOrder);
  EXPECT_EQ(d.own.sends, 1u);
  EXPECT_FALSE(d.behind.any());
  r.expect_counts({5});
}

// proves: R-100, H-2
TEST(HoleCounters, ClosingTheLowestHoleGivesTheSegmentsOwnFirstThenTheHoles) {
  Receive r;
  r.commit(100, 200, 5);
  r.commit(300, 400, 7);
  const auto d = r.commit(0, 100, 2);
  EXPECT_EQ(d.change, HoleChange::ClosedLowest);
  EXPECT_EQ(d.own.sends, 2u);
  EXPECT_EQ(d.behind.sends, 5u);
  r.expect_counts({7});
  EXPECT_EQ(r.commit(200, 300, 0).behind.sends, 7u);
  r.expect_counts({});
}

// proves: H-3
TEST(HoleCounters, BeyondAllReceivedOpensAHoleWithTheSegmentsCounts) {
  Receive r;
  const auto a = r.commit(100, 200, 3);
  EXPECT_EQ(a.change, HoleChange::NewLast);
  EXPECT_FALSE(a.own.any() || a.behind.any());
  r.commit(500, 600, 4);
  r.expect_counts({3, 4});
  EXPECT_EQ(r.counters.tally().opened, 2u);
}

// proves: R-98, H-4
TEST(HoleCounters, ExtendingABlockOnItsRightAddsToItsHole) {
  Receive r;
  r.commit(100, 200, 3);
  r.commit(500, 600, 4);
  EXPECT_EQ(r.commit(200, 300, 1).change, HoleChange::ExtendedRight);
  r.expect_counts({4, 4});
  EXPECT_EQ(r.commit(600, 700, 1).change, HoleChange::ExtendedRight);
  r.expect_counts({4, 5});
}

// proves: R-98, H-5
TEST(HoleCounters, FillingTheRightEndOfAHoleAddsToThatHole) {
  Receive r;
  r.commit(100, 200, 3);
  r.commit(500, 600, 4);
  EXPECT_EQ(r.commit(400, 500, 10).change, HoleChange::FilledRight);
  r.expect_counts({3, 14});
  EXPECT_EQ(r.commit(50, 100, 10).change, HoleChange::FilledRight);
  r.expect_counts({13, 14});
}

// proves: R-98, H-6
TEST(HoleCounters, ASplitKeepsTheCountsWithTheUpperPart) {
  Receive r;
  r.commit(500, 600, 4);
  EXPECT_EQ(r.commit(200, 300, 1).change, HoleChange::Split);
  r.expect_counts({1, 4});
  r.commit(400, 450, 2);
  r.expect_counts({1, 2, 4});
  EXPECT_EQ(r.counters.tally().split, 2u);
  EXPECT_EQ(r.counters.tally().opened, 3u);
}

// proves: R-97, H-7
TEST(HoleCounters, ClosingAHoleThatIsNotTheLowestDeliversNothingAndMergesDownwards) {
  Receive r;
  r.commit(100, 200, 1);
  r.commit(300, 400, 10);
  r.commit(500, 600, 100);
  const auto d = r.commit(200, 300, 1000);
  EXPECT_EQ(d.change, HoleChange::ClosedInner);
  EXPECT_FALSE(d.own.any() || d.behind.any());
  r.expect_counts({1011, 100});
  EXPECT_EQ(r.counters.tally().merged, 1u);
  EXPECT_EQ(r.counters.tally().closed, 1u);
  EXPECT_EQ(r.commit(0, 100, 0).behind.sends, 1011u);
}

// proves: R-48, H-10
TEST(HoleCounters, DowngradeDiscardsAllCounts) {
  Receive r;
  r.commit(100, 200, 1);
  r.commit(300, 400, 1);
  r.holes.forget();
  r.counters.discard();
  r.expect_counts({});
  // The messages arrive again, and are counted once.
  EXPECT_EQ(r.commit(0, 200, 1).own.sends, 1u);
  EXPECT_EQ(r.commit(200, 400, 1).own.sends, 1u);
}

TEST(HoleCounters, EveryKindOfMessageIsCountedOnItsOwn) {
  Receive r;
  r.commit(100, 200, MessageCounts{1, 2, 3, 4});
  r.commit(200, 300, MessageCounts{10, 20, 30, 40});
  const auto d = r.commit(0, 100, MessageCounts{5, 6, 7, 8});
  EXPECT_EQ(d.own.sends, 5u);
  EXPECT_EQ(d.own.read_responses, 6u);
  EXPECT_EQ(d.own.read_requests, 7u);
  EXPECT_EQ(d.own.terminates, 8u);
  EXPECT_EQ(d.behind.sends, 11u);
  EXPECT_EQ(d.behind.read_responses, 22u);
  EXPECT_EQ(d.behind.read_requests, 33u);
  EXPECT_EQ(d.behind.terminates, 44u);
}

// proves: R-95
TEST(HoleCounters, AHundredThousandSendsAfterOneHoleCostOneHole) {
  Receive r;
  r.commit(64, 128, 1);
  const std::size_t before = mallinfo2().uordblks;
  for (std::uint64_t i = 2; i <= 100000; ++i) r.commit(i * 64, i * 64 + 64, 1);
  EXPECT_LT(mallinfo2().uordblks, before + 4096) << "memory grows with the messages";
  r.expect_counts({100000});
  const auto d = r.commit(0, 64, 1);
  EXPECT_EQ(d.own.sends, 1u);
  EXPECT_EQ(d.behind.sends, 100000u);
}

// ---- random arrival

enum Type : std::uint8_t { kWrite, kSend, kReadResponse, kReadRequest, kTypes };

struct Message {
  Type type;
  std::uint64_t end;  // one past its last byte in the stream
};
struct Segment {
  std::uint64_t begin, end;
  MessageCounts ends;  // messages whose end lies in it
};

void count(MessageCounts& c, Type t) {
  switch (t) {
    case kSend:
      ++c.sends;
      break;
    case kReadResponse:
      ++c.read_responses;
      break;
    case kReadRequest:
      ++c.read_requests;
      break;
    default:
      break;
  }
}

class HoleCountersModel : public ::testing::TestWithParam<std::uint64_t> {};

// proves
TEST_P(HoleCountersModel, AnyOrderOfArrivalDeliversEachMessageOnceInOrder) {
  SCOPED_TRACE(::testing::Message() << "seed " << GetParam());
  Rng rng(GetParam());
  std::vector<Message> messages;
  std::vector<Segment> segments;
  MessageCounts total;
  std::uint64_t pos = 0;
  for (int i = 0; i < 120; ++i) {
    const auto type = static_cast<Type>(rng.below(kTypes));
    const std::uint64_t pieces = 1 + rng.below(4);
    for (std::uint64_t p = 0; p < pieces; ++p) {
      const std::uint64_t len = 4 * (1 + rng.below(50));
      if (segments.empty() || rng.chance(0.6)) segments.push_back({pos, pos, {}});
      segments.back().end = pos += len;
    }
    messages.push_back({type, pos});
    count(segments.back().ends, type);
    count(total, type);
  }

  Receive r;
  const std::uint32_t limit = std::array<std::uint32_t, 5>{1, 2, 3, 256, 0}[rng.below(5)];
  r.holes.set_limit(limit);
  std::vector<bool> received(segments.size(), false);
  MessageCounts delivered;
  std::vector<std::size_t> order(segments.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int round = 0; r.holes.rcv_nxt() < at(pos); ++round) {
    ASSERT_LT(round, 2000) << "the stream never completes";
    for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[rng.below(i + 1)]);
    for (const std::size_t i : order) {
      if (rng.chance(0.1)) continue;  // lost in this round
      const Segment& s = segments[i];
      if (!r.holes.any_new(at(s.begin), at(s.end))) {
        ASSERT_TRUE(received[i]);
        continue;  // a duplicate: neither placed nor counted
      }
      ASSERT_FALSE(received[i]);
      if (r.holes.exceeds_limit(at(s.begin), at(s.end))) continue;
      const auto d = r.commit(s.begin, s.end, s.ends);
      received[i] = true;
      delivered += d.own;
      delivered += d.behind;
      // By definition, messages are delivered that end where all earlier bytes were received.
      std::uint64_t in_order = 0;
      for (std::size_t k = 0; k < segments.size() && received[k]; ++k) in_order = segments[k].end;
      ASSERT_EQ(r.holes.rcv_nxt(), at(in_order));
      MessageCounts expected;
      for (const Message& m : messages) {
        if (m.end <= in_order) count(expected, m.type);
      }
      ASSERT_EQ(delivered.sends, expected.sends);
      ASSERT_EQ(delivered.read_responses, expected.read_responses);
      ASSERT_EQ(delivered.read_requests, expected.read_requests);
      if (limit != 0) {
        ASSERT_LE(r.counters.size(), limit);
      }
      // Sometimes the connection is downgraded: everything out of order is forgotten.
      if (rng.chance(0.01)) {
        r.holes.forget();
        r.counters.discard();
        for (std::size_t k = 0; k < segments.size(); ++k) {
          received[k] = at(segments[k].end) <= r.holes.rcv_nxt();
        }
      }
    }
  }
  EXPECT_EQ(delivered.sends, total.sends);
  EXPECT_EQ(delivered.read_responses, total.read_responses);
  EXPECT_EQ(delivered.read_requests, total.read_requests);
  EXPECT_EQ(r.counters.size(), 0u);
  const HoleTally& t = r.counters.tally();
  EXPECT_GE(t.opened, t.closed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, HoleCountersModel, ::testing::Range<std::uint64_t>(1, 201));

}  // namespace
}  // namespace urnic::fastpath
