#include "tcp/holes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"

namespace urnic::tcp {

static bool operator==(const HoleEvent& a, const HoleEvent& b) {
  return a.change == b.change && a.index == b.index;
}
static void PrintTo(const HoleEvent& e, std::ostream* os) {
  *os << "change " << static_cast<int>(e.change) << " index " << e.index;
}

namespace {

StreamOffset at(std::uint64_t v) {
  return StreamOffset(v);
}

std::string show(const HoleList& l) {
  std::string s = std::to_string(l.rcv_nxt().value());
  for (std::size_t i = 0; i < l.size(); ++i) {
    s += " (" + std::to_string(l[i].begin.value()) + ")" + std::to_string(l[i].block.value()) +
         "-" + std::to_string(l[i].block_end.value());
  }
  return s;
}

// RCV.NXT 100, blocks 200-250, 300-350, 400-450.
HoleList three() {
  HoleList l;
  l.reset(at(100));
  l.insert(at(200), at(250));
  l.insert(at(300), at(350));
  l.insert(at(400), at(450));
  EXPECT_EQ(show(l), "100 (100)200-250 (250)300-350 (350)400-450");
  return l;
}

// proves: R-44
TEST(HoleList, NextMissingWalksOverTheBlocks) {
  const HoleList l = three();
  std::string runs;
  StreamOffset from = at(0), to = at(0);
  for (StreamOffset next = at(50); l.next_missing(next, at(420), &from, &to); next = to) {
    runs += std::to_string(from.value()) + "-" + std::to_string(to.value()) + " ";
  }
  EXPECT_EQ(runs, "100-200 250-300 350-400 ");
  EXPECT_FALSE(l.next_missing(at(310), at(340), &from, &to));
  ASSERT_TRUE(l.next_missing(at(440), at(470), &from, &to));
  EXPECT_EQ(from, at(450));
  EXPECT_EQ(to, at(470));
}

struct Row {
  const char* what;
  std::uint64_t begin, end;
  HoleEvent event;
  const char* after;
};

// proves: R-98, H-1 to H-7
TEST(HoleList, EveryRowOfTheBookkeepingTable) {
  const Row rows[] = {
      {"in order, hole 0 shrinks",
       100,
       150,
       {HoleChange::InOrder, 0},
       "150 (150)200-250 (250)300-350 (350)400-450"},
      {"in order, hole 0 filled",
       100,
       200,
       {HoleChange::ClosedLowest, 0},
       "250 (250)300-350 (350)400-450"},
      {"beyond everything",
       500,
       520,
       {HoleChange::NewLast, 3},
       "100 (100)200-250 (250)300-350 (350)400-450 (450)500-520"},
      {"extends the last block",
       450,
       460,
       {HoleChange::ExtendedRight, 2},
       "100 (100)200-250 (250)300-350 (350)400-460"},
      {"extends an inner block",
       250,
       260,
       {HoleChange::ExtendedRight, 0},
       "100 (100)200-260 (260)300-350 (350)400-450"},
      {"fills the right of hole 0",
       190,
       200,
       {HoleChange::FilledRight, 0},
       "100 (100)190-250 (250)300-350 (350)400-450"},
      {"fills the right of hole 2",
       360,
       400,
       {HoleChange::FilledRight, 2},
       "100 (100)200-250 (250)300-350 (350)360-450"},
      {"splits hole 1",
       260,
       270,
       {HoleChange::Split, 1},
       "100 (100)200-250 (250)260-270 (270)300-350 (350)400-450"},
      {"splits hole 0",
       120,
       130,
       {HoleChange::Split, 0},
       "100 (100)120-130 (130)200-250 (250)300-350 (350)400-450"},
      {"fills hole 1", 250, 300, {HoleChange::ClosedInner, 1}, "100 (100)200-350 (350)400-450"},
      {"fills hole 2", 350, 400, {HoleChange::ClosedInner, 2}, "100 (100)200-250 (250)300-450"},
  };
  for (const Row& r : rows) {
    HoleList l = three();
    EXPECT_EQ(l.insert(at(r.begin), at(r.end)), r.event) << r.what;
    EXPECT_EQ(show(l), r.after) << r.what;
  }
}

TEST(HoleList, InOrderWithoutHoles) {
  HoleList l;
  l.reset(at(10));
  EXPECT_EQ(l.insert(at(10), at(20)), (HoleEvent{HoleChange::InOrder, 0}));
  EXPECT_EQ(l.rcv_nxt(), at(20));
  EXPECT_EQ(l.highest(), at(20));
}

// proves: H-8, H-9
TEST(HoleList, RefusesRangesThatAreNotNewAndKeepsItsState) {
  const std::uint64_t bad[][2] = {{50, 100},  {50, 150},  {100, 201}, {200, 250}, {210, 220},
                                  {240, 260}, {299, 301}, {100, 500}, {300, 300}, {445, 460}};
  for (const auto& b : bad) {
    HoleList l = three();
    EXPECT_EQ(l.insert(at(b[0]), at(b[1])).change, HoleChange::None) << b[0];
    EXPECT_EQ(show(l), show(three())) << b[0];
  }
}

// proves: R-96, H-11
TEST(HoleList, LimitRefusesNewHolesOnly) {
  HoleList l = three();
  l.set_limit(3);
  EXPECT_TRUE(l.exceeds_limit(at(500), at(510)));
  EXPECT_TRUE(l.exceeds_limit(at(260), at(270)));
  EXPECT_TRUE(l.exceeds_limit(at(120), at(130)));
  EXPECT_EQ(l.insert(at(500), at(510)).change, HoleChange::None);
  EXPECT_EQ(show(l), show(three()));
  EXPECT_FALSE(l.exceeds_limit(at(100), at(110)));
  EXPECT_FALSE(l.exceeds_limit(at(100), at(200)));
  EXPECT_FALSE(l.exceeds_limit(at(450), at(460)));
  EXPECT_FALSE(l.exceeds_limit(at(250), at(260)));
  EXPECT_FALSE(l.exceeds_limit(at(290), at(300)));
  EXPECT_FALSE(l.exceeds_limit(at(250), at(300)));
  l.set_limit(0);
  EXPECT_FALSE(l.exceeds_limit(at(500), at(510)));
  l.set_limit(1);
  l.reset(at(0));
  EXPECT_FALSE(l.exceeds_limit(at(5), at(6)));
  l.insert(at(5), at(6));
  EXPECT_TRUE(l.exceeds_limit(at(8), at(9)));
  EXPECT_TRUE(l.exceeds_limit(at(2), at(3)));
}

TEST(HoleList, ReceivedEdges_Q8) {
  const HoleList l = three();
  for (std::uint64_t v : {100, 250, 350, 450}) EXPECT_TRUE(l.is_received_edge(at(v))) << v;
  for (std::uint64_t v : {99, 101, 200, 225, 300, 400, 451}) {
    EXPECT_FALSE(l.is_received_edge(at(v))) << v;
  }
}

// proves, H-10
TEST(HoleList, ForgetKeepsRcvNxt) {
  HoleList l = three();
  l.forget();
  EXPECT_EQ(show(l), "100");
  EXPECT_TRUE(l.all_new(at(200), at(250)));
}

// Compares the list with a bitmap of bytes.
TEST(HoleList, AgreesWithABitmap) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    constexpr std::size_t kSpan = 120;
    std::vector<bool> got(kSpan, false);
    HoleList l;
    l.set_limit(static_cast<std::uint32_t>(rng.below(6)));
    for (int step = 0; step < 200; ++step) {
      const std::uint64_t b = rng.below(kSpan - 1),
                          e = b + 1 + rng.below(std::min<std::uint64_t>(12, kSpan - b - 1) + 1);
      bool any = false, all = true;
      for (std::uint64_t i = b; i < e && i < kSpan; ++i) {
        any |= !got[i];
        all &= !got[i];
      }
      if (e > kSpan) continue;
      ASSERT_EQ(l.any_new(at(b), at(e)), any);
      ASSERT_EQ(l.all_new(at(b), at(e)), all);
      const auto holes_of = [&](const std::vector<bool>& m) {
        std::size_t n = 0;
        for (std::size_t i = 1; i < kSpan; ++i) n += m[i] && !m[i - 1];
        return n;  // blocks that have a hole before them
      };
      auto next = got;
      for (std::uint64_t i = b; i < e; ++i) next[i] = true;
      const bool refused =
          !all || (l.limit() != 0 && holes_of(next) > holes_of(got) && holes_of(next) > l.limit());
      if (all) {
        ASSERT_EQ(l.exceeds_limit(at(b), at(e)), refused);
      }
      const std::size_t before = l.size();
      const HoleEvent ev = l.insert(at(b), at(e));
      ASSERT_EQ(ev.change == HoleChange::None, refused);
      if (!refused) got = next;
      ASSERT_EQ(l.size(), holes_of(got));
      switch (ev.change) {
        case HoleChange::NewLast:
        case HoleChange::Split:
          ASSERT_EQ(l.size(), before + 1);
          break;
        case HoleChange::ClosedInner:
        case HoleChange::ClosedLowest:
          ASSERT_EQ(l.size() + 1, before);
          break;
        default:
          ASSERT_EQ(l.size(), before);
      }
      std::size_t nxt = 0;
      while (nxt < kSpan && got[nxt]) ++nxt;
      ASSERT_EQ(l.rcv_nxt(), at(nxt));
      StreamOffset prev = l.rcv_nxt();
      for (std::size_t i = 0; i < l.size(); ++i) {
        ASSERT_EQ(l[i].begin, prev);
        ASSERT_LT(l[i].begin, l[i].block);
        ASSERT_LT(l[i].block, l[i].block_end);
        prev = l[i].block_end;
      }
      ASSERT_EQ(l.highest(), prev);
    }
  }
}

}  // namespace
}  // namespace urnic::tcp
