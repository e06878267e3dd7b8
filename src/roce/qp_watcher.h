// Events of queue pairs that the side (side.h) reports to connections (connections.h).
#pragma once

#include <cstdint>

#include "verbs/queue_pair.h"

namespace urnic::roce {

enum class QpEvent : std::uint8_t {
  Established,  // a request arrived in Rtr: the queue pair may go to Rts (IB-120)
  Drained,      // in Sqd, as requested (IB-112)
  // In Error, and an RC peer has been sent a NAK: its request accessed memory without the right to,
  // was invalid, or met a local fault.
  RefusedAccess,
  RefusedRequest,
  RefusedFault,
  Failed,  // in Error: a request of ours failed, as its completion reports
  Silent,  // in Error: the peer does not respond any more (Side::keep_alive)
};

// Called from within the side's functions: must not call back into the engine.
class QpWatcher {
 public:
  virtual ~QpWatcher() = default;
  virtual void on_qp_event(verbs::QueuePair&, QpEvent) = 0;
};

}  // namespace urnic::roce
