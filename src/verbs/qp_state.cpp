#include "verbs/qp_state.h"

namespace urnic::verbs {

QpTransition qp_next(QpState s, QpEvent e) {
  const auto to = [](QpState n, bool flush = false) { return QpTransition{n, true, flush}; };
  const QpTransition illegal{s, false, false};
  switch (e) {
    case QpEvent::ModifyInit:
      return s == QpState::Reset || s == QpState::Init ? to(QpState::Init) : illegal;
    case QpEvent::StartConnection:
      return s == QpState::Reset || s == QpState::Init ? to(QpState::Rtr) : illegal;
    case QpEvent::StreamBound:
      return s == QpState::Rtr ? to(QpState::Rts) : illegal;
    case QpEvent::CloseRequested:
      if (s == QpState::Rts || s == QpState::Sqd) return to(QpState::Sqd);
      return s == QpState::Rtr ? to(QpState::Error, true) : illegal;
    case QpEvent::LocalViolation:
    case QpEvent::TerminateReceived:
      if (s == QpState::Error || s == QpState::Reset || s == QpState::Init) return illegal;
      return to(QpState::Sqe, true);
    case QpEvent::StreamLost:
    case QpEvent::StreamClosed:
    case QpEvent::ModifyError:
      return s == QpState::Error ? to(QpState::Error) : to(QpState::Error, true);
    case QpEvent::ModifyReset:
      return s == QpState::Error || s == QpState::Reset || s == QpState::Init ? to(QpState::Reset)
                                                                              : illegal;
  }
  return illegal;
}

StreamState stream_state(QpState s) {
  switch (s) {
    case QpState::Reset:
    case QpState::Init:
    case QpState::Rtr:
      return StreamState::Idle;
    case QpState::Rts:
      return StreamState::Rts;
    case QpState::Sqd:
      return StreamState::Closing;
    case QpState::Sqe:
      return StreamState::Terminate;
    case QpState::Error:
      return StreamState::Error;
  }
  return StreamState::Error;
}

std::string_view name(QpState s) {
  switch (s) {
    case QpState::Reset:
      return "RESET";
    case QpState::Init:
      return "INIT";
    case QpState::Rtr:
      return "RTR";
    case QpState::Rts:
      return "RTS";
    case QpState::Sqd:
      return "SQD";
    case QpState::Sqe:
      return "SQE";
    case QpState::Error:
      return "ERROR";
  }
  return "?";
}

}  // namespace urnic::verbs
