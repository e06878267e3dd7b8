// What connection management keeps of one connection, or of one question about a service.
#pragma once

#include <cstdint>

#include "base/deadlines.h"
#include "base/gate.h"
#include "base/time.h"
#include "ib_cm/events.h"

namespace urnic::ib_cm {

enum class State : std::uint8_t {
  ReqSent,      // active
  RepReceived,  // active: the owner is asked to confirm
  ReqReceived,  // passive: the owner is asked to accept
  RepSent,      // passive
  Established,
  DreqSent,
  TimeWait,  // ids and queue pair numbers are held back
  Refused,   // a REJ was sent, and is sent again to whom repeats what it answers
  SidrSent,
  SidrReceived,  // the owner is asked to answer
  SidrAnswered,  // a SIDR REP was sent, and is sent again
};
inline constexpr std::size_t kStates = 11;

class Resting;
struct Connection;
// Where a connection rests (resting.h).
struct Rest {
  struct Links {
    Connection *older = nullptr, *newer = nullptr;
  };
  Resting* in = nullptr;
  bool by_peer = false;
  Instant since;
  Links links[2];  // among all, and among those of its peer
};

struct Connection {
  Handle id = 0;
  State state = State::ReqSent;
  bool active = false;
  bool orphan = false;  // the owner wants to hear of its release alone
  bool told = false;    // that it is disconnected
  Transport transport = Transport::Rc;
  AddressPair way;
  std::uint32_t remote_id = 0;  // 0: not known
  std::uint32_t qpn = 0, remote_qpn = 0;
  ib::Psn remote_psn;             // a repeated REQ has the same
  std::uint64_t transaction = 0;  // of the exchange under way
  std::uint64_t service = 0;
  ListenerId listener = 0;  // ReqReceived, SidrReceived
  Admission admission;      // passive, until it has ended: its place behind the listener's gate
  Admission waits;          // ... until the owner has answered: its place in the backlog
  Admission half_open;      // ... until its peer has shown that it hears us
  Rest rest;
  QpValues offered;  // depths that the REQ has
  PathValues path;
  std::uint8_t extensions = 0;  // offered: by us or, to us, what we also have
  bool alternate = false;       // the REQ names a second path

  // The exchange under way.
  Mad last{};                // what was sent last, whole
  Duration interval;         // between repetitions, or of the peer's wait
  std::uint8_t retries = 0;  // of each exchange
  std::uint8_t retries_left = 0;
  std::uint8_t mras = 0;  // taken, in this exchange
  Duration time_wait;

  Instant due = Instant::never();
  std::uint32_t place = Deadlines<Connection>::kNowhere;
};

}  // namespace urnic::ib_cm
