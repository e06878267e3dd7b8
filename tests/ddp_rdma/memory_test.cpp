#include "ddp_rdma/memory.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

#include "base/rng.h"

namespace urnic::ddp {
namespace {

constexpr PdId kPd = 5, kOtherPd = 6;
constexpr StreamId kStream = 9, kOtherStream = 10;

std::uint64_t address(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p);
}

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

TEST_F(Memory, RefusesWhatCannotBeRegistered) {
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
  EXPECT_EQ(small.open_sink(kStream, {}), 0u);
  EXPECT_TRUE(small.deregister(stags[1]));
  EXPECT_NE(small.open_sink(kStream, {}), 0u);
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

TEST_F(Memory, InvalidationAsTheVerbsHaveIt) {
  using I = MemoryTable::Invalidate;
  const std::uint32_t stag = add(kRemoteRead);
  EXPECT_EQ(table.invalidate(stag, kOtherPd, kStream), I::Other);
  EXPECT_EQ(table.invalidate(stag ^ 1, kPd, kStream), I::Unknown);
  EXPECT_EQ(table.invalidate(stag + 0x100, kPd, kStream), I::Unknown);
  EXPECT_EQ(table.invalidate(stag, kPd, kStream), I::Ok);
  EXPECT_EQ(table.find(stag), nullptr);
  EXPECT_EQ(table.invalidate(stag, kPd, kStream), I::Ok) << "again is no error";
  EXPECT_NE(table.at_index(stag), nullptr) << "the index stays owned";
  EXPECT_NE(table.find_registered(stag), nullptr) << "its memory may still be retransmitted";
  EXPECT_TRUE(table.deregister(stag));
  EXPECT_EQ(table.invalidate(stag, kPd, kStream), I::Unknown);
}

TEST_F(Memory, WriteChecksInOrder_R87) {
  const std::uint32_t stag = add(kLocalWrite | kRemoteWrite);
  const auto check = [&](std::uint32_t s, std::uint64_t to, std::uint64_t len, PdId pd = kPd) {
    return check_write(table, s, to, len, pd, kStream);
  };
  EXPECT_EQ(check(stag, va, 1000), Violation::None);
  EXPECT_EQ(check(stag, va + 999, 1), Violation::None);
  EXPECT_EQ(check(stag ^ 1, va, 1), Violation::TaggedInvalidStag);
  EXPECT_EQ(check(stag + 0x100, va, 1), Violation::TaggedInvalidStag);
  EXPECT_EQ(check(0, va, 1), Violation::TaggedInvalidStag);
  EXPECT_EQ(check(stag, va, 1, kOtherPd), Violation::TaggedStagNotAssociated);
  EXPECT_EQ(check(stag, va - 1, 1), Violation::TaggedBounds);
  EXPECT_EQ(check(stag, va, 1001), Violation::TaggedBounds);
  EXPECT_EQ(check(stag, va + 1000, 1), Violation::TaggedBounds);
  EXPECT_EQ(check(stag, va + 1001, 1), Violation::TaggedBounds);
  EXPECT_EQ(check(stag, ~0ull, 2), Violation::TaggedToWrap);
  EXPECT_EQ(check(add(kLocalWrite | kRemoteRead), va, 1), Violation::WriteAccess);
  table.invalidate(stag, kPd, kStream);
  EXPECT_EQ(check(stag, va, 1), Violation::TaggedInvalidStag);
}

TEST_F(Memory, ZeroBasedRegionsCountFromZero) {
  const std::uint32_t stag = add(kLocalWrite | kRemoteWrite | kZeroBased);
  EXPECT_EQ(check_write(table, stag, 0, 1000, kPd, kStream), Violation::None);
  EXPECT_EQ(check_write(table, stag, 1, 1000, kPd, kStream), Violation::TaggedBounds);
  EXPECT_EQ(check_write(table, stag, va, 1, kPd, kStream), Violation::TaggedBounds);
  const auto span = resolve_sge(table, {100, 10, stag}, kPd, true);
  EXPECT_EQ(span.data(), bytes.data() + 100);
}

TEST_F(Memory, ReadSourceChecksInOrder) {
  const std::uint32_t stag = add(kRemoteRead);
  const auto check = [&](std::uint32_t s, std::uint64_t to, std::uint64_t len, PdId pd = kPd) {
    return check_read_source(table, s, to, len, pd, kStream);
  };
  EXPECT_EQ(check(stag, va, 1000), Violation::None);
  EXPECT_EQ(check(stag ^ 1, va, 1), Violation::ReadInvalidStag);
  EXPECT_EQ(check(stag, va, 1, kOtherPd), Violation::ReadStagNotAssociated);
  EXPECT_EQ(check(add(kLocalWrite), va, 1), Violation::ReadAccess);
  EXPECT_EQ(check(stag, va, 1001), Violation::ReadBounds);
  EXPECT_EQ(check(stag, ~0ull, 2), Violation::ReadToWrap);
}

TEST_F(Memory, SinksTakeReadResponsesOfTheirStreamOnly_E16) {
  const std::array<std::span<std::uint8_t>, 2> pieces{std::span(bytes).first(10),
                                                      std::span(bytes).subspan(500, 90)};
  const std::uint32_t sink = table.open_sink(kStream, pieces);
  EXPECT_EQ(check_read_response(table, sink, 0, 100, kStream), Violation::None);
  EXPECT_EQ(check_read_response(table, sink, 1, 100, kStream), Violation::TaggedBounds);
  EXPECT_EQ(check_read_response(table, sink, ~0ull, 2, kStream), Violation::TaggedToWrap);
  EXPECT_EQ(check_read_response(table, sink, 0, 1, kOtherStream),
            Violation::TaggedStagNotAssociated);
  EXPECT_EQ(check_write(table, sink, 0, 1, kPd, kStream), Violation::WriteAccess);
  EXPECT_EQ(check_write(table, sink, 0, 1, kPd, kOtherStream), Violation::TaggedStagNotAssociated);
  EXPECT_EQ(check_read_source(table, sink, 0, 1, kPd, kStream), Violation::ReadAccess);
  EXPECT_EQ(resolve_sge(table, {0, 1, sink}, kPd, true).data(), nullptr);
  EXPECT_EQ(table.invalidate(sink, kPd, kStream), MemoryTable::Invalidate::Other);
  EXPECT_FALSE(table.deregister(sink)) << "not the consumer's to free";
  EXPECT_EQ(check_read_response(table, add(kLocalWrite | kRemoteWrite), va, 1, kStream),
            Violation::TaggedInvalidStag);
  table.release_sink(sink);
  EXPECT_EQ(check_read_response(table, sink, 0, 1, kStream), Violation::TaggedInvalidStag);
  const std::size_t before = table.in_use();
  table.release_sink(sink);
  EXPECT_EQ(table.in_use(), before) << "released once";
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
  EXPECT_NE(resolve_sge(table, {0, 0, 0}, kPd, true).data(), nullptr) << "no octets, no check";
  table.invalidate(writable, kPd, kStream);
  EXPECT_EQ(resolve_sge(table, {va, 1, writable}, kPd, true).data(), nullptr);
}

TEST_F(Memory, RandomUseKeepsTheTableConsistent) {
  const std::uint64_t seed = 77;
  SCOPED_TRACE(seed);
  Rng rng(seed);
  MemoryTable t(200);
  std::set<std::uint32_t> regions, sinks, gone;
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
        if (const auto s = t.open_sink(kStream, {})) {
          EXPECT_TRUE(sinks.insert(s).second);
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
        if (!sinks.empty()) {
          const auto s = any(sinks);
          t.release_sink(s);
          gone.insert(s);
        }
    }
    EXPECT_EQ(t.in_use(), regions.size() + sinks.size());
  }
  for (const auto s : regions) EXPECT_NE(t.find(s), nullptr);
  for (const auto s : sinks) EXPECT_NE(t.find(s), nullptr);
  for (const auto s : gone) EXPECT_EQ(t.find(s), nullptr);
}

}  // namespace
}  // namespace urnic::ddp
