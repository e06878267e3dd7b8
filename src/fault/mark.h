// Explicit congestion notification at a router (RFC 3168, 5).
#pragma once

#include "fault/tcp_frame.h"

namespace urnic::fault {

// Sets CE on an IP datagram whose sender takes part (ECT). False: it does not, or the frame is
// none; nothing has changed.
bool mark_frame(Frame* f);

}  // namespace urnic::fault
