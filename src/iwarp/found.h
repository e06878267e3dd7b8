// The results of a step of receiving or sending. The steps place, commit and acknowledge, but they
// end nothing and have no means to do so. Only ConnectionEvents (connection_events.h) ends a
// connection, and acts on these results when the steps have finished the segment.
#pragma once

#include "base/bytes.h"
#include "ddp_rdma/violation.h"

namespace urnic::iwarp {

struct Found {
  ddp::Violation violation = ddp::Violation::None;  // we end the RDMA stream with this Terminate
  bool terminate = false;                           // the peer's Terminate has been delivered
  bool opens_send_side = false;  // an FPDU has arrived, so that we may send from now on
  bool fin = false;              // the peer's FIN is to be processed
  bool closed = false;           // TCP has finished
  bool reset = false;            // a plan of faults resets the connection
  ByteView offending;            // header for `violation`; valid until the next step

  // FPDUs after this are ignored.
  bool ends_stream() const { return violation != ddp::Violation::None || terminate; }
  bool any() const { return ends_stream() || opens_send_side || fin || closed; }
  void violate(ddp::Violation v, ByteView header = {}) {
    violation = v;
    offending = header;
  }
};

}  // namespace urnic::iwarp
