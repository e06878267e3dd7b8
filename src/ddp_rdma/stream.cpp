#include "ddp_rdma/stream.h"

namespace urnic::ddp {
namespace {

SenderConfig sender_config(const StreamConfig& c) {
  SenderConfig s;
  s.stream = c.id;
  s.pd = c.pd;
  s.max_send_wr = c.max_send_wr;
  s.max_send_sge = c.max_send_sge;
  s.max_inline = c.max_inline;
  s.keep_below = c.keep_below;
  s.pack_partial = c.pack_partial;
  return s;
}

}  // namespace

Stream::Stream(const StreamConfig& c, MemoryTable* m, std::uint32_t first_msn)
    : config(c),
      memory(m),
      rq(c.shared_rq != nullptr ? ReceiveQueue(c.shared_rq, &m->pool(), first_msn)
                                : ReceiveQueue(c.max_recv_wr, c.max_recv_sge, first_msn)),
      held(&m->pool(),
           c.completion_method == CompletionMethod::Shared ? c.completion_threshold : 0),
      inbound_reads(&m->pool(), first_msn),
      sender(sender_config(c), m, &inbound_reads, first_msn),
      mo_msn(first_msn),
      mo_unchecked(first_msn - 1) {}

void Stream::set_limits(std::uint16_t ird, std::uint16_t ord) {
  inbound_reads.set_limit(ird);
  sender.set_ord(ord);
}

void Stream::forget_out_of_order() {
  held.clear();
  rq.forget_ends();
}

void Stream::reset() {
  sender.reset();
  inbound_reads.reset();
  rq.reset();
  held.clear();
  memory->fresh_sends().forget(config.id);
  terminate_received = false;
  terminate = {};
  mo_msn = 1;
  send_mo = 0;
  mo_unchecked = 0;
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
