// Registered memory used by connections: its address and key, and the effect on outstanding work if
// it is registered again or deregistered.
#include "iwarp/memory_ends.h"

namespace urnic::sim {
namespace {

using verbs::Extent;

class Regions : public MemoryEnds {};

// proves: E-54
TEST_F(Regions, BothEndsNameMemoryByItsIova) {
  constexpr std::uint64_t kOurs = 0x1000, kTheirs = ~0ull - 4000;
  up();
  const std::uint32_t a = add(pair->left(), {ours.data(), kOurs, 4000}, verbs::kLocalWrite);
  const std::uint32_t b = add(pair->right(), {theirs.data(), kTheirs, 4000}, kAll);
  fill(1);
  post(WrOp::Write, {kOurs + 10, 3000, a}, kTheirs + 20, b);
  EXPECT_EQ(ended(), Status::Success);
  pair->run_for(Duration::ms(10));
  EXPECT_EQ(std::memcmp(theirs.data() + 20, ours.data() + 10, 3000), 0);
  fill(2);
  post(WrOp::Read, {kOurs, 4000, a}, kTheirs, b);
  EXPECT_EQ(ended(), Status::Success);
  EXPECT_EQ(std::memcmp(theirs.data(), ours.data(), 4000), 0);
  receive({kTheirs + 100, 500, b});
  fill(3);
  post(WrOp::Send, {kOurs + 3500, 500, a});
  EXPECT_EQ(ended(), Status::Success);
  EXPECT_EQ(received().byte_len, 500u);
  EXPECT_EQ(std::memcmp(theirs.data() + 100, ours.data() + 3500, 500), 0);
  // The virtual address is not valid for it.
  post(WrOp::Read, {kOurs, 1, a}, address(theirs), b);
  EXPECT_EQ(ended(), Status::RemoteAccess);
}

// proves: E-54
TEST_F(Regions, AfterReregistrationTheOldKeyIsInvalid) {
  up();
  const std::uint32_t a = add(pair->left(), whole(ours), verbs::kLocalWrite);
  const std::uint32_t old = add(pair->right(), whole(theirs), kAll);
  Bytes other(theirs.size());
  const std::uint32_t now =
      pair->right().engine().reregister(old, pair->right().pd, whole(other), kAll);
  ASSERT_NE(now, 0u);
  fill(4);
  post(WrOp::Write, {address(ours), 4000, a}, address(other), now);
  EXPECT_EQ(ended(), Status::Success);
  pair->run_for(Duration::ms(10));
  EXPECT_EQ(other, ours);
  EXPECT_EQ(theirs, Bytes(theirs.size(), 0xee)) << "what it was before is left alone";
  post(WrOp::Read, {address(ours), 4000, a}, address(other), old);
  EXPECT_EQ(ended(), Status::RemoteAccess);
}

// proves: E-54
TEST_F(Regions, RightsCanBeRemovedAndAddedUnderTheSameKey) {
  up();
  const std::uint32_t a = add(pair->left(), whole(ours), verbs::kLocalWrite);
  const std::uint32_t b = add(pair->right(), whole(theirs), verbs::kLocalWrite);
  engine::Engine& e = pair->right().engine();
  ASSERT_EQ(e.reregister(b, pair->right().pd, whole(theirs), kAll), b);
  post(WrOp::Read, {address(ours), 100, a}, address(theirs), b);
  EXPECT_EQ(ended(), Status::Success);
  ASSERT_EQ(e.reregister(b, pair->right().pd, whole(theirs), verbs::kLocalWrite), b);
  post(WrOp::Read, {address(ours), 100, a}, address(theirs), b);
  EXPECT_EQ(ended(), Status::RemoteAccess);
}

// proves: E-25, E-54
TEST_F(Regions, AnOutstandingReadDoesNotFillTheOldMemoryOfItsRegion) {
  up();
  const std::uint32_t a = add(pair->left(), whole(ours), verbs::kLocalWrite);
  const std::uint32_t b = add(pair->right(), whole(theirs), kAll);
  const Bytes before = ours;
  Bytes other(ours.size());
  post(WrOp::Read, {address(ours), 4000, a}, address(theirs), b);
  ASSERT_NE(pair->left().engine().reregister(a, pair->left().pd, whole(other), verbs::kLocalWrite),
            0u);
  EXPECT_NE(ended(), Status::Success);
  EXPECT_EQ(ours, before);
  EXPECT_EQ(other, Bytes(other.size()));
}

// proves: E-54
TEST_F(Regions, ARefusedReregistrationChangesNothing) {
  up();
  engine::Engine& e = pair->left().engine();
  const std::uint32_t a = add(pair->left(), whole(ours), kAll);
  const verbs::PdId pd = pair->left().pd;
  EXPECT_EQ(e.reregister(a ^ 1, pd, whole(theirs), kAll), 0u);
  EXPECT_EQ(e.reregister(a, pd, whole(theirs), verbs::kRemoteWrite), 0u);
  EXPECT_EQ(e.reregister(a, pd, {ours.data(), ~0ull - 10, 100}, kAll), 0u);
  ASSERT_NE(e.memory().find(a), nullptr);
  EXPECT_EQ(extent_of(*e.memory().find(a)), whole(ours));
  EXPECT_EQ(e.memory().find(a)->access, kAll);
}

}  // namespace
}  // namespace urnic::sim
