#include "roce/context_table.h"

#include <gtest/gtest.h>

#include <deque>
#include <new>
#include <set>
#include <vector>

#include "roce/context.h"
#include "tests/support/allocator.h"

namespace urnic::roce {
namespace {

namespace testing = urnic::testing;

const SipKey kKey{11, 12};

TEST(ContextTable, NumbersAre24BitsAndNotSequential) {
  ContextTable table(kKey);
  std::set<std::uint32_t> numbers;
  std::set<std::uint32_t> steps;
  std::uint32_t before = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t n = table.open();
    EXPECT_GT(n, 1u);
    EXPECT_LT(n, 0xffffffu);
    EXPECT_TRUE(numbers.insert(n).second);
    steps.insert((n - before) & 0xffffff);
    before = n;
  }
  EXPECT_GT(steps.size(), 4u) << "who knows one number does not know the next";
  ContextTable other({1, 2});
  EXPECT_EQ(numbers.count(other.open()) + numbers.count(other.open()), 0u);
}

// proves: IB-2
TEST(ContextTable, FindsOnlyOpenNumbers) {
  ContextTable table(kKey);
  Context a(nullptr), b(nullptr);
  const std::uint32_t na = table.open(), nb = table.open();
  EXPECT_EQ(table.find(na), nullptr) << "not set";
  table.set(na, &a);
  table.set(nb, &b);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(table.find(na), &a);
    EXPECT_EQ(table.find(na), &a) << "the last one";
    EXPECT_EQ(table.find(nb), &b);
  }
  std::size_t found = 0;
  for (std::uint32_t n = 0; n < 1u << 24; ++n) found += table.find(n) != nullptr;
  EXPECT_EQ(found, 2u);
}

// proves: IB-2
TEST(ContextTable, AClosedNumberDoesNotFindTheNextOwnerOfItsEntry) {
  ContextTable table(kKey, 1);
  Context a(nullptr), b(nullptr);
  const std::uint32_t first = table.open();
  table.set(first, &a);
  EXPECT_EQ(table.open(), 0u) << "all are taken";
  EXPECT_EQ(table.find(first), &a);
  table.close(first);
  EXPECT_EQ(table.find(first), nullptr) << "not the last one either";
  std::set<std::uint32_t> seen{first};
  for (int i = 0; i < 60; ++i) {
    const std::uint32_t next = table.open();
    table.set(next, &b);
    EXPECT_TRUE(seen.insert(next).second) << "a number comes back at once";
    EXPECT_EQ(table.find(first), nullptr);
    table.close(next);
  }
  table.close(first);  // a second close has no effect
  EXPECT_EQ(table.size(), 0u);
}

// Devices begin at different numbers: a peer that remembers the last device's number cannot use it
// for the next.
// proves: E-49
TEST(ContextTable, FirstNumbersDifferBetweenDevices) {
  constexpr std::uint64_t kDevices = 2000;
  std::set<std::uint32_t> first, low;
  for (std::uint64_t key = 0; key < kDevices; ++key) {
    const std::uint32_t n = ContextTable({key, ~key}).open();
    first.insert(n);
    low.insert(n & 0xfff);
  }
  EXPECT_GE(first.size(), kDevices - 2);
  EXPECT_GT(low.size(), 1400u) << "of 4096: all bits of it";
}

// Reserved numbers are not used: an entry skips them. Among the 64 numbers of the first entry each
// of these keys has one reserved number.
TEST(ContextTable, ReservedNumbersAreSkipped) {
  for (const std::uint64_t key : {366032, 138614, 299852}) {  // 0, 1 and 0xffffff
    ContextTable table({key, 0}, 1);
    std::set<std::uint32_t> numbers;
    for (int i = 0; i < 63; ++i) {
      const std::uint32_t n = table.open();
      EXPECT_TRUE(n > 1 && n < 0xffffff) << n;
      EXPECT_TRUE(numbers.insert(n).second);
      table.close(n);
    }
    EXPECT_EQ(numbers.count(table.open()), 1u) << "the first one comes again: one was skipped";
  }
}

// proves: IB-129
TEST(ContextTable, ARestingNumberFindsNothingAndIsNotReused) {
  ContextTable table(kKey, 1);
  Context a(nullptr);
  const std::uint32_t number = table.open();
  table.set(number, &a);
  EXPECT_EQ(table.find(number), &a);
  table.rest(number);
  table.rest(number);  // a second call has no effect
  EXPECT_EQ(table.find(number), nullptr) << "not the last one either";
  EXPECT_EQ(table.resting(), 1u);
  EXPECT_EQ(table.open(), 0u) << "its entry is taken";
  std::size_t found = 0;
  table.for_each([&](Context&) { ++found; });
  EXPECT_EQ(found, 0u);
  table.close(number);
  EXPECT_EQ(table.resting(), 0u);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_NE(table.open(), 0u);
}

TEST(ContextTable, UsedEntriesRestButTheTableDoesNotGrowForever) {
  ContextTable table(kKey);
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 64; ++i) {
    const std::uint32_t n = table.open();
    EXPECT_TRUE(numbers.insert(n).second);
    table.close(n);
  }
  const testing::NoMemory none(0, testing::NoMemory::kForEver);
  for (int i = 0; i < 200; ++i) table.close(table.open());
}

TEST(ContextTable, IsLimitedInSize) {
  ContextTable table(kKey, 100);
  std::vector<std::uint32_t> numbers;
  for (int i = 0; i < 100; ++i) {
    numbers.push_back(table.open());
    ASSERT_NE(numbers.back(), 0u);
  }
  EXPECT_EQ(table.open(), 0u);
  table.rest(numbers[7]);
  EXPECT_EQ(table.open(), 0u) << "a number that rests is still somebody's";
  table.close(numbers[7]);
  const std::uint32_t next = table.open();
  EXPECT_NE(next, 0u);
  EXPECT_NE(next, numbers[7]);
  EXPECT_EQ(table.open(), 0u);
}

TEST(ContextTable, KeepsItsEntriesWhenItCannotGrow) {
  ContextTable table(kKey);
  std::deque<Context> contexts;
  std::vector<std::uint32_t> numbers;
  bool failed = false;
  while (contexts.size() < 1000) {
    std::uint32_t n = 0;
    if (!failed && contexts.size() > 100) {
      const testing::NoMemory none(0, testing::NoMemory::kForEver);
      try {
        n = table.open();
      } catch (const std::bad_alloc&) {
        failed = true;
      }
    }
    if (n == 0) n = table.open();
    numbers.push_back(n);
    table.set(n, &contexts.emplace_back(nullptr));
  }
  EXPECT_TRUE(failed);
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(table.find(numbers[i]), &contexts[i]);
}

}  // namespace
}  // namespace urnic::roce
