#include "base/interval_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"

namespace urnic {
namespace {

using Change = IntervalSet::Change;

std::vector<Interval> ranges(const IntervalSet& s) {
  return {s.begin(), s.end()};
}

TEST(IntervalSet, SaysWhatAnInsertionDid) {
  IntervalSet s;
  auto r = s.insert(10, 20);
  EXPECT_EQ(r.change, Change::New);
  EXPECT_EQ(r.added, 10u);
  EXPECT_EQ(s.insert(20, 25).change, Change::ExtendedRight);
  EXPECT_EQ(s.insert(5, 10).change, Change::ExtendedLeft);
  EXPECT_EQ(s.insert(5, 25).change, Change::Duplicate);
  EXPECT_EQ(s.insert(7, 9).change, Change::Duplicate);
  EXPECT_EQ(s.insert(3, 30).change, Change::ExtendedBoth);
  EXPECT_EQ(s.insert(7, 7).change, Change::None);
  r = s.insert(40, 50);
  EXPECT_EQ(r.change, Change::New);
  EXPECT_EQ(r.index, 1u);
  r = s.insert(30, 40);
  EXPECT_EQ(r.change, Change::Merged);
  EXPECT_EQ(r.index, 0u);
  EXPECT_EQ(r.added, 10u);
  EXPECT_EQ(ranges(s), (std::vector<Interval>{{3, 50}}));
  EXPECT_EQ(s.octets(), 47u);
}

TEST(IntervalSet, RefusesANewRangeAtTheLimitAndChangesNothing) {
  IntervalSet s(2);
  s.insert(10, 20);
  s.insert(30, 40);
  EXPECT_EQ(s.insert(50, 60).change, Change::Refused);
  EXPECT_EQ(s.insert(0, 5).change, Change::Refused);
  EXPECT_EQ(ranges(s), (std::vector<Interval>{{10, 20}, {30, 40}}));
  EXPECT_EQ(s.octets(), 20u);
  EXPECT_EQ(s.insert(40, 45).change, Change::ExtendedRight);
  EXPECT_EQ(s.insert(20, 30).change, Change::Merged);
  EXPECT_EQ(s.insert(50, 60).change, Change::New);
}

TEST(IntervalSet, ReachesTheEndsOfTheNumberRange) {
  constexpr std::uint64_t kMax = ~std::uint64_t{0};
  IntervalSet s;
  s.insert(kMax - 5, kMax);
  s.insert(0, 1);
  EXPECT_TRUE(s.contains(kMax - 1));
  EXPECT_FALSE(s.contains(kMax));
  EXPECT_EQ(s.first_missing(0), 1u);
  EXPECT_EQ(s.insert(0, kMax).change, Change::Merged);
  EXPECT_EQ(s.octets(), kMax);
}

// One flag per octet.
class Model {
 public:
  explicit Model(std::size_t n) : have_(n) {}
  std::vector<Interval> ranges() const {
    std::vector<Interval> out;
    for (std::size_t i = 0; i < have_.size(); ++i) {
      if (!have_[i]) continue;
      if (i > 0 && have_[i - 1]) {
        ++out.back().end;
      } else {
        out.push_back({i, i + 1});
      }
    }
    return out;
  }
  std::uint64_t set(std::size_t begin, std::size_t end, bool value) {
    std::uint64_t changed = 0;
    for (std::size_t i = begin; i < end; ++i) {
      changed += have_[i] != value ? 1 : 0;
      have_[i] = value;
    }
    return changed;
  }
  bool operator[](std::size_t i) const { return have_[i]; }
  std::size_t size() const { return have_.size(); }

