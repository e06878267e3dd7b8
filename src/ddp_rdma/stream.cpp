#include "ddp_rdma/stream.h"

namespace urnic::ddp {
namespace {

SenderConfig sender_config(const StreamConfig& c) {
  SenderConfig s;
  s.stream = c.id;
  s.pd = c.pd;
  s.keep_below = c.keep_below;
  s.pack_partial = c.pack_partial;
  return s;
}

}  // namespace

verbs::WorkQueueLayout queue_layout(SharedState* shared, std::uint32_t first_msn) {
  return {sizeof(SendPart), first_msn, &shared->pool};
}

Stream::Stream(const StreamConfig& c, SharedState* state, verbs::WorkQueues* queues,
               std::uint32_t first_msn)
    : config(c),
      shared(state),
      memory(state->memory),
      sq(queues->sq),
      rq(queues->rq),
      held(&state->pool,
           c.completion_method == CompletionMethod::Shared ? c.completion_threshold : 0),
      inbound_reads(&state->pool, first_msn),
      sender(sender_config(c), state, &queues->sq, &inbound_reads, first_msn),
      mo_msn(first_msn),
      mo_unchecked(first_msn - 1) {}

Stream::Stream(const StreamConfig& c, SharedState* state, std::uint32_t first_msn)
    : Stream(c, state, std::make_unique<verbs::WorkQueues>(c, queue_layout(state, first_msn)),
             first_msn) {}

Stream::Stream(const StreamConfig& c, SharedState* state, std::unique_ptr<verbs::WorkQueues> queues,
               std::uint32_t first_msn)
    : Stream(c, state, queues.get(), first_msn) {
  own_queues_ = std::move(queues);
}

void Stream::set_limits(std::uint16_t ird, std::uint16_t ord) {
  inbound_reads.set_limit(ird);
  sender.set_ord(ord);
}

void Stream::forget_out_of_order() {
  held.clear();
  rq.forget_ends();
}

bool Stream::leave(std::uint64_t most) {
  if (!sender.leave(most)) return false;
  held.clear();
  rq.leave();
  shared->fresh_sends.forget(config.id);
  return true;
}

void Stream::reset() {
  sender.reset();
  inbound_reads.reset();
  rq.reset(1);
  held.clear();
  shared->fresh_sends.forget(config.id);
  remote_access = kAllRemoteAccess;
  terminate_received = false;
  terminate = {};
  mo_msn = 1;
  send_mo = 0;
  mo_unchecked = 0;
  completion_writes = {};
}

Status flush_status(Violation v) {
  switch (v) {
    case Violation::UntaggedTooLong:
      return Status::LocalLength;
    case Violation::LocalCatastrophic:
      return Status::LocalProtection;
    default:
      return Status::Flushed;
  }
}

}  // namespace urnic::ddp
