// Segments that meet no connection: at a listener (RFC 9293 3.10.7.2), at nobody (3.10.7.1), at the
// remains of an old connection (3.6.1). Stateless.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "tcp/challenge.h"
#include "tcp/segment.h"
#include "tcp/tcb.h"

namespace urnic::tcp {

enum class ListenAction : std::uint8_t {
  Accept,  // a SYN: open_passive()
  Rst,     // answer with closed_reply()
  Discard,
};
ListenAction check_listen(const Segment&);

// The RST for a segment without a connection; nothing must be sent when the segment is itself a
// RST. Ports are swapped, the checksum is the emitter's business.
Segment closed_reply(const Segment&);

// May this SYN open a new incarnation of a connection that lingers in TIME-WAIT (RFC 9293 3.6.1,
// RFC 6191)? Then close the old one and treat the SYN as for a listener.
bool may_reopen(const Tcb& time_wait, const Segment& syn);

}  // namespace urnic::tcp
