#include "verbs/memory.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/rng.h"

namespace urnic::verbs {
namespace {

constexpr PdId kPd = 5, kOtherPd = 6;

std::uint64_t address(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p);
}

using V = AccessVerdict;

class Memory : public ::testing::Test {
 protected:
  std::uint32_t add(std::uint8_t access) {
    return table.register_memory(kPd, bytes.data(), bytes.size(), access);
  }
  MemoryTable table;
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(1000);
  std::uint64_t va = address(bytes.data());
};

TEST_F(Memory, StagZeroAndIndexZeroAreNeverGiven) {
  for (int i = 0; i < 100; ++i) EXPECT_NE(add(0) >> 8, 0u);
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(7), nullptr);
  EXPECT_EQ(table.at_index(0), nullptr);
}

TEST_F(Memory, KeyChangesWhenAnIndexIsReused) {
  const std::uint32_t a = add(0);
  EXPECT_TRUE(table.deregister(a));
  const std::uint32_t b = add(0);
  EXPECT_EQ(a >> 8, b >> 8);
  EXPECT_NE(a, b);
  EXPECT_EQ(table.find(a), nullptr);
  EXPECT_NE(table.find(b), nullptr);
  EXPECT_FALSE(table.deregister(a)) << "a stale STag frees nothing";
  EXPECT_EQ(table.in_use(), 1u);
}

TEST_F(Memory, KeysBeginAtTheSeed) {
  MemoryTable seeded(16, StagForm(0x77));
  EXPECT_EQ(seeded.register_memory(kPd, bytes.data(), 10, 0) & 0xff, 0x77u);
}

TEST_F(Memory, RefusesInvalidRegions) {
  EXPECT_EQ(
      table.register_memory(kPd, reinterpret_cast<std::uint8_t*>(~std::uintptr_t{0} - 10), 100, 0),
      0u);
  EXPECT_EQ(add(kRemoteWrite), 0u) << "remote write needs local write";
  EXPECT_EQ(table.register_memory(kPd, nullptr, 10, 0), 0u);
  EXPECT_NE(table.register_memory(kPd, nullptr, 0, 0), 0u) << "an empty region is legal";
  EXPECT_EQ(table.in_use(), 1u);
}

TEST_F(Memory, FullTableRefusesAndRecovers) {
  MemoryTable small(3);
  std::vector<std::uint32_t> stags;
  for (int i = 0; i < 3; ++i) stags.push_back(small.register_memory(kPd, bytes.data(), 10, 0));
  EXPECT_EQ(small.register_memory(kPd, bytes.data(), 10, 0), 0u);
  EXPECT_EQ(small.reserve(1), 0u);
  EXPECT_TRUE(small.deregister(stags[1]));
  EXPECT_NE(small.reserve(1), 0u);
}

TEST_F(Memory, AMillionRegions) {
  std::set<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < (1u << 20); ++i) {
    const std::uint32_t stag = table.register_memory(kPd, bytes.data(), 10, 0);
    ASSERT_NE(stag, 0u);
    if (i % 4096 == 0) {
      EXPECT_TRUE(seen.insert(stag).second);
    }
  }
  EXPECT_EQ(table.register_memory(kPd, bytes.data(), 10, 0), 0u);
  for (const std::uint32_t stag : seen) EXPECT_NE(table.find(stag), nullptr);
}

TEST_F(Memory, InvalidationFollowsTheVerbs) {
  using I = MemoryTable::Invalidate;
  const std::uint32_t stag = add(kRemoteRead);
  EXPECT_EQ(table.invalidate(stag, kOtherPd), I::Other);
  EXPECT_EQ(table.invalidate(stag ^ 1, kPd), I::Unknown);
  EXPECT_EQ(table.invalidate(stag + 0x100, kPd), I::Unknown);
  EXPECT_EQ(table.invalidate(stag, kPd), I::Ok);
  EXPECT_EQ(table.find(stag), nullptr);
  EXPECT_EQ(table.invalidate(stag, kPd), I::Ok) << "again is no error";
  EXPECT_NE(table.at_index(stag), nullptr) << "the index stays owned";
  EXPECT_NE(table.find_registered(stag), nullptr) << "its memory may still be retransmitted";
  EXPECT_TRUE(table.deregister(stag));
  EXPECT_EQ(table.invalidate(stag, kPd), I::Unknown);
}

TEST_F(Memory, ZeroBasedRegionsCountFromZero) {
  const std::uint32_t stag = add(kLocalWrite | kRemoteWrite | kZeroBased);
  EXPECT_EQ(check_remote_write(table, stag, 0, 1000, kPd), V::Ok);
  EXPECT_EQ(check_remote_write(table, stag, 1, 1000, kPd), V::Bounds);
  EXPECT_EQ(check_remote_write(table, stag, va, 1, kPd), V::Bounds);
  const auto span = resolve_sge(table, {100, 10, stag}, kPd, true);
  EXPECT_EQ(span.data(), bytes.data() + 100);
}

