#include "base/gate.h"

#include <gtest/gtest.h>

#include <new>
#include <utility>

#include "tests/support/allocator.h"

namespace urnic {
namespace {

const IpAddress kFirst = IpAddress::v4(10, 0, 0, 1), kSecond = IpAddress::v4(10, 0, 0, 2);
const Instant kNow = Instant::from_ns(5'000'000'000);

// proves: AC-3
TEST(Gate, WithoutRulesNoGateIsCreated) {
  EXPECT_EQ(make_gate({}), nullptr);
  EXPECT_NE(make_gate({.most = 1}), nullptr);
  EXPECT_NE(make_gate({.most_of_peer = 1}), nullptr);
  EXPECT_NE(make_gate({.rate = 1}), nullptr);
  GateRules denies;
  denies.access.deny(*IpPrefix::parse("::/0"));
  EXPECT_NE(make_gate(denies), nullptr);
}

// proves: AC-2
TEST(Gate, DeniedAddressesAreRefused) {
  GateRules rules;
  rules.access.deny({kFirst, 32});
  Gate gate(rules);
  EXPECT_EQ(gate.judge(kFirst, kNow), GateVerdict::Denied);
  EXPECT_EQ(gate.enter(kFirst, kNow), GateVerdict::Denied);
  EXPECT_EQ(gate.inside(), 0u);
  EXPECT_EQ(gate.enter(kSecond, kNow), GateVerdict::Admitted);
}

// proves: AC-3
TEST(Gate, ConnectionsAreLimitedAndAPlaceIsReused) {
  Gate gate({.most = 2});
  EXPECT_EQ(gate.enter(kFirst, kNow), GateVerdict::Admitted);
  EXPECT_EQ(gate.judge(kSecond, kNow), GateVerdict::Admitted) << "judging takes no place";
  EXPECT_EQ(gate.enter(kSecond, kNow), GateVerdict::Admitted);
  EXPECT_EQ(gate.judge(kSecond, kNow), GateVerdict::Full);
  EXPECT_EQ(gate.enter(kFirst, kNow), GateVerdict::Full);
  gate.leave(kFirst);
  EXPECT_EQ(gate.enter(kSecond, kNow), GateVerdict::Admitted);
  EXPECT_EQ(gate.inside(), 2u);
}

// proves: AC-3
TEST(Gate, EachAddressHasItsOwnLimit) {
  Gate gate({.most_of_peer = 2});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(gate.enter(kFirst, kNow), GateVerdict::Admitted);
  EXPECT_EQ(gate.enter(kFirst, kNow), GateVerdict::PeerFull);
  EXPECT_EQ(
      gate.enter(IpAddress::v6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}), kNow),
      GateVerdict::PeerFull);
  EXPECT_EQ(gate.enter(kSecond, kNow), GateVerdict::Admitted);
  gate.leave(kFirst);
  EXPECT_EQ(gate.enter(kFirst, kNow), GateVerdict::Admitted);
}

// proves: AC-3
TEST(Gate, ConnectionsPerSecondAreLimited) {
  Gate gate({.rate = 3});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(gate.enter(kFirst, kNow), GateVerdict::Admitted);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(gate.enter(kSecond, kNow), GateVerdict::TooFast);
  EXPECT_EQ(gate.judge(kFirst, kNow + Duration::ms(300)), GateVerdict::TooFast);
  EXPECT_EQ(gate.judge(kFirst, kNow + Duration::ms(334)), GateVerdict::Admitted);
  EXPECT_EQ(gate.judge(kFirst, kNow + Duration::ms(334)), GateVerdict::Admitted)
      << "who is only judged uses nothing up";
  EXPECT_EQ(gate.enter(kFirst, kNow + Duration::ms(334)), GateVerdict::Admitted);
  EXPECT_EQ(gate.enter(kFirst, kNow + Duration::ms(335)), GateVerdict::TooFast);
  EXPECT_EQ(gate.inside(), 4u) << "what ends has come all the same";
}

// proves: AC-3
TEST(Gate, WithoutMemoryNoConnectionIsCounted) {
  Gate gate({.most = 1, .most_of_peer = 1, .rate = 1});
  {
    const testing::NoMemory none(0);
    EXPECT_THROW(gate.enter(kFirst, kNow), std::bad_alloc);
  }
  EXPECT_EQ(gate.inside(), 0u);
  EXPECT_EQ(gate.enter(kFirst, kNow), GateVerdict::Admitted);
}

// proves: AC-3
TEST(Gate, APlaceIsReleasedExactlyOnce) {
  const auto gate = make_gate({.most = 2, .most_of_peer = 1});
  EXPECT_EQ(gate->enter(kFirst, kNow), GateVerdict::Admitted);
  EXPECT_EQ(gate->enter(kSecond, kNow), GateVerdict::Admitted);
  {
    Admission first(gate, kFirst), second(gate, kSecond);
    Admission moved = std::move(first);
    EXPECT_EQ(gate->inside(), 2u);
    moved = std::move(second);  // its previous place is released
    EXPECT_EQ(gate->inside(), 1u);
    EXPECT_EQ(gate->judge(kFirst, kNow), GateVerdict::Admitted);
    EXPECT_EQ(gate->judge(kSecond, kNow), GateVerdict::PeerFull);
    moved.give_back();
    moved.give_back();
    EXPECT_EQ(gate->inside(), 0u);
  }
  EXPECT_EQ(gate->inside(), 0u);
  EXPECT_EQ(gate->judge(kSecond, kNow), GateVerdict::Admitted);
}

}  // namespace
}  // namespace urnic
