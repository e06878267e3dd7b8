#include "ddp_rdma/sender_cut.h"

#include <array>
#include <span>

#include "ddp_rdma/access.h"
#include "ddp_rdma/atomics.h"
#include "ddp_rdma/sender_fill.h"
#include "mpa/builder.h"

namespace urnic::ddp {
namespace {

using Kind = CurrentMessage::Kind;

// ---- choosing the next message

// True if the oldest request that has bytes and has not begun can begin now. Due requests without
// bytes are finished (execute_due), or wait at a fence.
bool can_begin_request(const SenderState& s) {
  const SendQueue& sq = s.requests.queue();
  if (s.ended || sq.all_started()) return false;
  const SendWqe& w = sq.wqe(sq.started());
  if ((w.flags & kFence) != 0 && !s.reads.none()) return false;
  if (verbs::is_local(w.op)) return false;
  return !awaits_response(w.op) || s.reads.has_credit();
}

// True if anything can be cut at the end of the stream.
bool ready(const SenderState& s) {
  if (!s.control.empty() && (s.started || s.control.front().raw)) return true;
  if (!s.started || s.ended) return false;
  if (s.current.kind != Kind::None) return true;
  return !s.stopped && (s.inbound->ready() != 0 || can_begin_request(s));
}

Kind choose(const SenderState& s) {
  if (s.stopped) return Kind::None;
  const bool response = s.inbound->ready() != 0;
  if (response && s.prefer_response) return Kind::Response;
  if (can_begin_request(s)) return Kind::Request;
  return response && !s.ended ? Kind::Response : Kind::None;
}

bool begin_request(SenderState& s, std::uint32_t seq) {
  SendWqe& w = s.requests.wqe(seq);
  if (!s.requests.may_read(seq)) {
    s.fail_request(seq, Status::LocalProtection);
    return false;
  }
  s.backlog.request_begins(seq);
  s.requests.queue().start();
  SendPart& p = s.requests.part(seq);
  p.kept = (w.flags & kInline) != 0 || w.length <= s.keep_below;
  if (!p.kept) s.requests.count_uses(seq);
  s.current = {Kind::Request, SendRequests::opcode_of(w), seq, 0, SendRequests::bytes_of(w)};
  if (s.current.tagged()) {
    ++s.counters.writes;
    s.counters.write_bytes += w.length;
  } else {
    ++s.counters.sends;
    s.counters.send_bytes += w.length;
    p.msn = s.next_msn.send++;
  }
  return true;
}

void begin_response(SenderState& s) {
  const std::uint32_t msn = s.inbound->next_response();
  s.backlog.response_begins(msn);
  s.inbound->start_response();
  ++s.counters.read_responses;
  s.counters.read_response_bytes += s.inbound->request(msn).size;
  s.current = {Kind::Response, Opcode::ReadResponse, msn, 0, s.inbound->request(msn).size};
}

// ---- cutting FPDUs

// The Write of a request with Immediate Data was cut. The Immediate Data follows as a message of
// its own (RFC 7306, 6).
void begin_immediate(SenderState& s, const SendWqe& w, SendPart& p) {
  ++s.counters.sends;
  p.msn = s.next_msn.send++;
  s.current = {Kind::Request, SendRequests::immediate_of(w), s.current.id, 0, kImmediateData};
}

// Appends the next FPDU of the current request. Returns 0 if its memory is gone.
std::uint32_t append_of_request(SenderState& s, std::uint32_t payload) {
  const CurrentMessage at = s.current;
  const SendWqe& w = s.requests.wqe(at.id);
  SendPart& p = s.requests.part(at.id);
  // The regions of a copied message are not counted (E-25), so they may be gone since it began.
  if (p.broken || (p.kept && at.offset != 0 && !s.requests.may_read(at.id))) {
    s.fail_request(at.id, Status::LocalProtection);
    return 0;
  }
  const bool last = at.offset + payload == at.length;
  const bool more = last && w.op == WrOp::WriteImm && at.op == Opcode::Write;
  const std::uint32_t ulpdu = header_of(at.tagged()) + payload;
  Record& r = s.retained.cut(s.sizes.of(s.retained.end(), ulpdu));
  r.owner = at.id;
  r.offset = at.offset;
  r.payload = payload;
  r.kind = RecordKind::Message;
  r.op = at.op;
  p.whole = last && !more;
  if (p.kept) {
    ++p.unfilled;
  } else if (p.whole) {
    r.flags = kRecordOnAck;
  }
  s.current.offset += payload;
  if (last) {
    r.flags |= kRecordLast;
    s.prefer_response = true;
    if (more) {
      begin_immediate(s, w, p);
    } else {
      s.current.kind = Kind::None;
    }
  }
  return r.wire;
}

// The same for the current Read Response.
std::uint32_t append_of_response(SenderState& s, std::uint32_t payload) {
  const CurrentMessage at = s.current;
  const ReadRequest& q = s.inbound->request(at.id);
  if (payload != 0) {  // rights may have been removed since the last segment
    const Violation v = check_read_source(*s.shared, q.source_stag, q.source_to + at.offset,
                                          payload, s.requests.pd(), s.stream);
    if (v != Violation::None) {
      s.fail(v);
      return 0;
    }
  }
  Record& r = s.retained.cut(s.sizes.of(s.retained.end(), kTaggedHeader + payload));
  r.owner = at.id;
  r.offset = at.offset;
  r.payload = payload;
  r.kind = RecordKind::Response;
  r.op = Opcode::ReadResponse;
  if (at.offset + payload == q.size) {
    r.flags = kRecordLast;
    s.prefer_response = false;
    s.current.kind = Kind::None;
  }
  s.current.offset += payload;
  return r.wire;
}

std::uint32_t append_ulpdu(SenderState& s, ByteView ulpdu) {
  const StreamOffset begin = s.retained.end();
  Record& r = s.retained.cut(s.sizes.of(begin, static_cast<std::uint32_t>(ulpdu.size())));
  r.kind = RecordKind::Control;
  r.op = static_cast<Opcode>(ulpdu[1] & 15);
  r.flags = kRecordLast;
  r.kept = s.retained.kept().allocate(r.wire);
  const mpa::Framing& framing = s.sizes.framing();
  mpa::build_framed(r.kept, framing.policy, framing.pos(begin.value()), ulpdu, {}, s.crc);
  return r.wire;
}

AtomicRequest atomic_of(const SendWqe& w, const verbs::AtomicOperands& o, std::uint32_t id) {
  AtomicRequest a;
  a.id = id;
  a.stag = w.key;
  a.to = w.remote_address;
  a.data = o.data;
  a.mask = o.data_mask;
  switch (w.op) {
    case WrOp::FetchAdd:
      a.mask = o.boundaries;
      break;
    case WrOp::CmpSwap:
      a.code = AtomicCode::CmpSwap;
      a.compare = o.compare;
      a.compare_mask = o.compare_mask;
      break;
    default:
      a.code = AtomicCode::CmpSwap;
      a.compare_mask = 0;
      break;
  }
  return a;
}

// Appends the request of a Read or an atomic. Both are answered in order.
std::uint32_t append_read(SenderState& s, std::uint32_t seq, const Room& room) {
  const bool atomic = is_atomic(s.requests.wqe(seq).op);
  const std::uint32_t header = atomic ? kUntaggedHeader + kAtomicRequest : kReadRequestHeader;
  const std::uint32_t wire = s.sizes.of(s.retained.end(), header);
  if (wire > room.bytes && !(room.first && room.must_cut)) return 0;
  std::array<std::span<std::uint8_t>, kMaxSges> pieces;
  std::size_t count = 0;
  const std::uint32_t sink =
      s.requests.find_sink(seq, pieces.data(), &count)
          ? s.shared->sinks.open(s.stream | (atomic ? ReadSink::kOfAtomic : 0),
                                 {pieces.data(), count})
          : 0;
  if (sink == 0) {  // no right to that memory, or the table is full
    s.fail_request(seq, Status::LocalProtection);
    return 0;
  }
  s.backlog.request_begins(seq);
  s.requests.queue().start();
  s.requests.count_uses(seq);
  ++s.counters.reads;
  s.prefer_response = true;

  const SendWqe& w = s.requests.wqe(seq);
  SegmentHeader h;
  h.op = Opcode::ReadRequest;
  h.last = true;
  h.qn = kQnReadRequest;
  h.msn = s.reads.begin(s.requests, seq, sink);
  std::uint8_t ulpdu[ReadQueue::kMaxRequest];
  if (atomic) {
    h.op = Opcode::AtomicRequest;
    const AtomicRequest a = atomic_of(w, s.requests.queue().operands(seq).atomic, sink);
    emit_atomic_request(a, ulpdu + emit_header(h, ulpdu));
  } else {
    h.read = {sink, 0, w.length, w.key, w.remote_address};
    emit_header(h, ulpdu);
  }
  return append_ulpdu(s, {ulpdu, header});
}

// Copies what earlier Reads must return before an atomic changes memory (RFC 7306, 7). Returns
// false if the memory is gone, which is reported when those responses are filled.
bool keep_responses(SenderState& s) {
  for (std::uint32_t i = s.retained.size(); i != 0; --i) {
    Record& r = s.retained[i - 1];
    if ((r.flags & kRecordFilled) != 0) break;
    std::uint32_t sum;
    if (r.kind == RecordKind::Response && r.kept == nullptr && !capture(s, r, &sum)) return false;
  }
  return true;
}

// Carries out the peer's next atomic, exactly once, and keeps the response as a copy.
std::uint32_t append_atomic(SenderState& s, std::uint32_t msn, const Room& room) {
  const std::uint32_t wire = s.sizes.of(s.retained.end(), kAtomicResponseHeader);
  if (wire > room.bytes && !(room.first && room.must_cut)) return 0;
  if (!keep_responses(s)) return 0;
  const AtomicRequest& a = *s.inbound->atomic(msn);
  SegmentHeader h;
  h.op = Opcode::AtomicResponse;
  h.last = true;
  h.qn = kQnAtomicResponse;
  h.atomic_reply.id = a.id;
  // Rights may have been removed since the request arrived.
  const Violation v = carry_out(*s.shared, a, s.requests.pd(), s.stream, &h.atomic_reply.original);
  if (v != Violation::None) {
    s.current = {Kind::Response, Opcode::AtomicResponse, msn, 0, 0};
    s.fail(v);
    return 0;
  }
  s.backlog.response_begins(msn);
  s.inbound->start_response();
  s.prefer_response = false;
  h.msn = s.next_msn.atomic_response++;
  std::uint8_t ulpdu[kMaxHeader];
  const std::uint32_t len = emit_header(h, ulpdu);
  const std::uint32_t bytes = append_ulpdu(s, {ulpdu, len});
  Record& r = s.retained.newest();
  r.kind = RecordKind::Response;
  r.owner = msn;
  return bytes;
}

std::uint32_t append_control(SenderState& s, const Room& room) {
  const ControlQueue::Item c = s.control.front();
  std::uint32_t wire = c.len;
  if (c.raw) {
    if (!room.first) return 0;
    Record& r = s.retained.cut(wire);
    r.kind = RecordKind::Raw;
    r.flags = kRecordLast;
    r.kept = c.block;
  } else {
    if (!s.started) return 0;
    if (s.sizes.of(s.retained.end(), c.len) > room.bytes && !(room.first && room.must_cut)) {
      return 0;
    }
    if (s.stopped) {  // the Terminate: nothing follows it, a message in progress stays unfinished
      s.current.kind = Kind::None;
      s.ended = true;
    }
    wire = append_ulpdu(s, {c.block, c.len});
    s.retained.kept().free(c.block);
  }
  s.control.pop();
  return wire;
}

// Appends one record: the next data in the stream, if it may begin in `room`. Returns its bytes
// (more than `room` has if it must be cut), or 0 if there is none.
std::uint32_t append(SenderState& s, const Room& room) {
  if (!s.control.empty() && (s.current.kind == Kind::None || s.stopped)) {
    return append_control(s, room);
  }
  if (!s.started || s.ended) return 0;
  std::uint32_t payload = 0;
  const auto fits = [&](bool tagged, std::uint32_t remaining, bool fresh) {
    return s.sizes.fit(s.retained.end(), tagged, remaining, fresh, room, &payload);
  };
  if (s.current.kind == Kind::Request) {
    if (!fits(s.current.tagged(), s.current.length - s.current.offset, false)) return 0;
  } else if (s.current.kind == Kind::Response) {
    if (!fits(true, s.current.length - s.current.offset, false)) return 0;
  } else {
    execute_due(s);
    const Kind next = choose(s);
    if (next == Kind::None) return 0;
    if (next == Kind::Request) {
      const std::uint32_t seq = s.requests.queue().started();
      const SendWqe& w = s.requests.wqe(seq);
      if (awaits_response(w.op)) return append_read(s, seq, room);
      const bool tagged = SendRequests::opcode_of(w) == Opcode::Write;
      if (!fits(tagged, SendRequests::bytes_of(w), true)) return 0;
      if (!begin_request(s, seq)) return 0;
    } else {
      const std::uint32_t msn = s.inbound->next_response();
      if (s.inbound->atomic(msn) != nullptr) return append_atomic(s, msn, room);
      if (!fits(true, s.inbound->request(msn).size, true)) return 0;
      begin_response(s);
    }
  }
  return s.current.kind == Kind::Request ? append_of_request(s, payload)
                                         : append_of_response(s, payload);
}

// Makes a segment of bytes that were cut before: the original FPDU boundaries, as many as fit
// (E-24).
SegmentCut recut(SenderState& s, StreamOffset begin, std::uint32_t limit, bool must_cut) {
  Retained& retained = s.retained;
  if (!retained.holds(begin)) return {};
  std::uint32_t skip;
  std::uint32_t i = retained.find(begin, &skip);
  const Record* r = &retained[i];
  const std::uint32_t rest = r->wire - skip;
  if (rest > limit) {
    // Bytes sent before must be sendable again, whatever happened to the MSS.
    const bool may = must_cut || skip != 0 || begin < retained.sent() || r->kind == RecordKind::Raw;
    return {may ? limit : 0, false};
  }
  std::uint32_t len = rest;
  // After the tail of a cut FPDU the segment ends, so that the next one is aligned again.
  if (skip == 0 && r->kind != RecordKind::Raw) {
    while (i + 1 < retained.size() && retained[i + 1].kind != RecordKind::Raw &&
           retained[i + 1].wire <= limit - len) {
      r = &retained[++i];
      len += r->wire;
    }
  }
  return {len, begin + len == retained.end() && (r->flags & kRecordLast) != 0 && !ready(s)};
}

// Carries out an invalidation or a bind. Requests posted after it find it done.
Status execute_local(SenderState& s, std::uint32_t seq) {
  MemoryTable& memory = s.requests.memory();
  const SendQueue& sq = s.requests.queue();
  const verbs::Requester by{s.requests.pd(), s.stream};
  if (sq.wqe(seq).op == WrOp::Bind) {
    return memory.bind(sq.window_bind(seq), by) ? Status::Success : Status::WindowBind;
  }
  const bool done = memory.invalidate(sq.wqe(seq).key, by) == MemoryTable::Invalidate::Ok;
  return done ? Status::Success : Status::LocalProtection;
}

}  // namespace

void execute_requests(SenderState& s) {
  SendQueue& sq = s.requests.queue();
  while (s.started && !s.stopped && !s.ended && !sq.all_started()) {
    const std::uint32_t seq = sq.started();
    SendWqe& w = sq.wqe(seq);
    if (w.done) {  // not carried out (Sender::leave)
      s.backlog.request_begins(seq);
      sq.start();
      continue;
    }
    if ((w.flags & kFence) != 0 && !s.reads.none()) return;
    if (verbs::is_local(w.op)) {
      if (const Status status = execute_local(s, seq); status != Status::Success) {
        s.fail_request(seq, status);
        return;
      }
      s.backlog.request_begins(seq);
      sq.start();
      w.done = true;
      continue;
    }
    if (awaits_response(w.op) && s.reads.none_allowed()) {
      s.fail_request(seq, Status::RemoteInvalidRequest);
    }
    return;
  }
}

StreamOffset available(const SenderState& s) {
  const StreamOffset end = s.retained.end();
  if (!ready(s)) return end;
  const Backlog::Bytes waiting = s.backlog.bytes();
  std::uint64_t n = s.control.estimate(s.sizes);
  if (s.current.kind == Kind::Request) {
    n += s.sizes.estimate_message(s.current.length - s.current.offset, s.current.tagged());
    if (s.current.tagged() && s.requests.wqe(s.current.id).op == WrOp::WriteImm) {
      n += s.sizes.estimate(kUntaggedHeader + kImmediateData);
    }
  } else if (s.current.kind == Kind::Response) {
    n += s.sizes.estimate_message(s.current.length - s.current.offset, true);
  }
  if (s.started && !s.stopped && !s.ended) {
    n += waiting.responses;
    if (can_begin_request(s)) n += waiting.requests;
  }
  return end + n;
}

SegmentCut cut_segment(SenderState& s, StreamOffset begin, std::uint32_t limit, std::uint32_t emss,
                       bool must_cut) {
  set_emss(s, emss);
  if (limit == 0 || begin > s.retained.end()) return {};
  // If the segment is as large as possible and holds no FPDU, no later one would be better.
  must_cut = must_cut || limit >= emss;
  if (begin < s.retained.end()) return recut(s, begin, limit, must_cut);
  SegmentCut result;
  bool ends = false;
  while (s.retained.room() != 0) {
    const Room room{limit - result.len, result.len == 0, must_cut};
    if (!room.first && room.bytes < FpduSizes::kSmallestFpdu) break;
    const std::uint32_t n = append(s, room);
    if (n == 0) break;
    const Record& r = s.retained.newest();
    ends = (r.flags & kRecordLast) != 0;
    if (n > room.bytes) {
      result.len = limit;
      ends = false;
      break;
    }
    result.len += n;
    if (r.kind == RecordKind::Raw) break;
  }
  if (ends) execute_due(s);  // the next requests may need no byte
  result.push = ends && !ready(s);
  return result;
}

}  // namespace urnic::ddp
