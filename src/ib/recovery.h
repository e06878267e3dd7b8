// Decides whether an RC queue pair is FAST or SLOW now (S-1, S-8). Gaps are counted per recovery,
// which lasts from the first gap until everything up to the packet that revealed it has arrived.
// Too many gaps, or too little room to keep packets, make the queue pair SLOW until enough requests
// have arrived in order.
//
// It only counts; it does not see packets. Owned by the responder of one queue pair.
#pragma once

#include <cstdint>
#include <string_view>

#include "ib/loss_rules.h"
#include "ib/psn.h"

namespace urnic::ib {

enum class SlowReason : std::uint8_t {
  None,
  Initiated,
  Drop,  // initiated FAST, but configured to keep nothing
  RecoveryExhausted,
  StoreFull,
};
// "initiated-slow", "drop", "recovery-exhausted", "store-full"; "" for None.
std::string_view name(SlowReason);

class Recovery {
 public:
  explicit Recovery(const LossRules&);

  ConnectionType type() const {
    return reason_ == SlowReason::None ? ConnectionType::Fast : ConnectionType::Slow;
  }
  SlowReason reason() const { return reason_; }
  // True if taken() has to be called for requests in order.
  bool waits() const { return attempts_ != 0 || (needed_ != 0 && reason_ != SlowReason::None); }

  // A new gap before `psn`. False: one too many.
  bool gap(Psn psn);
  // SLOW from now on. `taken`: requests accepted in order so far, in total.
  void downgrade(SlowReason, std::uint64_t taken);
  // While SLOW: there is a gap again.
  void broken() { in_row_ = 0; }
  // Everything before `expected` has been accepted, one more in order. True: FAST again.
  bool taken(Psn expected, std::uint64_t taken);

 private:
  SlowReason reason_;
  std::uint32_t most_attempts_, upgrade_after_;
  std::uint32_t attempts_ = 0;
  Psn last_;                  // end of the recovery, once this has been accepted
  std::uint32_t needed_ = 0;  // in order before an upgrade; 0: never downgraded
  std::uint32_t in_row_ = 0;
  std::uint64_t fast_since_ = 0;  // in requests accepted
};

}  // namespace urnic::ib
