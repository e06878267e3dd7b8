// Acknowledgement, completion in posting order, deregistration, and the end of a sender.
#include "ddp_rdma/sender.h"

namespace urnic::ddp {
namespace {

// Statuses that belong to a request on the wire rather than to one that could not be begun.
bool from_outside(Status s) {
  return s == Status::RemoteAccess || s == Status::RemoteOperation ||
         s == Status::RemoteInvalidRequest || s == Status::FatalTransport;
}

}  // namespace

Sender::~Sender() {
  drop_ledger();
  drop_control();
  for (std::uint32_t seq = sq_.head(); seq != sq_.started(); ++seq) release_request(seq);
}

// ---- uses of regions (E-25)
// -----------------------------------------------------------------------

void Sender::count_uses(std::uint32_t seq) {
  if (sq_.wqe(seq).length == 0) return;
  part(seq).counted = true;
  for (const Sge& sge : sq_.sges(seq)) {
    if (sge.length != 0) ++memory_->find_registered(sge.lkey)->uses;
  }
}

void Sender::uncount_uses(std::uint32_t seq) {
  SendPart& p = part(seq);
  if (!p.counted) return;
  p.counted = false;
  for (const Sge& sge : sq_.sges(seq)) {
    if (sge.length == 0) continue;
    Region* r = memory_->find_registered(sge.lkey);
    if (r != nullptr && r->uses != 0) --r->uses;
  }
}

void Sender::detach_region(std::uint32_t stag) {
  if (stag == 0) return;
  const auto refers = [&](std::uint32_t seq) {
    if ((sq_.wqe(seq).flags & kInline) != 0) return false;
    for (const Sge& sge : sq_.sges(seq)) {
      if (sge.lkey == stag && sge.length != 0) return true;
    }
    return false;
  };
  for (std::uint32_t i = 0; i < ledger_.size(); ++i) {
    Record& r = ledger_[i];
    if (r.kept != nullptr) continue;
    const bool reads = r.kind == RecordKind::Response
                           ? inbound_->request(r.owner).source_stag == stag
                           : refers(r.owner);
    std::uint32_t sum;
    if (reads) capture(r, &sum);  // a failure shows when the record is to be filled again
  }
  for (std::uint32_t seq = sq_.head(); seq != sq_.started(); ++seq) {
    const SendWqe& w = sq_.wqe(seq);
    SendPart& p = part(seq);
    if (w.done || w.op == WrOp::LocalInv || !refers(seq)) continue;
    if (w.op == WrOp::Read) {
      // The response has nowhere to go: it will be refused as one for an unknown STag.
      shared_->sinks.close(p.msn);
    } else if (!p.whole) {
      p.broken = true;
    }
    for (Sge& sge : sq_.sges(seq)) {
      if (sge.lkey != stag || sge.length == 0) continue;
      Region* r = memory_->find_registered(stag);
      if (p.counted && r != nullptr && r->uses != 0) --r->uses;
      sge.lkey = 0;
    }
  }
}

// ---- acknowledgement and completion
// ---------------------------------------------------------------

void Sender::forget_below(StreamOffset una) {
  while (!ledger_.empty()) {
    const Record& r = ledger_.front();
    // The oldest record's end as a distance from end_, so that 32 bits suffice.
    const std::uint32_t behind = static_cast<std::uint32_t>(end_.value()) - (r.begin + r.wire);
    if (una < end_ - behind) break;
    if (r.kept != nullptr) kept_.free(r.kept);
    if ((r.flags & kRecordOnAck) != 0) {
      finish(r.owner);
    } else if (r.kind == RecordKind::Response && (r.flags & kRecordLast) != 0) {
      inbound_->finish_oldest();
    }
    ledger_.pop();
  }
}

void Sender::finish(std::uint32_t seq) {
  uncount_uses(seq);
  sq_.wqe(seq).done = true;
}

bool Sender::finish_reads(std::uint32_t n) {
  for (; n != 0; --n) {
    if (outstanding_ == 0) return false;
    if (rtr_reads_ != 0) {
      --rtr_reads_;
      --outstanding_;
      continue;
    }
    const std::uint32_t seq = first_read_;
    const SendPart& p = part(seq);
    if (sq_.wqe(seq).length != 0) {
      const ReadSink* sink = shared_->sinks.find(p.msn);
      if (sink == nullptr || !sink->ended) return false;
    }
    shared_->sinks.release(p.msn);
    finish(seq);
    first_read_ = p.next_read;
    --outstanding_;
  }
  return true;
}

bool Sender::next_completion(Completion* c) {
  while (sq_.head() != sq_.started()) {
    const SendWqe& w = sq_.wqe(sq_.head());
    if (!w.done) return false;
    const bool wanted = (w.flags & kSignaled) != 0;
    if (wanted) {
      *c = Completion{};
      c->wr_id = w.wr_id;
      c->op = w.op;
      c->byte_len = w.length;
    }
    sq_.pop();
    if (wanted) return true;
  }
  return false;
}

// ---- the end
// --------------------------------------------------------------------------------------

ByteView Sender::failure_header() const {
  if (failure_ == Violation::None || current_ != Current::Response) return {};
  const ReadRequest& q = inbound_->request(current_id_);
  SegmentHeader h;
  h.op = Opcode::ReadRequest;
  h.last = true;
  h.qn = kQnReadRequest;
  h.msn = current_id_;
  h.read = q;
  h.read.sink_to += current_offset_;
  h.read.source_to += current_offset_;
  h.read.size -= current_offset_;
  std::uint8_t* const at = shared_->offending.data();
  return {at, emit_header(h, at)};
}

void Sender::release_request(std::uint32_t seq) {
  const SendWqe& w = sq_.wqe(seq);
  if (w.done) return;
  uncount_uses(seq);
  if (w.op == WrOp::Read) shared_->sinks.release(part(seq).msn);
}

void Sender::drop_ledger() {
  while (!ledger_.empty()) {
    if (ledger_.front().kept != nullptr) kept_.free(ledger_.front().kept);
    ledger_.pop();
  }
}

void Sender::drop_control() {
  for (const Control& c : control_) kept_.free(c.block);
  control_.clear();
  control_.shrink_to_fit();
}

// Records no longer need their WQEs nor consumer memory.
void Sender::settle_ledger() {
  for (std::uint32_t i = 0; i < ledger_.size(); ++i) {
    Record& r = ledger_[i];
    std::uint32_t sum;
    if (r.kept == nullptr && !capture(r, &sum)) {  // cannot be sent again: the stream ends here
      drop_ledger();
      return;
    }
    if (r.kind == RecordKind::Message) {
      r.flags = static_cast<std::uint8_t>((r.flags | kRecordFilled) & ~kRecordOnAck);
    }
  }
}

void Sender::begin_flush(Status first) {
  has_culprit_ = false;
  culprit_status_ = Status::Flushed;
  if (failed_status_ != Status::Success) {
    has_culprit_ = true;
    culprit_seq_ = failed_seq_;
    culprit_status_ = failed_status_;
    failed_status_ = Status::Success;
  } else if (from_outside(first) && !sq_.empty()) {
    has_culprit_ = true;
    culprit_seq_ = sq_.head();
    culprit_status_ = first;
  }
  if (stopped_) {
    settle_ledger();
  } else {
    drop_ledger();
    drop_control();
    inbound_->reset(inbound_->next());
  }
  current_ = Current::None;
  ended_ = true;
  outstanding_ = rtr_reads_ = 0;
  seen_ = sq_.tail();
  response_seen_ = inbound_->next();
  queued_wire_ = response_wire_ = 0;
}

bool Sender::flush_one(Completion* c) {
  if (sq_.empty()) return false;
  const std::uint32_t seq = sq_.head();
  const SendWqe& w = sq_.wqe(seq);
  if (seq == sq_.started()) {
    sq_.start();
  } else {
    release_request(seq);
  }
  *c = Completion{};
  c->wr_id = w.wr_id;
  c->op = w.op;
  c->status = has_culprit_ && seq == culprit_seq_ ? culprit_status_ : Status::Flushed;
  sq_.pop();
  return true;
}

void Sender::forget_startup() {
  drop_ledger();
  drop_control();
  end_ = sent_ = StreamOffset();
  set_framing({});
  started_ = false;
  outstanding_ -= rtr_reads_;
  read_msn_ -= rtr_reads_;
  rtr_reads_ = 0;
}

void Sender::reset(std::uint32_t first_msn) {
  drop_ledger();
  drop_control();
  for (std::uint32_t seq = sq_.head(); seq != sq_.started(); ++seq) release_request(seq);
  sq_.clear();
  set_framing({});
  end_ = sent_ = StreamOffset();
  send_msn_ = read_msn_ = response_seen_ = first_msn;
  outstanding_ = rtr_reads_ = 0;
  current_ = Current::None;
  started_ = stopped_ = ended_ = prefer_response_ = false;
  crc_ = true;
  failure_ = Violation::None;
  failed_status_ = Status::Success;
  seen_ = sq_.started();
  queued_wire_ = response_wire_ = 0;
}

}  // namespace urnic::ddp
