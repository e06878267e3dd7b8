// Work requests that must end with a status of `urnic run --verbs-faults`. The engine gets them
// with memory that nobody may use, so that it ends them, and with them their queue pair, as it ends
// any request with an error: nothing reaches the peer, and what follows is flushed. Only the status
// is changed on the way to the program.
#pragma once

#include <optional>
#include <span>

#include "dropin/exported.h"
#include "urnic/verbs.h"

namespace urnic::dropin {

struct Qp;
struct Srq;

// Only with an Injector. Change the requests that must fail and deliver the asynchronous events
// that come with them. `caller`: an address in the program's function.
void inject_sends(Qp& qp, std::span<SendRequest> requests, const void* caller);
void inject_receive(Qp& qp, ReceiveRequest* request, const void* caller);
void inject_receive(Srq& srq, ReceiveRequest* request, const void* caller);
// The status that the program sees of a request that ended with an error; none if it sees that one.
// Call for every request that ended with an error: one that was flushed first is forgotten.
std::optional<ibv_wc_status> injected_status(const Completion& c);

}  // namespace urnic::dropin
