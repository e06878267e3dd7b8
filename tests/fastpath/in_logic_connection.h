// One connection for InLogic, with segments whose validation results the test chooses.
#pragma once

#include <initializer_list>

#include "fastpath/in_logic.h"

namespace urnic::fastpath::in_logic_test {

using tcp::Arrival;
using tcp::Seq;

inline Validation results(std::initializer_list<FrameStatus> statuses) {
  Validation v;
  std::uint32_t at = 0;
  v.all_valid = true;
  for (const FrameStatus s : statuses) {
    v.frames.push_back({at, 100, s});
    at += 100;
    v.all_valid = v.all_valid && s == FrameStatus::Valid;
  }
  return v;
}

inline constexpr auto kValid = FrameStatus::Valid;
inline constexpr auto kInvalid = FrameStatus::Invalid;
inline constexpr auto kTooLong = FrameStatus::TooLong;

// One connection and the segments that arrive on it. Each step decides and applies.
struct Connection {
  explicit Connection(InLogicVariant variant = InLogicVariant::Fig9, std::uint32_t max = 3) {
    c.config.variant = variant;
    c.config.max_recovery_attempts = max;
    c.config.max_same_segment = 0;  // R-31 is tested without E-8
    c.config.upgrade_after = 1;
    c.upgrade_needed = 1;
    c.startup = false;
  }
  PathDecision arrive(std::uint32_t sn, Arrival arrival, const Validation& v) {
    SegmentFacts f = facts;
    f.arrival = arrival;
    f.sn = Seq(sn);
    f.validation = &v;
    const ConnectionContext before = c;
    const PathDecision verdict = decide(c, f);
    // decide() is pure: the same input gives the same result.
    const PathDecision again = decide(before, f);
    EXPECT_EQ(verdict.action, again.action);
    EXPECT_EQ(verdict.reason, again.reason);
    apply(c, verdict, f);
    return verdict;
  }
  PathDecision good(std::uint32_t sn, Arrival a = Arrival::InOrder) {
    return arrive(sn, a, results({kValid}));
  }
  PathDecision bad(std::uint32_t sn, Arrival a = Arrival::InOrder) {
    return arrive(sn, a, results({kInvalid}));
  }
  // One half of an FPDU, which ends, or begins, at `cut`.
  PathDecision first_half(std::uint32_t cut, std::uint32_t bytes = 1444) {
    facts.payload = bytes;
    return arrive(cut - bytes, Arrival::InOrder, results({kTooLong}));
  }
  PathDecision second_half(std::uint32_t cut) {
    facts.payload = 4;
    return arrive(cut, Arrival::OutOfOrder, results({kTooLong}));
  }
  void both_halves_are_dropped(std::uint32_t cut) {
    EXPECT_EQ(first_half(cut).action, PathAction::Drop);
    EXPECT_EQ(second_half(cut).action, PathAction::Drop);
  }
  bool fast() const { return c.type == ConnectionType::Fast; }

  ConnectionContext c;
  SegmentFacts facts;
};

}  // namespace urnic::fastpath::in_logic_test
