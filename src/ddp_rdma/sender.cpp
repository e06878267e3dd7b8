#include "ddp_rdma/sender.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ddp_rdma/access.h"
#include "mpa/builder.h"
#include "mpa/fpdu.h"

namespace urnic::ddp {
namespace {

constexpr std::uint32_t kDefaultEmss = 536;  // until TCP says

std::uint32_t header_of(bool tagged) {
  return tagged ? kTaggedHeader : kUntaggedHeader;
}

}  // namespace

Sender::Sender(const SenderConfig& config, SharedState* shared, SendQueue* queue,
               ReadQueue* inbound_reads, std::uint32_t first_msn)
    : shared_(shared),
      memory_(shared->memory),
      inbound_(inbound_reads),
      sq_(*queue),
      ledger_(&shared->pool),
      kept_(&shared->pool),
      pd_(config.pd),
      stream_(config.stream),
      keep_below_(config.keep_below),
      send_msn_(first_msn),
      read_msn_(first_msn),
      pack_partial_(config.pack_partial),
      response_seen_(first_msn) {
  set_emss(kDefaultEmss);
}

// ---- what there is to send ----------------------------------------------------------------------

void Sender::queue_raw(ByteView bytes) {
  if (bytes.empty() || bytes.size() > KeptBytes::kMaxBlock) return;
  const auto len = static_cast<std::uint32_t>(bytes.size());
  std::uint8_t* block = kept_.allocate(len);
  std::memcpy(block, bytes.data(), len);
  control_.push_back({block, len, true});
}

void Sender::queue_ulpdu(ByteView ulpdu) {
  if (ulpdu.size() < 2 || ulpdu.size() > mpa::kMaxUlpdu) return;  // without an opcode
  const auto len = static_cast<std::uint32_t>(ulpdu.size());
  std::uint8_t* block = kept_.allocate(len);
  std::memcpy(block, ulpdu.data(), len);
  control_.push_back({block, len, false});
}

std::uint32_t Sender::take_rtr_read_msn() {
  ++rtr_reads_;
  ++outstanding_;
  return read_msn_++;
}

void Sender::start(bool crc) {
  started_ = true;
  crc_ = crc;
}

bool Sender::idle() const {
  return sq_.empty() && ledger_.empty() && control_.empty() && outstanding_ == 0 &&
         inbound_->empty();
}

bool Sender::drained() const {
  if (!control_.empty()) return false;
  if (ended_) return true;
  return current_ == Current::None && sq_.all_started() && outstanding_ == 0 &&
         inbound_->ready() == 0;
}

void Sender::set_emss(std::uint32_t emss) {
  if (emss == emss_) return;
  emss_ = emss;
  recount();
}

// Can anything be cut at end_?
bool Sender::ready() const {
  if (!control_.empty() && (started_ || control_.front().raw)) return true;
  if (!started_ || ended_) return false;
  if (current_ != Current::None) return true;
  return !stopped_ && (inbound_->ready() != 0 || can_begin_request());
}

// ---- choosing
// -------------------------------------------------------------------------------------

void Sender::fail_request(std::uint32_t seq, Status status) {
  failure_ = Violation::LocalCatastrophic;
  failed_seq_ = seq;
  failed_status_ = status;
  ended_ = true;
}

// Local invalidations whose turn has come: all that was posted before them has been cut.
void Sender::execute_requests() {
  while (started_ && !stopped_ && !ended_ && !sq_.all_started()) {
    const std::uint32_t seq = sq_.started();
    SendWqe& w = sq_.wqe(seq);
    if ((w.flags & kFence) != 0 && outstanding_ != 0) return;
    if (w.op == WrOp::LocalInv) {
      if (memory_->invalidate(w.key, pd_) != MemoryTable::Invalidate::Ok) {
        fail_request(seq, Status::LocalProtection);
        return;
      }
      uncount_request(seq);
      sq_.start();
      w.done = true;
      continue;
    }
    // ORD 0 can never be satisfied: the peer answers no Reads (iwarp-wire 5.3).
    if (w.op == WrOp::Read && ord_ == 0) fail_request(seq, Status::RemoteInvalidRequest);
    return;
  }
}

// Can the oldest request that has octets and has not begun be begun now? What is due and has none
// is out of the way (execute_due), or stands behind a fence.
bool Sender::can_begin_request() const {
  if (ended_ || sq_.all_started()) return false;
  const SendWqe& w = sq_.wqe(sq_.started());
  if ((w.flags & kFence) != 0 && outstanding_ != 0) return false;
  if (w.op == WrOp::LocalInv) return false;
  return w.op != WrOp::Read || outstanding_ < ord_;
}

Sender::Current Sender::choose() const {
  if (stopped_) return Current::None;
  const bool response = inbound_->ready() != 0;
  if (response && prefer_response_) return Current::Response;
  if (can_begin_request()) return Current::Request;
  return response && !ended_ ? Current::Response : Current::None;
}

// May all of a request's payload be read?
bool Sender::may_read(std::uint32_t seq) const {
  if ((sq_.wqe(seq).flags & kInline) != 0) return true;
  for (const Sge& sge : sq_.sges(seq)) {
    if (resolve_sge(*memory_, sge, pd_, false).data() == nullptr) return false;
  }
  return true;
}

bool Sender::begin_request(std::uint32_t seq) {
  SendWqe& w = sq_.wqe(seq);
  if (!may_read(seq)) {
    fail_request(seq, Status::LocalProtection);
    return false;
  }
  uncount_request(seq);
  sq_.start();
  SendPart& p = part(seq);
  p.kept = (w.flags & kInline) != 0 || w.length <= keep_below_;
  if (!p.kept) count_uses(seq);
  if (w.op == WrOp::Write) {
    ++counters_.writes;
    counters_.write_bytes += w.length;
  } else {
    ++counters_.sends;
    counters_.send_bytes += w.length;
    p.msn = send_msn_++;
  }
  current_ = Current::Request;
  current_id_ = seq;
  current_offset_ = 0;
  return true;
}

void Sender::begin_response() {
  const std::uint32_t msn = inbound_->next_response();
  const std::uint32_t size = inbound_->request(msn).size;
  if (response_seen_ == msn) {
    ++response_seen_;
  } else {
    response_wire_ -= wire_size(size, true);
  }
  inbound_->start_response();
  ++counters_.read_responses;
  counters_.read_response_bytes += size;
  current_ = Current::Response;
  current_id_ = msn;
  current_offset_ = 0;
}

// ---- cutting
// --------------------------------------------------------------------------------------

// Payload of the next FPDU of a message that has `remaining` octets to go, in `room` octets of a
// segment. False: not in this segment.
bool Sender::fit(std::uint32_t header, std::uint32_t remaining, std::uint32_t room, bool first,
                 bool fresh, bool must_cut, std::uint32_t* payload) const {
  const std::uint32_t most = header == kTaggedHeader ? tagged_max_ : untagged_max_;
  *payload = std::min(remaining, most);
  if (fpdu_here(header + *payload) <= room) return true;
  // Behind other FPDUs a message begins only with an FPDU of full size or whole: a shorter one
  // would cost one more FPDU and save nothing, unless pack_partial asks for it. A smaller MULPDU is
  // allowed down to 128 (RFC 5044, 5.1) and keeps the alignment.
  const bool shrink = first ? must_cut : fresh && pack_partial_;
  if (shrink && room >= estimate(mpa::kMinMulpdu)) {
    *payload = std::min(remaining, mpa::framed_mulpdu(framing_.policy, room) - header);
    return true;
  }
  return first && must_cut;
}

// Appends one record behind the ledger: what follows next in the stream, if it may begin in `room`.
// Returns its octets (more than `room` when it has to be cut), 0 for nothing.
std::uint32_t Sender::append(std::uint32_t room, bool first, bool must_cut) {
  if (!control_.empty() && (current_ == Current::None || stopped_)) {
    return append_control(room, first, must_cut);
  }
  if (!started_ || ended_) return 0;
  std::uint32_t payload = 0;
  const auto current_fits = [&](bool tagged, std::uint32_t remaining, bool fresh) {
    return fit(header_of(tagged), remaining, room, first, fresh, must_cut, &payload);
  };
  if (current_ == Current::Request) {
    const SendWqe& w = sq_.wqe(current_id_);
    if (!current_fits(w.op == WrOp::Write, w.length - current_offset_, false)) return 0;
  } else if (current_ == Current::Response) {
    const std::uint32_t size = inbound_->request(current_id_).size;
    if (!current_fits(true, size - current_offset_, false)) return 0;
  } else {
    execute_due();
    const Current next = choose();
    if (next == Current::None) return 0;
    if (next == Current::Request) {
      const std::uint32_t seq = sq_.started();
      const SendWqe& w = sq_.wqe(seq);
      if (w.op == WrOp::Read) return append_read(seq, room, first, must_cut);
      if (!current_fits(w.op == WrOp::Write, w.length, true)) return 0;
      if (!begin_request(seq)) return 0;
    } else {
      if (!current_fits(true, inbound_->request(inbound_->next_response()).size, true)) return 0;
      begin_response();
    }
  }
  return append_payload(payload);
}

std::uint32_t Sender::append_payload(std::uint32_t payload) {
  Record r;
  r.begin = static_cast<std::uint32_t>(end_.value());
  r.owner = current_id_;
  r.offset = current_offset_;
  r.payload = payload;
  bool last;
  if (current_ == Current::Request) {
    const SendWqe& w = sq_.wqe(current_id_);
    SendPart& p = part(current_id_);
    // Regions of a kept message are not counted (E-25): they may have gone since it began.
    if (p.broken || (p.kept && current_offset_ != 0 && !may_read(current_id_))) {
      fail_request(current_id_, Status::LocalProtection);
      return 0;
    }
    last = current_offset_ + payload == w.length;
    r.kind = RecordKind::Message;
    r.op = opcode_of(w);
    r.wire = fpdu_here(header_of(w.op == WrOp::Write) + payload);
    p.whole = last;
    if (p.kept) {
      ++p.unfilled;
    } else if (last) {
      r.flags |= kRecordOnAck;
    }
  } else {
    const ReadRequest& q = inbound_->request(current_id_);
    last = current_offset_ + payload == q.size;
    if (payload != 0) {  // rights may have gone since the last segment
      failure_ = check_read_source(*shared_, q.source_stag, q.source_to + current_offset_, payload,
                                   pd_, stream_);
      if (failure_ != Violation::None) {
        ended_ = true;
        return 0;
      }
    }
    r.kind = RecordKind::Response;
    r.op = Opcode::ReadResponse;
    r.wire = fpdu_here(kTaggedHeader + payload);
  }
  current_offset_ += payload;
  if (last) {
    r.flags |= kRecordLast;
    prefer_response_ = current_ == Current::Request;
    current_ = Current::None;
  }
  ledger_.push(r);
  end_ += r.wire;
  return r.wire;
}

std::uint32_t Sender::append_read(std::uint32_t seq, std::uint32_t room, bool first,
                                  bool must_cut) {
  if (fpdu_here(kReadRequestHeader) > room && !(first && must_cut)) return 0;
  const SendWqe& w = sq_.wqe(seq);
  std::array<std::span<std::uint8_t>, kMaxSges> pieces;
  std::size_t count = 0;
  for (const Sge& sge : sq_.sges(seq)) {
    const auto piece = resolve_sge(*memory_, sge, pd_, true);
    if (piece.data() == nullptr) {
      fail_request(seq, Status::LocalProtection);
      return 0;
    }
    if (!piece.empty()) pieces[count++] = piece;
  }
  const std::uint32_t sink = shared_->sinks.open(stream_, {pieces.data(), count});
  if (sink == 0) {  // the table is full
    fail_request(seq, Status::LocalProtection);
    return 0;
  }
  uncount_request(seq);
  sq_.start();
  count_uses(seq);
  part(seq).msn = sink;
  if (outstanding_++ == rtr_reads_) {
    first_read_ = seq;
  } else {
    part(last_read_).next_read = seq;
  }
  last_read_ = seq;
  ++counters_.reads;
  prefer_response_ = true;

  SegmentHeader h;
  h.op = Opcode::ReadRequest;
  h.last = true;
  h.qn = kQnReadRequest;
  h.msn = read_msn_++;
  h.read = {sink, 0, w.length, w.key, w.remote_address};
  std::uint8_t ulpdu[kMaxHeader];
  const std::uint32_t len = emit_header(h, ulpdu);
  append_ulpdu({ulpdu, len});
  return ledger_.back().wire;
}

void Sender::append_ulpdu(ByteView ulpdu) {
  const auto len = static_cast<std::uint32_t>(ulpdu.size());
  Record r;
  r.begin = static_cast<std::uint32_t>(end_.value());
  r.wire = fpdu_here(len);
  r.kind = RecordKind::Control;
  r.op = static_cast<Opcode>(ulpdu[1] & 7);
  r.flags = kRecordLast;
  r.kept = kept_.allocate(r.wire);
  mpa::build_framed(r.kept, framing_.policy, framing_.pos(r.begin), ulpdu, {}, crc_);
  ledger_.push(r);
  end_ += r.wire;
}

std::uint32_t Sender::append_control(std::uint32_t room, bool first, bool must_cut) {
  const Control c = control_.front();
  if (c.raw) {
    if (!first) return 0;
    Record r;
    r.begin = static_cast<std::uint32_t>(end_.value());
    r.wire = c.len;
    r.kind = RecordKind::Raw;
    r.flags = kRecordLast;
    r.kept = c.block;
    ledger_.push(r);
    end_ += r.wire;
  } else {
    if (!started_) return 0;
    if (fpdu_here(c.len) > room && !(first && must_cut)) return 0;
    if (stopped_) {  // the Terminate: nothing follows it, a message in progress stays unfinished
      current_ = Current::None;
      ended_ = true;
    }
    append_ulpdu({c.block, c.len});
    kept_.free(c.block);
  }
  control_.erase(control_.begin());
  if (control_.empty()) control_.shrink_to_fit();
  return ledger_.back().wire;
}

Sender::Cut Sender::cut(StreamOffset begin, std::uint32_t limit, std::uint32_t emss,
                        bool must_cut) {
  set_emss(emss);
  if (limit == 0 || begin > end_) return {};
  if (begin < end_) return recut(begin, limit, must_cut || limit >= emss);
  // A segment as large as they get that holds no FPDU: there will be no better one.
  must_cut = must_cut || limit >= emss;
  Cut result;
  bool ends = false;
  while (ledger_.size() < kMaxRecords) {
    const std::uint32_t room = limit - result.len;
    if (result.len != 0 && room < kSmallestFpdu) break;
    const std::uint32_t n = append(room, result.len == 0, must_cut);
    if (n == 0) break;
    const Record& r = ledger_.back();
    ends = (r.flags & kRecordLast) != 0;
    if (n > room) {
      result.len = limit;
      ends = false;
      break;
    }
    result.len += n;
    if (r.kind == RecordKind::Raw) break;
  }
  if (ends) execute_due();  // what waits behind may need no octet
  result.push = ends && !ready();
  return result;
}

bool Sender::holds(StreamOffset begin) const {
  if (ledger_.empty() || begin >= end_) return false;
  const std::uint32_t total = static_cast<std::uint32_t>(end_.value()) - ledger_.front().begin;
  return end_ - begin <= total;
}

// A segment of octets cut before: the original FPDU boundaries, as many as fit (E-24).
Sender::Cut Sender::recut(StreamOffset begin, std::uint32_t limit, bool must_cut) {
  if (!holds(begin)) return {};
  std::uint32_t i = ledger_.find(static_cast<std::uint32_t>(begin.value()));
  const Record* r = &ledger_[i];
  const std::uint32_t skip = static_cast<std::uint32_t>(begin.value()) - r->begin;
  const std::uint32_t rest = r->wire - skip;
  if (rest > limit) {
    // What has been sent before must be sendable again whatever has happened to the MSS.
    const bool may = must_cut || skip != 0 || begin < sent_ || r->kind == RecordKind::Raw;
    return {may ? limit : 0, false};
  }
  std::uint32_t len = rest;
  // Behind the tail of a cut FPDU the segment ends, so that the next one is aligned again.
  if (skip == 0 && r->kind != RecordKind::Raw) {
    while (i + 1 < ledger_.size() && ledger_[i + 1].kind != RecordKind::Raw &&
           ledger_[i + 1].wire <= limit - len) {
      r = &ledger_[++i];
      len += r->wire;
    }
  }
  return {len, begin + len == end_ && (r->flags & kRecordLast) != 0 && !ready()};
}

bool Sender::next_read(ReadCursor* cursor, std::uint32_t* sink, std::uint32_t* size) const {
  if (cursor->left == 0) return false;
  --cursor->left;
  if (cursor->rtr != 0) {
    --cursor->rtr;
    *sink = *size = 0;
    return true;
  }
  const SendPart& p = part(cursor->seq);
  *sink = p.msn;
  *size = sq_.wqe(cursor->seq).length;
  cursor->seq = p.next_read;
  return true;
}

}  // namespace urnic::ddp
