// The one table of QP states (D9): the states verbs programs know, and the iWARP stream states
// behind them (iwarp-wire 5.1).
//
//   verbs   stream      enters by
//   Reset   Idle        creation; modify
//   Init    Idle        modify; accept or connect begun
//   Rtr     Idle        MPA start-up running
//   Rts     Rts         MPA stream bound (Reply accepted / sent)
//   Sqd     Closing     orderly close: FIN follows the last message
//   Sqe     Terminate   a Terminate was sent or received; the stream drains
//   Error   Error       stream gone; all work flushed
#pragma once

#include <cstdint>
#include <string_view>

namespace urnic::verbs {

enum class QpState : std::uint8_t { Reset, Init, Rtr, Rts, Sqd, Sqe, Error };
enum class StreamState : std::uint8_t { Idle, Rts, Closing, Terminate, Error };

enum class QpEvent : std::uint8_t {
  ModifyInit,       // consumer: Reset -> Init
  StartConnection,  // connect or accept begun
  StreamBound,      // MPA start-up done
  CloseRequested,   // consumer's orderly close, or the peer's FIN with nothing outstanding
  LocalViolation,   // we send a Terminate
  TerminateReceived,
  StreamLost,    // RST, time-out, FIN in the middle of a message, abort
  StreamClosed,  // both FINs done, or the Terminate has been delivered and TCP closed
  ModifyError,
  ModifyReset,  // from Error (or Reset): everything forgotten
};

struct QpTransition {
  QpState next;
  bool legal;  // false: the event does not fit the state; `next` is the state unchanged
  bool flush;  // outstanding work requests complete as flushed
};

// Pure; total over both enumerations.
QpTransition qp_next(QpState, QpEvent);
StreamState stream_state(QpState);
std::string_view name(QpState);

// May work be posted? Receives from Init on; sends are taken from Rts on (flushed in error states).
constexpr bool may_post_receive(QpState s) {
  return s != QpState::Reset;
}
constexpr bool may_post_send(QpState s) {
  return s >= QpState::Rts;
}
// Posts complete as flushed at once.
constexpr bool flushes_posts(QpState s) {
  return s == QpState::Sqe || s == QpState::Error;
}

}  // namespace urnic::verbs
