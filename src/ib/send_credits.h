// End-to-end credits as the requester obeys them: LSN = MSN + credits is the highest SSN it may
// send freely; a WQE beyond it is limited. Requests that use no receive of the peer raise the LSN
// computed here by one when they leave. What is repeated is never held back (IB-90).
//
// Owned by the requester of one queue pair.
#pragma once

#include <cstdint>

#include "ib/packet.h"
#include "ib/psn.h"

namespace urnic::ib {

// Receives that a credit code of an AETH stands for; code < kNoCredits.
std::uint32_t credits_of(std::uint8_t code);

class SendCredits {
 public:
  // Not obeyed when the peer's receive queue is known to tell none. Otherwise none are there until
  // it tells some (C9-156).
  explicit SendCredits(bool obeyed) : unlimited_(!obeyed) {}

  // Of an AETH in ACK form, with its MSN. Older ones than the newest seen say nothing; kNoCredits
  // says that no limit holds from now on. The LSN may go back (IB-86).
  void take(Msn msn, std::uint8_t code);

  // Whether the WQE with this SSN may be sent freely.
  bool covers(Msn ssn) const;
  // A request that uses no receive has left (IB-86).
  void left_without_receive() { ++lsn_; }

  // As much of the limited WQE as is allowed has left; its last packet is the one before `end`.
  // Nothing new leaves until that is answered, or the WQE is covered (IB-84, IB-85).
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
