// What a step of receiving or sending has found and does not act upon: the steps place, commit and
// acknowledge, and end nothing. They have no way to: only ConnectionEvents (events.h) ends a
// connection, and acts on what was found when the steps are through with the segment.
#pragma once

#include "base/bytes.h"
#include "ddp_rdma/violation.h"

namespace urnic::iwarp {

struct Found {
  ddp::Violation violation = ddp::Violation::None;  // we end the RDMA stream with this Terminate
  bool terminate = false;                           // the peer's Terminate has been delivered
  bool opens_send_side = false;  // an FPDU has come, and we may not send yet: from now on we may
  bool fin = false;              // the peer's FIN has its turn
  bool closed = false;           // TCP is through
  ByteView offending;            // of `violation`; valid until the next step

  // No FPDU behind it counts.
  bool ends_stream() const { return violation != ddp::Violation::None || terminate; }
  bool any() const { return ends_stream() || opens_send_side || fin || closed; }
  void violate(ddp::Violation v, ByteView header = {}) {
    violation = v;
    offending = header;
  }
};

}  // namespace urnic::iwarp
