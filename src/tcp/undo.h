// Unnecessary retransmissions (RFC 4015): how they are detected, and what is undone. Called by
// loss.cpp only.
//   timestamps   the ACK echoes a time before the first retransmission (RFC 3522)
//   D-SACK       every retransmission is reported to have arrived twice (RFC 3708)
//   F-RTO        after a timeout, data that was not resent is acknowledged (RFC 5682)
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::tcp {

struct Tcb;
struct Segment;
struct Delivery;

struct Undo {
  std::uint32_t again = 0;  // segments resent since the cut, less those D-SACKed
  std::uint32_t stamp = 0;  // timestamp clock at the first of them
  bool armed = false;       // there is a cut to undo
  bool sent = false;        // ... and something was resent after it
  // The state of F-RTO (RFC 5682 3.1).
  enum class Frto : std::uint8_t {
    Off,
    First,   // the oldest segment was resent; the next ACK decides
    Second,  // the window moved; new data is sent, the next ACK decides
  } frto = Frto::Off;
};

// The window was cut for a loss.
void undo_arm(Tcb&);
// Something was retransmitted.
void undo_on_retransmission(Tcb&, Instant now);
// True if the cut was unnecessary. Called for every ACK while `armed`. `echo`: the segment's TSecr,
// if `has_echo`.
bool undo_due(const Tcb&, bool una_advanced, bool has_echo, std::uint32_t echo);
void undo_on_dsack(Tcb&);

}  // namespace urnic::tcp
