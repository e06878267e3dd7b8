#include "tcp/undo.h"

#include "tcp/tcb_state.h"

namespace urnic::tcp {

void undo_arm(Tcb& t) {
  t.loss.undo = Undo{};
  t.loss.undo.armed = true;
}

void undo_on_retransmission(Tcb& t, Instant now) {
  Undo& u = t.loss.undo;
  // From now on an ACK may answer this retransmission (RFC 5682 3.1 step 2).
  if (u.frto == Undo::Frto::Second) u.frto = Undo::Frto::Off;
  if (!u.armed) return;
  if (!u.sent) u.stamp = ts_clock(t, now);
  u.sent = true;
  ++u.again;
}

bool undo_due(const Tcb& t, bool una_advanced, bool has_echo, std::uint32_t echo) {
  const Undo& u = t.loss.undo;
  if (!u.armed || !u.sent || !t.config.undo) return false;
  // RFC 3522 3.2: the first ACK of resent data answers its first transmission.
  if (una_advanced && t.ts_on && has_echo && echo != 0 &&
      static_cast<std::int32_t>(echo - u.stamp) < 0) {
    return true;
  }
  return u.again == 0;
}

void undo_on_dsack(Tcb& t) {
  Undo& u = t.loss.undo;
  if (u.again != 0) --u.again;
}

}  // namespace urnic::tcp
