#include "iwarp/flush.h"

#include "ddp_rdma/stream.h"

namespace urnic::iwarp {

void flush(Completions& completions, verbs::QueuePair& qp, verbs::Status first) {
  completions.flush(qp, [&](auto&& post) { ddp::flush(ddp::stream_of(qp), first, post); });
}

void enter_error(Completions& completions, verbs::QueuePair& qp, verbs::Status first) {
  const verbs::QpMove move = qp.state.advance(verbs::QpState::Error);
  if (move.effect == verbs::QpEffect::FlushAll) {
    flush(completions, qp, first);
  } else {
    flush_posted(completions, qp);
  }
}

void flush_posted(Completions& completions, verbs::QueuePair& qp) {
  if (verbs::flushes_posts(qp.state)) flush(completions, qp, verbs::Status::Flushed);
}

}  // namespace urnic::iwarp
