#include "ddp_rdma/ledger.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace urnic::ddp {
namespace {

TEST(Ledger, FindsTheRecordOfEveryByteAcrossTheWrapAroundOfTheOffset) {
  const std::uint64_t seed = 99;
  SCOPED_TRACE(seed);
  Rng rng(seed);
  BufferPool pool;
  Ledger ledger(&pool);
  std::uint32_t end = 0xFFFFF000;  // low half of a stream offset about to wrap around
  for (int round = 0; round < 3000; ++round) {
    for (std::uint64_t n = rng.below(40); n != 0; --n) {
      Record r;
      r.begin = end;
      r.wire = static_cast<std::uint32_t>(rng.between(1, 1500));
      r.owner = end ^ 0x5a5a;
      end += r.wire;
      ledger.push(r);
    }
    for (int probe = 0; probe < 10 && !ledger.empty(); ++probe) {
      const std::uint32_t span = end - ledger.front().begin;
      const std::uint32_t at = ledger.front().begin + static_cast<std::uint32_t>(rng.below(span));
      const Record& r = ledger[ledger.find(at)];
      ASSERT_LT(at - r.begin, r.wire);
      ASSERT_EQ(r.owner, r.begin ^ 0x5a5a);
    }
    for (std::uint64_t n = rng.below(42); n != 0 && !ledger.empty(); --n) ledger.pop();
  }
  while (!ledger.empty()) ledger.pop();
  EXPECT_EQ(pool.in_use(), 0u) << "an empty ledger owns nothing (P7)";
}

TEST(Ledger, GrowsAndKeepsItsOrder) {
  BufferPool pool;
  Ledger ledger(&pool);
  std::uint32_t begin = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    ledger.push({.begin = begin++, .wire = 1});
    if (i % 3 == 0) ledger.pop();
  }
  for (std::uint32_t i = 0; i < 5000; ++i) ledger.push({.begin = begin++, .wire = 1});
  const std::uint32_t first = ledger.front().begin;
  for (std::uint32_t i = 0; i < ledger.size(); ++i) ASSERT_EQ(ledger[i].begin, first + i);
}

}  // namespace
}  // namespace urnic::ddp
