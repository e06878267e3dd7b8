#include "roce/xrc.h"

#include "ib/xrc_queues.h"
#include "verbs/completion_queue.h"

namespace urnic::roce {
namespace {

// Calls f(CompletionQueue&) for each shared receive queue of the domain; does nothing for other
// services.
template <class F>
void for_each_queue(const ib::XrcEnd& end, F&& f) {
  if (!end.receives) return;
  end.queues->for_each([&](const verbs::SharedReceiveQueue& queue) {
    if (queue.xrc.domain == end.domain) f(*queue.xrc.completions);
  });
}

}  // namespace

void close_xrc(ib::XrcQueues* queues, const ContextTable& contexts,
               verbs::SharedReceiveQueue* queue) {
  queues->close(queue);
  contexts.for_each([&](Context& c) { c.qp->rq.forget_queue(queue); });
}

void forget_received(const Context& c) {
  for_each_queue(c.attributes.xrc, [&](verbs::CompletionQueue& cq) { cq.forget(c.qp->number()); });
}

bool completes_on_overrun(const verbs::QueuePair& qp) {
  bool is = false;
  for (const verbs::CompletionQueue* cq : {qp.send_cq, qp.receive_cq}) {
    is = is || (cq != nullptr && cq->overrun());
  }
  for_each_queue(context_of(qp).attributes.xrc,
                 [&](const verbs::CompletionQueue& cq) { is = is || cq.overrun(); });
  return is;
}

}  // namespace urnic::roce
