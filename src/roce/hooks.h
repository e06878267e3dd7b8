// What the RoCE side tells the owner of its engine.
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
  Failed,       // in Error: a request of ours failed, as its completion says
  Silent,       // in Error: the peer is not there any more (Side::keep_alive)
  LastReceive,  // in Error, it uses no more of its shared receive queue
};

// Called from within the engine's functions: nothing of the engine may be called back.
class Hooks {
 public:
  virtual ~Hooks() = default;
  virtual void on_completion(verbs::CompletionQueue*) = 0;  // it was armed
  virtual void on_cq_overrun(verbs::CompletionQueue*) = 0;
  virtual void on_qp_event(verbs::QueuePair&, QpEvent) = 0;
};

}  // namespace urnic::roce
