// Explicit congestion notification by a router (RFC 3168, 5).
#pragma once

#include "fault/tcp_frame.h"

namespace urnic::fault {

// Sets CE in an IP datagram whose sender supports ECN (ECT). Returns false and changes nothing if
// it does not, or if the frame is not an IP datagram.
bool mark_frame(Frame* f);

}  // namespace urnic::fault
