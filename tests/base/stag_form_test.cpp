#include "base/stag_form.h"

#include <gtest/gtest.h>

#include <set>

namespace urnic {
namespace {

// proves: E-49
TEST(StagForm, IndexesAreInvertibleAndNeverZero) {
  for (const SipKey key : {SipKey{1, 2}, SipKey{0, 0}, SipKey{~0ull, 77}}) {
    const StagForm form(key);
    EXPECT_EQ(form.outside(0), 0u);
    for (std::uint32_t i = 1; i < (1u << 24); i += i < 70000 ? 1 : 997) {
      const std::uint32_t out = form.outside(i);
      ASSERT_LT(out, 1u << 24);
      ASSERT_NE(out, 0u);
      ASSERT_EQ(form.inside((out << 8) | 0xab), i);
    }
  }
}

// proves: E-49
TEST(StagForm, AKeyDoesNotRepeatWithin256Uses) {
  const StagForm form(SipKey{3, 4});
  for (std::uint32_t index = 1; index < 200; ++index) {
    std::set<int> seen;
    for (int use = 0; use < 256; ++use)
      seen.insert(form.key(index, static_cast<std::uint8_t>(use)));
    ASSERT_EQ(seen.size(), 256u) << index;
  }
}

// proves: E-49
TEST(StagForm, KeysOfDevicesAndEntriesAreUnrelated) {
  const StagForm a(SipKey{5, 6}), b(SipKey{5, 7});
  int same = 0, next = 0;
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    same += a.stag(i, a.key(i, 0)) == b.stag(i, b.key(i, 0));
    next += a.outside(i + 1) == a.outside(i) + 1;
  }
  EXPECT_EQ(same, 0);
  EXPECT_LT(next, 10);
}

TEST(StagForm, WithoutASecretItCounts) {
  const StagForm form;
  EXPECT_EQ(form.stag(1, form.key(1, 0)), 0x101u);
  EXPECT_EQ(form.inside(0x701), 7u);
}

}  // namespace
}  // namespace urnic
