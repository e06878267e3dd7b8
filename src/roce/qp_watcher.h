// What the side (side.h) reports of queue pairs, for connections (connections.h).
#pragma once

#include <cstdint>

#include "verbs/queue_pair.h"

namespace urnic::roce {

enum class QpEvent : std::uint8_t {
  Established,  // a request came in Rtr: it may go to Rts (IB-120)
  Drained,      // in Sqd, as asked for (IB-112)
  // It is in Error, and a peer of RC knows: a request of its touched what it may not, could not be,
  // or met a fault of ours.
  RefusedAccess,
  RefusedRequest,
  RefusedFault,
  Failed,  // in Error: a request of ours failed, as its completion says
  Silent,  // in Error: the peer is not there any more (Side::keep_alive)
};

// Called from within the side's functions: nothing of the engine may be called back.
class QpWatcher {
 public:
  virtual ~QpWatcher() = default;
  virtual void on_qp_event(verbs::QueuePair&, QpEvent) = 0;
};

}  // namespace urnic::roce
