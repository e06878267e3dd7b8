// The asynchronous events of `urnic run --verbs-faults`. Each comes with a posted work request, so
// that the same program meets it at the same place every time.
#pragma once

namespace urnic::dropin {

struct Qp;
struct Srq;

// Only with an Injector; call once for each work request that the program posts.
void inject_events(Qp& qp);
void inject_events(Srq& srq);

}  // namespace urnic::dropin
