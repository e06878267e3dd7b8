// The state of one connection, or of one service request, in connection management.
#pragma once

#include <cstdint>

#include "base/deadlines.h"
#include "base/gate.h"
#include "base/time.h"
#include "ib_cm/events.h"

namespace urnic::ib_cm {

enum class State : std::uint8_t {
  ReqSent,      // active
  RepReceived,  // active: the owner has to confirm
  ReqReceived,  // passive: the owner has to accept
  RepSent,      // passive
  Established,
  DreqSent,
  TimeWait,  // ids and queue pair numbers are not reused yet
  Refused,   // a REJ was sent, and is sent again if the peer repeats its message
  SidrSent,
  SidrReceived,  // the owner has to answer
  SidrAnswered,  // a SIDR REP was sent, and is sent again if the peer asks again
};
inline constexpr std::size_t kStates = 11;

class Resting;
struct Connection;
// The position of a resting connection (resting.h).
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
  bool orphan = false;  // only its release is reported to the owner
  bool told = false;    // the end has been reported
  Transport transport = Transport::Rc;
  AddressPair addresses;
  std::uint32_t remote_id = 0;  // 0: unknown
  std::uint32_t qpn = 0, remote_qpn = 0;
  ib::Psn remote_psn;             // the same in a repeated REQ
  std::uint64_t transaction = 0;  // of the current exchange
  std::uint64_t service = 0;
  ListenerId listener = 0;  // ReqReceived, SidrReceived
  Admission admission;      // passive, until it ends: its place in the listener's gate
  Admission waits;          // passive, until the owner answers: its place in the backlog
  Admission half_open;      // passive, until its peer has shown that it receives our messages
  Rest rest;
  QpValues offered;  // with the depths of the REQ
  PathValues path;
  std::uint8_t extensions = 0;  // offered by us or, to us, those that we also have
  bool alternate = false;       // the REQ has an alternate path

  // The current exchange.
  Mad last{};                // the last MAD sent
  Duration interval;         // between repetitions, or of the peer's wait
  std::uint8_t retries = 0;  // of each exchange
  std::uint8_t retries_left = 0;
  std::uint8_t mras = 0;  // accepted in this exchange
  Duration time_wait;

  Instant due = Instant::never();
  std::uint32_t place = Deadlines<Connection>::kNowhere;
};

}  // namespace urnic::ib_cm
