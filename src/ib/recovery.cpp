#include "ib/recovery.h"

#include <algorithm>

namespace urnic::ib {

std::string_view name(SlowReason r) {
  switch (r) {
    case SlowReason::None:
      break;
    case SlowReason::Initiated:
      return "initiated-slow";
    case SlowReason::Drop:
      return "drop";
    case SlowReason::RecoveryExhausted:
      return "recovery-exhausted";
    case SlowReason::StoreFull:
      return "store-full";
  }
  return "";
}

namespace {

SlowReason at_first(const LossRules& rules) {
  if (rules.type == ConnectionType::Slow) return SlowReason::Initiated;
  return rules.out_of_order == OutOfOrder::Drop ? SlowReason::Drop : SlowReason::None;
}

}  // namespace

Recovery::Recovery(const LossRules& rules)
    : reason_(at_first(rules)),
      most_attempts_(rules.max_recovery_attempts),
      upgrade_after_(
          std::clamp<std::uint32_t>(rules.upgrade_after, 1, LossRules::kMostUpgradeAfter)) {}

bool Recovery::gap(Psn psn) {
  if (attempts_ == most_attempts_) return false;
  if (attempts_++ == 0) last_ = psn;
  return true;
}

// As for iWARP (E-9), but the time spent FAST is measured in requests, as there is no clock here:
// the required number is halved once for every 2^16 of them, and each further downgrade doubles the
// result.
void Recovery::downgrade(SlowReason why, std::uint64_t taken) {
  constexpr unsigned kRest = 16;
  if (needed_ == 0) {
    needed_ = upgrade_after_;
  } else {
    const auto halvings = std::min<std::uint64_t>((taken - fast_since_) >> kRest, 31);
    const std::uint32_t rested = std::max(upgrade_after_, needed_ >> halvings);
    needed_ = std::min(2 * rested, LossRules::kMostUpgradeAfter);
  }
  reason_ = why;
  attempts_ = in_row_ = 0;
}

bool Recovery::taken(Psn expected, std::uint64_t taken) {
  if (reason_ == SlowReason::None) {
    if (last_.before(expected)) attempts_ = 0;
    return false;
  }
  if (needed_ == 0 || ++in_row_ < needed_) return false;
  reason_ = SlowReason::None;
  fast_since_ = taken;
  return true;
}

}  // namespace urnic::ib
