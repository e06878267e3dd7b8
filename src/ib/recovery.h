// Whether an RC queue pair is FAST or SLOW now (S-1, S-8). Gaps are counted per recovery: from the
// first one until everything has come up to the packet that showed it. More than so many, or more
// to keep than there is room for, and the queue pair is SLOW until enough requests have come in
// order.
//
// Counts, and knows no packets. Owned by the responder of one queue pair.
#pragma once

#include <cstdint>
#include <string_view>

#include "ib/loss_rules.h"
#include "ib/psn.h"

namespace urnic::ib {

enum class SlowReason : std::uint8_t {
  None,
  Initiated,
  Drop,  // initiated FAST, and told to keep nothing
  RecoveryExhausted,
  StoreFull,
};
// "initiated-slow", "drop", "recovery-exhausted", "store-full"; "" of None.
std::string_view name(SlowReason);

class Recovery {
 public:
  explicit Recovery(const LossRules&);

  ConnectionType type() const {
    return reason_ == SlowReason::None ? ConnectionType::Fast : ConnectionType::Slow;
  }
  SlowReason reason() const { return reason_; }
  // What comes in order matters: taken() is to be called.
  bool waits() const { return attempts_ != 0 || (needed_ != 0 && reason_ != SlowReason::None); }

  // A gap in front of `psn`, new to the one who counts. False: one too many.
  bool gap(Psn psn);
  // SLOW from now on. `taken`: requests taken in order so far, ever.
  void downgrade(SlowReason, std::uint64_t taken);
  // While SLOW: something is behind a gap again.
  void broken() { in_row_ = 0; }
  // Everything before `expected` has been taken, one more in order. True: FAST again.
  bool taken(Psn expected, std::uint64_t taken);

 private:
  SlowReason reason_;
  std::uint32_t most_attempts_, upgrade_after_;
  std::uint32_t attempts_ = 0;
  Psn last_;                  // of the recovery: it ends when this has been taken
  std::uint32_t needed_ = 0;  // in order before an upgrade; 0: never was downgraded
  std::uint32_t in_row_ = 0;
  std::uint64_t fast_since_ = 0;  // in requests taken
};

}  // namespace urnic::ib
