#include "ddp_rdma/access.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "ddp_rdma/verbs_words.h"

namespace urnic::ddp {
namespace {

constexpr PdId kPd = 5, kOtherPd = 6;
constexpr StreamId kStream = 9, kOtherStream = 10;

class TaggedAccess : public ::testing::Test {
 protected:
  std::uint32_t add(std::uint8_t access) {
    return table.register_memory(kPd, bytes.data(), bytes.size(), access);
  }
  MemoryTable table;
  SharedState shared{&table};
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(1000);
  std::uint64_t va = reinterpret_cast<std::uintptr_t>(bytes.data());
};

// proves: R-87
TEST_F(TaggedAccess, WriteChecksInOrder) {
  const std::uint32_t stag = add(kLocalWrite | kRemoteWrite);
  const auto check = [&](std::uint32_t s, std::uint64_t to, std::uint64_t len, PdId pd = kPd) {
    return check_write(shared, s, to, len, pd, kStream);
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
  table.invalidate(stag, kPd);
  EXPECT_EQ(check(stag, va, 1), Violation::TaggedInvalidStag);
}

TEST_F(TaggedAccess, ReadSourceChecksInOrder) {
  const std::uint32_t stag = add(kRemoteRead);
  const auto check = [&](std::uint32_t s, std::uint64_t to, std::uint64_t len, PdId pd = kPd) {
    return check_read_source(shared, s, to, len, pd, kStream);
  };
  EXPECT_EQ(check(stag, va, 1000), Violation::None);
  EXPECT_EQ(check(stag ^ 1, va, 1), Violation::ReadInvalidStag);
  EXPECT_EQ(check(stag, va, 1, kOtherPd), Violation::ReadStagNotAssociated);
  EXPECT_EQ(check(add(kLocalWrite), va, 1), Violation::ReadAccess);
  EXPECT_EQ(check(stag, va, 1001), Violation::ReadBounds);
  EXPECT_EQ(check(stag, ~0ull, 2), Violation::ReadToWrap);
}

// proves: E-16
TEST_F(TaggedAccess, SinksTakeReadResponsesOfTheirStreamOnly) {
  const std::array<std::span<std::uint8_t>, 2> pieces{std::span(bytes).first(10),
                                                      std::span(bytes).subspan(500, 90)};
  const std::uint32_t sink = shared.sinks.open(kStream, pieces);
  EXPECT_EQ(check_read_response(shared, sink, 0, 100, kStream), Violation::None);
  EXPECT_EQ(check_read_response(shared, sink, 1, 100, kStream), Violation::TaggedBounds);
  EXPECT_EQ(check_read_response(shared, sink, ~0ull, 2, kStream), Violation::TaggedToWrap);
  EXPECT_EQ(check_read_response(shared, sink, 0, 1, kOtherStream),
            Violation::TaggedStagNotAssociated);
  EXPECT_EQ(check_write(shared, sink, 0, 1, kPd, kStream), Violation::WriteAccess);
  EXPECT_EQ(check_write(shared, sink, 0, 1, kPd, kOtherStream), Violation::TaggedStagNotAssociated);
  EXPECT_EQ(check_read_source(shared, sink, 0, 1, kPd, kStream), Violation::ReadAccess);
  EXPECT_EQ(resolve_sge(table, {0, 1, sink}, kPd, true).data(), nullptr);
  EXPECT_EQ(table.invalidate(sink, kPd), MemoryTable::Invalidate::Other);
  EXPECT_FALSE(table.deregister(sink)) << "not the consumer's to free";
  EXPECT_EQ(check_read_response(shared, add(kLocalWrite | kRemoteWrite), va, 1, kStream),
            Violation::TaggedInvalidStag);
  shared.sinks.release(sink);
  EXPECT_EQ(check_read_response(shared, sink, 0, 1, kStream), Violation::TaggedInvalidStag);
  const std::size_t before = table.in_use();
  shared.sinks.release(sink);
  EXPECT_EQ(table.in_use(), before) << "released once";
}

}  // namespace
}  // namespace urnic::ddp
