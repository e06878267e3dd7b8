// End-to-end credits as obeyed by the requester: LSN = MSN + credits is the highest SSN that it may
// send freely; a WQE beyond it is limited. A request that uses no receive of the peer raises the
// LSN computed here by one when it is sent. Repetitions are never held back (IB-90).
//
// Owned by the requester of one queue pair.
#pragma once

#include <cstdint>

#include "ib/packet.h"
#include "ib/psn.h"

namespace urnic::ib {

// The number of receives that a credit code of an AETH means; code < kNoCredits.
std::uint32_t credits_of(std::uint8_t code);

class SendCredits {
 public:
  // `obeyed` is false if the peer's receive queue is known to advertise no credits. Otherwise there
  // are none until it advertises some (C9-156).
  explicit SendCredits(bool obeyed) : unlimited_(!obeyed) {}

  // Takes an AETH in ACK form, with its MSN. Older ones than the newest seen are ignored;
  // kNoCredits removes the limit from now on. The LSN may go back (IB-86).
  void take(Msn msn, std::uint8_t code);

  // True if the WQE with this SSN may be sent freely.
  bool covers(Msn ssn) const;
  // A request that uses no receive has been sent (IB-86).
  void left_without_receive() { ++lsn_; }

  // The limited WQE has been sent as far as allowed; its last packet is the one before `end`. New
  // packets wait until that is answered, or the WQE is covered (IB-84, IB-85).
  void hold(Msn ssn, Psn end) {
    holding_ = true;
    held_ = ssn;
    end_ = end;
  }
  // Everything before `una` is answered.
  void answered(Psn una) {
    if (!una.before(end_)) holding_ = false;
  }
  bool holds() {
    if (holding_ && covers(held_)) holding_ = false;
    return holding_;
  }

  bool unlimited() const { return unlimited_; }
  Msn lsn() const { return lsn_; }

 private:
  Msn lsn_, newest_;
  Msn held_;
  Psn end_;
  bool holding_ = false;
  bool unlimited_;
};

}  // namespace urnic::ib
