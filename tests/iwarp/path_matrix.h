// Every kind of connection over our own TCP: framing, FAST or SLOW, a clean wire or one with
// faults.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <tuple>

#include "sim/pair.h"

namespace urnic::test {

// policy, initiated FAST, faults
using PathSetting = std::tuple<mpa::Policy, bool, const char*>;

inline auto all_paths() {
  using mpa::Policy;
  return ::testing::Combine(::testing::Values(Policy::NoMarkers, Policy::Markers,
                                              Policy::AbsoluteMarkers, Policy::ModifiedLength),
                            ::testing::Bool(),
                            ::testing::Values("", "loss=0.02,reorder=0.05:3,dup=0.02,reseg=0.1"));
}

inline sim::PairOptions options_of(const PathSetting& setting, std::uint64_t seed) {
  const auto [policy, fast, faults] = setting;
  sim::PairOptions o;
  o.seed = seed;
  o.faults_left = o.faults_right = faults;
  for (engine::Options* side : {&o.left, &o.right}) {
    side->mpa.policy = policy;
    side->context.variant =
        mpa::has_markers(policy) ? fastpath::InLogicVariant::Fig3 : fastpath::InLogicVariant::Fig10;
    side->context.max_recovery_attempts = 32;
    side->context.initiated_as =
        fast ? fastpath::ConnectionType::Fast : fastpath::ConnectionType::Slow;
  }
  return o;
}

}  // namespace urnic::test
