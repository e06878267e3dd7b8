#include "base/hash_map.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "tests/support/allocator.h"

namespace urnic {
namespace {

struct GoodHash {
  std::uint64_t operator()(std::uint64_t k) const { return k * 0x9e3779b97f4a7c15ULL; }
};
// All keys are in one of four chains, which wrap around the end of the table.
struct BadHash {
  std::uint64_t operator()(std::uint64_t k) const { return k % 4; }
};

template <class Hash>
class HashMapOf : public ::testing::Test {};
using Hashes = ::testing::Types<GoodHash, BadHash>;
TYPED_TEST_SUITE(HashMapOf, Hashes);

// proves
TYPED_TEST(HashMapOf, BehavesLikeUnorderedMapUnderRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    HashMap<std::uint64_t, std::unique_ptr<std::uint64_t>, TypeParam> map;
    std::unordered_map<std::uint64_t, std::uint64_t> model;
    const std::uint64_t keys = rng.between(4, 300);
    for (int step = 0; step < 4000; ++step) {
      const std::uint64_t key = rng.below(keys);
      switch (rng.below(5)) {
        case 0:
        case 1: {
          const auto r = map.insert(key, std::make_unique<std::uint64_t>(step));
          const auto [it, inserted] = model.emplace(key, step);
          ASSERT_EQ(r.inserted, inserted);
          ASSERT_EQ(**r.value, it->second);
          break;
        }
        case 2:
        case 3:
          ASSERT_EQ(map.erase(key), model.erase(key) == 1);
          break;
        default: {
          const auto* v = map.find(key);
          const auto it = model.find(key);
          ASSERT_EQ(v != nullptr, it != model.end());
          if (v != nullptr) {
            ASSERT_EQ(**v, it->second);
          }
        }
      }
      if (rng.chance(0.003)) map.shrink_to_fit();
      if (rng.chance(0.001)) {
        map.clear();
        model.clear();
      }
      ASSERT_EQ(map.size(), model.size());
    }
    std::size_t visited = 0;
    map.for_each([&](std::uint64_t k, const std::unique_ptr<std::uint64_t>& v) {
      ++visited;
      ASSERT_EQ(model.at(k), *v);
    });
    EXPECT_EQ(visited, model.size());
    for (std::uint64_t k = 0; k < keys; ++k) EXPECT_EQ(map.contains(k), model.count(k) == 1);
  }
}

TEST(HashMap, OwnsNoMemoryBeforeTheFirstInsertAndAfterShrinkingEmpty) {
  HashMap<std::uint64_t, int, GoodHash> map;
  EXPECT_EQ(map.capacity(), 0u);
  EXPECT_EQ(map.find(1), nullptr);
  EXPECT_FALSE(map.erase(1));
  map.insert(1, 1);
  map.erase(1);
  map.shrink_to_fit();
  EXPECT_EQ(map.capacity(), 0u);
  map.insert(2, 7);
  EXPECT_EQ(*map.find(2), 7);
}

TEST(HashMap, ReserveHoldsWithoutGrowing) {
  HashMap<std::uint64_t, int, GoodHash> map;
  map.reserve(1000);
  const std::size_t capacity = map.capacity();
  for (std::uint64_t k = 0; k < 1000; ++k) map.insert(k, 0);
  EXPECT_EQ(map.capacity(), capacity);
}

TEST(HashMap, MovesToANewOwner) {
  HashMap<std::string, std::string, std::hash<std::string>> a;
  a.insert("k", std::string(100, 'v'));
  auto b = std::move(a);
  ASSERT_NE(b.find("k"), nullptr);
  EXPECT_EQ(*b.find("k"), std::string(100, 'v'));
  EXPECT_EQ(a.find("k"), nullptr);  // NOLINT(bugprone-use-after-move): empty, and usable
}

// A long-lived table with keys added and removed: the capacity does not change, and a failed
// lookup, which tombstones would slow down, inspects few slots.
TEST(HashMap, InsertingAndErasingLeavesNoTombstones) {
  static std::uint64_t comparisons = 0;
  struct Counted {
    std::uint64_t k;
    bool operator==(const Counted& o) const {
      ++comparisons;
      return k == o.k;
    }
  };
  struct Hash {
    std::uint64_t operator()(const Counted& c) const { return GoodHash()(c.k); }
  };
  HashMap<Counted, int, Hash> map;
  std::uint64_t newest = 0;
  for (; newest < 1000; ++newest) map.insert({newest}, 0);
  const std::size_t capacity = map.capacity();
  for (int i = 0; i < 200000; ++i, ++newest) {
    ASSERT_TRUE(map.erase({newest - 1000}));
    ASSERT_TRUE(map.insert({newest}, 0).inserted);
  }
  EXPECT_EQ(map.capacity(), capacity);
  EXPECT_EQ(map.size(), 1000u);
  comparisons = 0;
  for (std::uint64_t k = newest; k < newest + 10000; ++k) ASSERT_EQ(map.find({k}), nullptr);
  EXPECT_LT(comparisons, 100u) << "a 32-bit tag is compared before the key";
}

// Existing entries are found, and the table grows as soon as there is memory.
TEST(HashMap, AFailedGrowthLeavesTheTableUnchanged) {
  for (const std::uint64_t k : {0, 1}) {  // the first of two allocations fails, or the second
    HashMap<std::uint64_t, int, GoodHash> map;
    std::uint64_t key = 0;
    for (; (map.size() + 1) * 4 <= map.capacity() * 3 || map.empty(); ++key) map.insert(key, 1);
    const std::size_t capacity = map.capacity();
    {
      const urnic::testing::NoMemory plan(k);
      EXPECT_THROW(map.insert(key, 1), std::bad_alloc);
    }
    EXPECT_EQ(map.capacity(), capacity);
    EXPECT_EQ(map.size(), key);
    for (std::uint64_t i = 0; i < key; ++i) EXPECT_TRUE(map.contains(i)) << i;
    EXPECT_FALSE(map.contains(key));
    EXPECT_TRUE(map.insert(key, 1).inserted);
    EXPECT_GT(map.capacity(), capacity);
  }
}

TEST(HashMap, APrecomputedHashFindsTheElement) {
  HashMap<std::uint64_t, int, GoodHash> map;
  map.prefetch(map.hash_of(5));  // the table is empty
  map.insert(5, 50);
  const std::uint64_t h = map.hash_of(5);
  map.prefetch(h);
  ASSERT_NE(map.find(5, h), nullptr);
  EXPECT_EQ(*map.find(5, h), 50);
}

}  // namespace
}  // namespace urnic
