#include "ib/xrc_queues.h"

#include "ib/psn.h"

namespace urnic::ib {

bool XrcQueues::open(verbs::SharedReceiveQueue* queue, std::uint32_t domain,
                     verbs::CompletionQueue* completions) {
  if (by_number_.size() >= kMost) return false;
  std::uint32_t number = 0;
  do {
    last_ = last_ == kMask24 ? 1 : last_ + 1;
    number = numbers_.outside(last_);
  } while (find(number) != nullptr);
  by_number_.insert(number, queue);
  queue->xrc = {number, domain, completions};
  return true;
}

void XrcQueues::close(verbs::SharedReceiveQueue* queue) noexcept {
  by_number_.erase(queue->xrc.number);
  queue->xrc = {};
}

}  // namespace urnic::ib