 private:
  std::vector<bool> have_;
};

void expect_queries_agree(const IntervalSet& s, const Model& m, Rng& rng) {
  const std::size_t a = rng.below(m.size()), b = rng.between(a, m.size());
  bool all = true, any = false;
  std::size_t gap_begin = b, gap_end = b;
  for (std::size_t i = a; i < b; ++i) {
    all = all && m[i];
    any = any || m[i];
    if (!m[i] && gap_begin == b) gap_begin = i;
  }
  for (gap_end = gap_begin; gap_end < b && !m[gap_end];) ++gap_end;
  ASSERT_EQ(s.contains(a), m[a]);
  ASSERT_EQ(s.contains(a, b), all);
  ASSERT_EQ(s.intersects(a, b), any);
  const auto gap = s.first_gap(a, b);
  ASSERT_EQ(gap.has_value(), gap_begin < b);
  if (gap) {
    ASSERT_EQ(*gap, (Interval{gap_begin, gap_end}));
  }
  std::size_t missing = a;
  while (missing < m.size() && m[missing]) ++missing;
  ASSERT_EQ(s.first_missing(a), missing);
  const std::size_t f = s.find(a);
  ASSERT_TRUE(f == s.size() || s[f].end > a);
  ASSERT_TRUE(f == 0 || s[f - 1].end <= a);
}

TEST(IntervalSet, AgreesWithAFlagPerOctetUnderRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const std::size_t n = rng.between(20, 400);
    const std::size_t limit = rng.chance(0.5) ? rng.between(1, 20) : 0;
    IntervalSet s(limit);
    Model m(n);
    for (int step = 0; step < 600; ++step) {
      const std::size_t a = rng.below(n), b = std::min<std::size_t>(n, a + rng.below(12));
      switch (rng.below(14)) {
        case 0:
          ASSERT_EQ(s.erase_below(a), m.set(0, a, false));
          break;
        case 1:
          if (rng.chance(0.3)) {
            ASSERT_EQ(s.erase_from(a), m.set(a, n, false));
          }
          break;
        case 2:
          if (!s.empty() && rng.chance(0.5)) {
            m.set(s.front().begin, s.front().end, false);
            s.pop_front();
          }
          break;
        case 3:
          if (rng.chance(0.1)) s.shrink_to_fit();
          break;
        case 4:
          if (rng.chance(0.02)) {
            s.clear();
            m.set(0, n, false);
          }
          break;
        default: {
          const Model before = m;
          const std::uint64_t added = m.set(a, b, true);
          const std::size_t after = m.ranges().size();
          const auto r = s.insert(a, b);
          if (limit != 0 && after > limit) {
            ASSERT_EQ(r.change, Change::Refused);
            m = before;
          } else {
            ASSERT_EQ(r.added, added);
            if (a < b) {
              ASSERT_LE(s[r.index].begin, a);
              ASSERT_GE(s[r.index].end, b);
            }
            const auto old = before.ranges().size();
            ASSERT_EQ(r.change == Change::New, after == old + 1);
            ASSERT_EQ(r.change == Change::Merged, after < old);
            ASSERT_EQ(r.change == Change::None || r.change == Change::Duplicate, added == 0);
          }
        }
      }
      ASSERT_EQ(ranges(s), m.ranges());
      std::uint64_t octets = 0;
      for (const Interval& r : s) octets += r.size();
      ASSERT_EQ(s.octets(), octets);
      expect_queries_agree(s, m, rng);
      if (HasFatalFailure()) return;
    }
  }
}

// Every second octet of a stream arrives, then the others from the front: 100 000 ranges and back.
TEST(IntervalSet, HoldsAHundredThousandRanges) {
  constexpr std::uint64_t kRanges = 100000;
  IntervalSet s;
  for (std::uint64_t i = 0; i < kRanges; ++i)
    ASSERT_EQ(s.insert(4 * i, 4 * i + 2).change, Change::New);
  EXPECT_EQ(s.size(), kRanges);
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) {  // in the middle
    const std::uint64_t at = rng.below(kRanges - 1);
    if (!s.contains(4 * at + 2)) {
      ASSERT_EQ(s.insert(4 * at + 2, 4 * at + 4).change, Change::Merged);
    }
  }
  for (std::uint64_t i = 0; i + 1 < kRanges; ++i) s.insert(4 * i + 2, 4 * i + 4);
  EXPECT_EQ(s.size(), 1u);
  EXPECT_EQ(s.front(), (Interval{0, 4 * kRanges - 2}));
}

// A window that slides for ever must not grow.
TEST(IntervalSet, ASlidingWindowUsesBoundedMemory) {
  IntervalSet s;
  for (std::uint64_t i = 0; i < 200000; ++i) {
    s.insert(4 * i, 4 * i + 2);
    if (i >= 100) s.erase_below(4 * (i - 100) + 2);
    ASSERT_LE(s.size(), 101u);
  }
  EXPECT_LE(s.memory(), 512 * sizeof(Interval));
}

}  // namespace
}  // namespace urnic
