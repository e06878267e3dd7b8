// Delivery (9.3, 9.4): completes placed messages once everything before them has arrived.
#include "ddp_rdma/access.h"
#include "ddp_rdma/stream.h"

namespace urnic::ddp::detail {
namespace {

ByteView header_bytes(Stream& s, const SegmentHeader& h) {
  std::uint8_t* const at = s.shared->offending.data();
  return {at, emit_header(h, at)};
}

Opcode opcode_of(const verbs::ReceiveEnd& end) {
  if (end.with_invalidate) return end.solicited ? Opcode::SendSeInv : Opcode::SendInv;
  return end.solicited ? Opcode::SendSe : Opcode::Send;
}

}  // namespace

Violation deliver_send(Stream& s, Delivered* d, ByteView* offending) {
  const std::uint32_t msn = s.rq.head();
  if (s.rq.posted() == 0) return Violation::UntaggedMsnRange;
  ReceiveWqe& w = s.rq.wqe(msn);
  SendEnd end;
  d->stored = false;
  // The end that arrived in order is valid. One held for this message, or an earlier one, is stale.
  const bool held = s.held.size() != 0 && s.held.take(msn, &end);
  if (!s.shared->fresh_sends.take(s.config.id, msn, &end) && !held) {
    // With out-of-order segments, a peer may have ended one message twice and another never.
    if (!w.ended) return Violation::UntaggedMsnRange;
    d->stored = true;
    end = {w.end, s.rq.part<ReceivePart>(msn).last_mo};
  }
  if (end.verbs.with_invalidate) {
    const auto result = s.memory->invalidate(end.verbs.inv_key, {s.config.pd, s.config.id});
    if (result != MemoryTable::Invalidate::Ok) {
      SegmentHeader h;
      h.op = opcode_of(end.verbs);
      h.last = true;
      h.inv_stag = end.verbs.inv_key;
      h.qn = kQnSend;
      h.msn = msn;
      h.mo = end.last_mo;
      *offending = header_bytes(s, h);
      return result == MemoryTable::Invalidate::Other ? Violation::InvalidateOther
                                                      : Violation::InvalidateUnknown;
    }
  }
  verbs::fill_completion(w, end.verbs, &d->completion);
  d->position = s.rq.position(msn);
  if (d->stored)
    s.rq.store()->lend(d->position);  // before the head moves, because posting a
                                      // receive looks there
  s.rq.pop(d->stored);
  return Violation::None;
}

// One CQE covers all Sends in neighbouring WQEs; with method 1, only one Send.
bool joins(const Stream& s, const StoredSends& run, std::uint32_t position) {
  return s.config.completion_method == CompletionMethod::Shared && run.count != 0 &&
         position == run.first + run.count;
}

// Checks the memory first, then the queue pair (RFC 5040, 7.2: rights come last).
Violation check_read_request(const Stream& s, const ReadRequest& q, const AtomicRequest* atomic) {
  const Violation v = atomic != nullptr ? check_atomic_target(*s.shared, atomic->stag, atomic->to,
                                                              s.config.pd, s.config.id)
                                        : check_read_source(*s.shared, q.source_stag, q.source_to,
                                                            q.size, s.config.pd, s.config.id);
  if (v != Violation::None) return v;
  return s.allows(atomic != nullptr ? verbs::kRemoteAtomic : verbs::kRemoteRead)
             ? Violation::None
             : Violation::ReadAccess;
}

Violation deliver_read_requests(Stream& s, std::uint32_t n, ByteView* offending) {
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t msn = s.inbound_reads.next();
    const ReadRequest* q = s.inbound_reads.to_deliver();
    if (q == nullptr) return Violation::UntaggedMsnRange;
    if (q->size != 0) {  // zero-length: the source is not checked (RFC 5040, 5.2.1)
      const Violation v = check_read_request(s, *q, s.inbound_reads.atomic(msn));
      if (v != Violation::None) {
        std::uint8_t* const at = s.shared->offending.data();
        *offending = {at, s.inbound_reads.emit(msn, 0, at)};
        return v;
      }
    }
    s.inbound_reads.announce();
  }
  return Violation::None;
}

void deliver_terminate(Stream& s) {
  s.terminate_received = true;
}

namespace {

// A receive of a shared queue is bound when the first segment is placed in it. That did not happen
// if its memory or its length does not allow the segment, and then it must be bound to fail.
bool bind_at_fault(Stream& s, Status first) {
  const bool at_fault = first == Status::LocalLength || first == Status::LocalProtection;
  const std::uint32_t msn = s.rq.head();
  if (!at_fault || s.rq.shared() == nullptr || !s.rq.has(msn)) return false;
  s.rq.claim(msn);
  return true;
}

}  // namespace

bool flush_receive(Stream& s, Status* first, Completion* c) {
  if (s.rq.posted() == 0 && !bind_at_fault(s, *first)) return false;
  const std::uint32_t msn = s.rq.head();
  *c = Completion{};
  c->wr_id = s.rq.wqe(msn).wr_id;
  c->receive = true;
  c->status = Status::Flushed;
  if (*first == Status::LocalLength) {
    c->status = Status::LocalLength;
  } else if (*first == Status::LocalProtection) {
    if (s.receive_gone) c->status = Status::LocalProtection;
    for (const Sge& sge : s.rq.sges(msn)) {
      if (resolve_sge(*s.memory, sge, s.receive_pd(), true).data() == nullptr) {
        c->status = Status::LocalProtection;
      }
    }
  }
  *first = Status::Flushed;  // only the oldest is at fault
  s.rq.pop();
  return true;
}

}  // namespace urnic::ddp::detail
