// Doorbells: queue pairs with posted work that nobody has handled yet. Any thread leaves one; the
// owner of the engine answers them.
#pragma once

#include <cstdint>

#include "base/mpsc_queue.h"
#include "verbs/queue_pair.h"

namespace urnic::device {

class Doorbells {
 public:
  // `what` was posted to `qp`. False: a doorbell that was left before covers it, because whoever
  // answers that one sees the work.
  bool leave(verbs::QueuePair& qp, verbs::Posted what) {
    if (qp.rung.fetch_or(what) != 0) return false;
    left_.push(&qp);
    return true;
  }
  // The oldest, with what was posted to it (verbs::Posted bits); null if there is none. Later posts
  // leave a new one. One thread at a time.
  verbs::QueuePair* take(std::uint8_t* posted) {
    verbs::QueuePair* const qp = left_.pop();
    if (qp != nullptr) *posted = qp->rung.exchange(0);
    return qp;
  }

 private:
  MpscQueue<verbs::QueuePair> left_;
};

}  // namespace urnic::device