// proves: E-54
TEST_F(Memory, ARegionIsAddressedByItsIova) {
  constexpr std::uint64_t kIova = ~0ull - 2000;
  const std::uint8_t all = kLocalWrite | kRemoteWrite | kRemoteRead;
  const std::uint32_t key = table.register_memory(kPd, {bytes.data(), kIova, 1000}, all);
  EXPECT_EQ(check_remote_write(table, key, kIova, 1000, kPd), V::Ok);
  EXPECT_EQ(check_remote_read(table, key, kIova + 999, 1, kPd), V::Ok);
  EXPECT_EQ(check_remote_write(table, key, kIova + 1, 1000, kPd), V::Bounds);
  EXPECT_EQ(check_remote_write(table, key, va, 1, kPd), V::Bounds);
  EXPECT_TRUE(table.find(key)->may_write(kPd, kIova + 10, 990));
  EXPECT_FALSE(table.find(key)->may_write(kPd, va, 1));
  EXPECT_EQ(resolve_sge(table, {kIova + 7, 5, key}, kPd, true).data(), bytes.data() + 7);
  EXPECT_EQ(resolve_sge(table, {va, 5, key}, kPd, true).data(), nullptr);
  EXPECT_EQ(table.register_memory(kPd, {bytes.data(), ~0ull - 999, 1000}, all), 0u) << "wraps";
  EXPECT_NE(table.register_memory(kPd, {bytes.data(), ~0ull - 1000, 1000}, all), 0u);
}

// proves: E-54
TEST_F(Memory, ReregistrationChangesTheKeyUnlessOnlyRightsChange) {
  const std::uint32_t first = add(kLocalWrite);
  const Extent all = Extent::of(bytes.data(), bytes.size(), 0);
  const Extent half{bytes.data(), va, 500};
  EXPECT_EQ(table.reregister(first, kPd, all, kRemoteRead), first);
  EXPECT_EQ(check_remote_read(table, first, va, 1000, kPd), V::Ok);
  EXPECT_EQ(resolve_sge(table, {va, 5, first}, kPd, true).data(), nullptr);

  const std::uint32_t second = table.reregister(first, kPd, half, kRemoteRead);
  EXPECT_EQ(first >> 8, second >> 8);
  EXPECT_NE(first, second);
  EXPECT_EQ(table.find(first), nullptr);
  EXPECT_EQ(check_remote_read(table, second, va, 500, kPd), V::Ok);
  EXPECT_EQ(check_remote_read(table, second, va, 501, kPd), V::Bounds);

  const std::uint32_t third = table.reregister(second, kOtherPd, half, kRemoteRead);
  EXPECT_NE(third, second);
  EXPECT_EQ(check_remote_read(table, third, va, 1, kPd), V::WrongDomain);
  EXPECT_EQ(check_remote_read(table, third, va, 1, kOtherPd), V::Ok);

  EXPECT_EQ(table.reregister(second, kPd, all, 0), 0u) << "a stale key";
  EXPECT_EQ(table.reregister(third, kPd, all, kRemoteWrite), 0u) << "not a legal set";
  EXPECT_EQ(check_remote_read(table, third, va, 500, kOtherPd), V::Ok) << "nothing has changed";
  EXPECT_EQ(table.reregister(table.reserve(1), kPd, all, 0), 0u);

  table.invalidate(third, kOtherPd);
  EXPECT_EQ(table.reregister(third, kOtherPd, half, kRemoteRead), third) << "is valid again";
  EXPECT_EQ(check_remote_read(table, third, va, 500, kOtherPd), V::Ok);
}

// In this order, so that the error reveals no more than the first failed check.
TEST_F(Memory, RemoteAccessIsCheckedInOrder) {
  const std::uint32_t both = add(kLocalWrite | kRemoteWrite | kRemoteRead);
  for (const auto check : {check_remote_write, check_remote_read}) {
    EXPECT_EQ(check(table, both, va, 1000, kPd), V::Ok);
    EXPECT_EQ(check(table, both, va + 999, 1, kPd), V::Ok);
    EXPECT_EQ(check(table, both ^ 1, va, 1, kPd), V::BadKey);
    EXPECT_EQ(check(table, both + 0x1000, va, 1, kPd), V::BadKey);
    EXPECT_EQ(check(table, 0, va, 1, kPd), V::BadKey);
    EXPECT_EQ(check(table, both, ~0ull, 2, kOtherPd), V::WrongDomain);
    EXPECT_EQ(check(table, add(kLocalWrite), ~0ull, 2, kPd), V::Rights);
    EXPECT_EQ(check(table, both, ~0ull, 2, kPd), V::Wraps);
    EXPECT_EQ(check(table, both, va - 1, 1, kPd), V::Bounds);
    EXPECT_EQ(check(table, both, va, 1001, kPd), V::Bounds);
    EXPECT_EQ(check(table, both, va + 1000, 1, kPd), V::Bounds);
    EXPECT_EQ(check(table, both, va + 1001, 1, kPd), V::Bounds);
    EXPECT_EQ(check(table, both, va + 1000, 0, kPd), V::Ok) << "no byte lies beyond the end";
    EXPECT_EQ(check(table, both, va + 1001, 0, kPd), V::Bounds);
    EXPECT_EQ(check(table, both, va - 1, 0, kPd), V::Bounds);
  }
  EXPECT_EQ(check_remote_write(table, add(kRemoteRead), va, 1, kPd), V::Rights);
  EXPECT_EQ(check_remote_read(table, add(kLocalWrite | kRemoteWrite), va, 1, kPd), V::Rights);
  table.invalidate(both, kPd);
  EXPECT_EQ(check_remote_write(table, both, va, 1, kPd), V::BadKey);
}

