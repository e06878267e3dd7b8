#include "base/ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>

#include "base/rng.h"

namespace urnic {
namespace {

TEST(Ring, OwnsNoMemoryUntilUsedAndNoneAfterShrinkingEmpty) {
  Ring<int> r;
  EXPECT_EQ(r.capacity(), 0u);
  r.push_back(1);
  EXPECT_GT(r.capacity(), 0u);
  r.pop_front();
  r.shrink_to_fit();
  EXPECT_EQ(r.capacity(), 0u);
  r.push_back(2);
  EXPECT_EQ(r.front(), 2);
}

TEST(Ring, CapacityIsAPowerOfTwo) {
  Ring<int> r;
  for (int i = 0; i < 1000; ++i) {
    r.push_back(i);
    EXPECT_EQ(r.capacity() & (r.capacity() - 1), 0u);
    EXPECT_GE(r.capacity(), r.size());
  }
  r.reserve(1025);
  EXPECT_EQ(r.capacity(), 2048u);
}

TEST(Ring, GrowsWhenHandedOneOfItsOwnElements) {
  Ring<std::string> r;
  r.push_back(std::string(100, 'x'));
  for (int i = 0; i < 100; ++i) r.push_back(r.front());
  for (std::size_t i = 0; i < r.size(); ++i) EXPECT_EQ(r[i], std::string(100, 'x'));
}

TEST(Ring, MovesWithoutCopyingElements) {
  Ring<std::unique_ptr<int>> a;
  for (int i = 0; i < 10; ++i) a.push_back(std::make_unique<int>(i));
  Ring<std::unique_ptr<int>> b = std::move(a);
  EXPECT_EQ(a.size(), 0u);  // NOLINT(bugprone-use-after-move): a moved-from ring is empty
  a.push_back(std::make_unique<int>(5));
  a = std::move(b);
  ASSERT_EQ(a.size(), 10u);
  EXPECT_EQ(*a.back(), 9);
}

TEST(Ring, BehavesLikeADequeUnderRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    Ring<std::shared_ptr<int>> ring;
    std::deque<int> model;
    const auto counter = std::make_shared<int>(0);  // its use count shows elements never freed
    for (int step = 0; step < 3000; ++step) {
      switch (rng.below(12)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4: {
          const int v = static_cast<int>(rng.below(1000));
          ring.push_back(std::shared_ptr<int>(new int(v), [counter](const int* p) { delete p; }));
          model.push_back(v);
          break;
        }
        case 5:
        case 6:
        case 7:
          if (!model.empty()) {
            ring.pop_front();
            model.pop_front();
          }
          break;
        case 8:
          if (!model.empty()) {
            ring.pop_back();
            model.pop_back();
          }
          break;
        case 9: {
          const std::size_t n = rng.below(model.size() + 1);
          ring.pop_front(n);
          model.erase(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(n));
          break;
        }
        case 10:
          ring.shrink_to_fit();
          break;
        default:
          if (rng.chance(0.02)) {
            ring.clear();
            model.clear();
          }
      }
      ASSERT_EQ(ring.size(), model.size());
      ASSERT_EQ(counter.use_count(), static_cast<long>(model.size()) + 1);
      for (std::size_t i = 0; i < model.size(); ++i) ASSERT_EQ(*ring[i], model[i]);
    }
  }
}

TEST(FixedRing, RefusesTheElementBeyondItsCapacity) {
  FixedRing<int, 3> r;
  EXPECT_TRUE(r.push_back(1));
  EXPECT_TRUE(r.push_back(2));
  EXPECT_TRUE(r.push_back(3));
  EXPECT_TRUE(r.full());
  EXPECT_FALSE(r.push_back(4));
  EXPECT_EQ(r.front(), 1);
  EXPECT_EQ(r.back(), 3);
  r.pop_front();
  EXPECT_TRUE(r.push_back(4));
  EXPECT_EQ(r[0], 2);
  EXPECT_EQ(r[2], 4);
}

TEST(FixedRing, FreesWhatAPoppedElementOwned) {
  FixedRing<std::shared_ptr<int>, 4> r;
  const auto p = std::make_shared<int>(1);
  r.push_back(p);
  EXPECT_EQ(p.use_count(), 2);
  r.pop_front();
  EXPECT_EQ(p.use_count(), 1);
}

TEST(FixedRing, BehavesLikeADequeUnderRandomOperations) {
  Rng rng(1);
  FixedRing<int, 10> ring;
  std::deque<int> model;
  for (int step = 0; step < 20000; ++step) {
    if (rng.chance(0.52)) {
      const bool fits = model.size() < 10;
      ASSERT_EQ(ring.push_back(step), fits);
      if (fits) model.push_back(step);
    } else if (!model.empty()) {
      ring.pop_front();
      model.pop_front();
    }
    ASSERT_EQ(ring.size(), model.size());
    for (std::size_t i = 0; i < model.size(); ++i) ASSERT_EQ(ring[i], model[i]);
  }
}

}  // namespace
}  // namespace urnic
