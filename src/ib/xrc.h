// The checks of an XRC responder before the rules of RC: each request names a shared receive queue
// by its number (XRCETH). The queue must exist and belong to the XRC domain of the queue pair. If
// the message uses a receive, it is one of that queue, and requests access memory of that queue's
// protection domain, since a receiving end does not belong to one process of its domain.
//
// A function of (state, input), like the responder.
#pragma once

#include "ib/judge_request.h"

namespace urnic::ib {

// As judge_request(), for an XRC queue pair. If it accepts the beginning of a message, or only a
// receive is missing, the receive queue has been turned to the shared queue that is named.
RequestJudgment judge_xrc_request(ResponderState&, const ParsedPacket& request);

}  // namespace urnic::ib
