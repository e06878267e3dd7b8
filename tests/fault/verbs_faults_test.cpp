#include "fault/verbs_faults.h"

#include <gtest/gtest.h>

#include <vector>

namespace urnic::fault {
namespace {

const int kInMain = 0, kInLibrary = 0;  // addresses

VerbsFaults faults(const char* plans) {
  const auto parsed = parse_verbs_plans(plans);
  EXPECT_TRUE(parsed.ok()) << parsed.error();
  return {*parsed, [](const void* address, const std::string& name) {
            return address == (name == "main" ? &kInMain : &kInLibrary);
          }};
}

// The places of the faults among the first `n` of a kind.
std::vector<std::uint64_t> places(VerbsFaults f, VerbsKind kind, std::uint64_t n) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 1; i <= n; ++i) {
    if (const auto hit = f.next(kind, {})) {
      EXPECT_EQ(hit->nth, i);
      out.push_back(i);
    }
  }
  return out;
}

TEST(VerbsFaults, ExactPlacesAreCountedPerKind) {
  VerbsFaults f = faults("at=ibv_reg_mr:2+ibv_alloc_pd:1+ibv_reg_mr:4:EAGAIN");
  EXPECT_FALSE(f.next(VerbsKind::ibv_reg_mr, {}));
  EXPECT_TRUE(f.next(VerbsKind::ibv_alloc_pd, {}));
  EXPECT_EQ(f.next(VerbsKind::ibv_reg_mr, {})->to_string(), "ibv_reg_mr 2: ENOMEM");
  EXPECT_FALSE(f.next(VerbsKind::ibv_reg_mr, {}));
  EXPECT_EQ(f.next(VerbsKind::ibv_reg_mr, {})->to_string(), "ibv_reg_mr 4: EAGAIN");
  EXPECT_FALSE(f.next(VerbsKind::ibv_create_qp, {}));
  EXPECT_TRUE(f.has(VerbsKind::ibv_reg_mr));
  EXPECT_FALSE(f.has(VerbsKind::ibv_create_qp));
}

TEST(VerbsFaults, TheSeedDecidesAndOtherKindsDoNotMatter) {
  const auto first = places(faults("send_wr=0.1,seed=1"), VerbsKind::send_wr, 1000);
  EXPECT_GT(first.size(), 50u);
  EXPECT_LT(first.size(), 200u);
  EXPECT_EQ(places(faults("send_wr=0.1,seed=1"), VerbsKind::send_wr, 1000), first);
  EXPECT_NE(places(faults("send_wr=0.1,seed=2"), VerbsKind::send_wr, 1000), first);
  VerbsFaults mixed = faults("send_wr=0.1,recv_wr=0.5,seed=1");
  for (int i = 0; i < 100; ++i) (void)mixed.next(VerbsKind::recv_wr, {});
  EXPECT_EQ(places(mixed, VerbsKind::send_wr, 1000), first);
}

TEST(VerbsFaults, AnExactFaultDoesNotShiftTheOthers) {
  auto wanted = places(faults("late=0.1"), VerbsKind::late, 200);
  const auto with = places(faults("late=0.1,at=late:1"), VerbsKind::late, 200);
  if (wanted.empty() || wanted[0] != 1) wanted.insert(wanted.begin(), 1);
  EXPECT_EQ(with, wanted);
}

TEST(VerbsFaults, CountsOnlyTheQueuePairAndTheCallerOfThePlan) {
  VerbsFaults f = faults("at=send_wr:2,qp=3;at=ibv_reg_mr:1,from=main");
  EXPECT_FALSE(f.next(VerbsKind::send_wr, {3, nullptr}));
  EXPECT_FALSE(f.next(VerbsKind::send_wr, {1, nullptr}));
  EXPECT_TRUE(f.next(VerbsKind::send_wr, {3, nullptr}));
  EXPECT_FALSE(f.next(VerbsKind::ibv_reg_mr, {0, &kInLibrary}));
  EXPECT_TRUE(f.next(VerbsKind::ibv_reg_mr, {0, &kInMain}));
}

TEST(VerbsFaults, TheFirstPlanWithAFaultWinsAndAllCount) {
  VerbsFaults f = faults("at=late:1:1ms;at=late:1:2ms+late:2:3ms");
  EXPECT_EQ(f.next(VerbsKind::late, {})->to_string(), "late 1: 1ms");
  EXPECT_EQ(f.next(VerbsKind::late, {})->to_string(), "late 2: 3ms");
}

}  // namespace
}  // namespace urnic::fault
