// What a responder of XRC has before the rules of RC: each request names a shared receive queue by
// its number (XRCETH). The queue must be there and of the domain of the queue pair; where the
// message ends in a receive it is one of that queue, and memory that requests reach is that of the
// protection domain of that queue, since a receiving end belongs to no process of its domain more
// than to another.
//
// A function of (state, input), as the responder.
#pragma once

#include "ib/judge_request.h"

namespace urnic::ib {

// As judge_request(), of a queue pair of XRC. Where it has accepted what begins a message, or would
// have if there was a receive, the receive queue has turned to the shared queue that is named.
RequestJudgment judge_xrc_request(ResponderState&, const ParsedPacket& request);

}  // namespace urnic::ib
