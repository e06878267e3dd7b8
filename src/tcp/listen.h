// Segments that match no connection: at a listener (RFC 9293 3.10.7.2), at a closed port
// (3.10.7.1), or for a connection in TIME-WAIT (3.6.1). Stateless.
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

// The RST for a segment without a connection. The caller must not send it if the segment is itself
// a RST. Ports are swapped; the caller that emits it computes the checksum.
Segment closed_reply(const Segment&);

// Returns true if this SYN may open a new incarnation of a connection in TIME-WAIT (RFC 9293 3.6.1,
// RFC 6191). In that case close the old connection and treat the SYN as for a listener.
bool may_reopen(const Tcb& time_wait, const Segment& syn);

}  // namespace urnic::tcp
