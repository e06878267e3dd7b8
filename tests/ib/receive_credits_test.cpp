#include "ib/receive_credits.h"

#include <gtest/gtest.h>

namespace urnic::ib {
namespace {

// By code, as in the specification.
constexpr std::uint32_t kCredits[] = {
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};

// proves: IB-81
TEST(ReceiveCredits, CountsAreRoundedDownToTheNextCode) {
  EXPECT_EQ(credit_code(5), 4);
  for (std::uint8_t code = 0; code < kNoCredits; ++code) {
    EXPECT_EQ(credit_code(kCredits[code]), code);
    const std::uint32_t next = code + 1 < kNoCredits ? kCredits[code + 1] : 1u << 24;
    EXPECT_EQ(credit_code(next - 1), code) << next;
  }
}

}  // namespace
}  // namespace urnic::ib