TEST_F(Memory, AReservedKeyGivesNoAccess) {
  const std::uint32_t key = table.reserve(42);
  EXPECT_EQ(table.find(key)->link, 42u);
  EXPECT_EQ(check_remote_write(table, key, 0, 1, kPd), V::Reserved);
  EXPECT_EQ(check_remote_read(table, key, 0, 1, 0), V::Reserved);
  EXPECT_FALSE(table.find(key)->may_write(0, 0, 1));
  EXPECT_EQ(resolve_sge(table, {0, 1, key}, 0, true).data(), nullptr);
  EXPECT_EQ(table.invalidate(key, 0), MemoryTable::Invalidate::Other);
  EXPECT_FALSE(table.deregister(key)) << "not the consumer's to free";
  table.invalidate_reserved(key);
  EXPECT_EQ(table.find(key), nullptr);
  EXPECT_TRUE(table.release(key)) << "and is freed all the same";
  EXPECT_FALSE(table.release(key)) << "once";
  EXPECT_FALSE(table.release(add(0)));
}

TEST_F(Memory, LocalKeyChecksOfAnSge) {
  const std::uint32_t read_only = add(0), writable = add(kLocalWrite);
  EXPECT_EQ(resolve_sge(table, {va + 5, 10, read_only}, kPd, false).data(), bytes.data() + 5);
  EXPECT_EQ(resolve_sge(table, {va + 5, 10, read_only}, kPd, true).data(), nullptr);
  EXPECT_EQ(resolve_sge(table, {va + 5, 10, writable}, kPd, true).size(), 10u);
  EXPECT_EQ(resolve_sge(table, {va + 5, 10, writable}, kOtherPd, true).data(), nullptr);
  EXPECT_EQ(resolve_sge(table, {va + 995, 10, writable}, kPd, true).data(), nullptr);
  EXPECT_EQ(resolve_sge(table, {va - 1, 1, writable}, kPd, true).data(), nullptr);
  EXPECT_EQ(resolve_sge(table, {va, 10, 0}, kPd, false).data(), nullptr) << "lkey 0 is no region";
  EXPECT_NE(resolve_sge(table, {0, 0, 0}, kPd, true).data(), nullptr) << "no bytes, no check";
  table.invalidate(writable, kPd);
  EXPECT_EQ(resolve_sge(table, {va, 1, writable}, kPd, true).data(), nullptr);
}

TEST_F(Memory, RandomUseKeepsTheTableConsistent) {
  const std::uint64_t seed = 77;
  SCOPED_TRACE(seed);
  Rng rng(seed);
  MemoryTable t(200);
  std::set<std::uint32_t> regions, reserved, gone;
  for (int i = 0; i < 20000; ++i) {
    const auto any = [&](std::set<std::uint32_t>& s) {
      auto it = s.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(rng.below(s.size())));
      const std::uint32_t stag = *it;
      s.erase(it);
      return stag;
    };
    switch (rng.below(4)) {
      case 0:
        if (const auto s = t.register_memory(kPd, bytes.data(), 10, 0)) {
          EXPECT_TRUE(regions.insert(s).second);
          gone.erase(s);
        }
        break;
      case 1:
        if (const auto s = t.reserve(7)) {
          EXPECT_TRUE(reserved.insert(s).second);
          gone.erase(s);
        }
        break;
      case 2:
        if (!regions.empty()) {
          const auto s = any(regions);
          EXPECT_TRUE(t.deregister(s));
          gone.insert(s);
        }
        break;
      default:
        if (!reserved.empty()) {
          const auto s = any(reserved);
          EXPECT_TRUE(t.release(s));
          gone.insert(s);
        }
    }
    EXPECT_EQ(t.in_use(), regions.size() + reserved.size());
  }
  for (const auto s : regions) EXPECT_NE(t.find(s), nullptr);
  for (const auto s : reserved) EXPECT_NE(t.find(s), nullptr);
  for (const auto s : gone) EXPECT_EQ(t.find(s), nullptr);
}

}  // namespace
}  // namespace urnic::verbs
