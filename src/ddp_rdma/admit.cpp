// Admission: every check that can be made before a segment is accepted, without changing any state
// (D2, E-5).
#include "ddp_rdma/access.h"
#include "ddp_rdma/plain_write.h"
#include "ddp_rdma/serial.h"
#include "ddp_rdma/stream.h"
#include "verbs/sge_walk.h"

namespace urnic::ddp {
namespace {

// Finds the destination of [mo, mo + len) in a receive's SGEs, if it is one contiguous piece.
// Returns false if a needed SGE may not be written.
bool resolve_receive(const Stream& s, std::uint32_t msn, std::uint64_t mo, std::uint32_t len,
                     std::uint8_t** direct) {
  const auto resolve = [&](const Sge& sge, std::uint64_t at, std::uint64_t n) {
    std::uint8_t* const base = resolve_sge(*s.memory, sge, s.receive_pd(), true).data();
    if (base != nullptr && n == len) *direct = base + at;
    return base != nullptr;
  };
  return verbs::for_each_piece(s.rq.sges(msn), mo, len, resolve);
}

void violate(Admission& a, Violation v) {
  a.what = Admit::Violate;
  a.violation = v;
}

}  // namespace

Admitter::Admitter(const Stream& stream, bool in_order)
    : s_(&stream),
      in_order_(in_order),
      send_msn_(stream.next_send_msn()),
      read_msn_(stream.next_read_msn()),
      send_mo_(stream.mo_msn == stream.next_send_msn() ? stream.send_mo : 0),
      reads_(stream.sender.outstanding_reads()),
      atomic_msn_(stream.sender.next_atomic_msn()) {}

void Admitter::next(ByteView ulpdu, Admission* out) {
  Admission& a = *out;
  a.in_order = in_order_;
  a.violation = Violation::None;
  a.direct = nullptr;
  if (const std::uint32_t control = control_of(ulpdu);
      is_write(control)) {  // the common case: parse its fields directly
    SegmentHeader& h = a.segment.header;
    h.op = Opcode::Write;
    h.last = is_last(control);
    h.stag = once(load_be32(ulpdu.data() + 2));
    h.to = once(load_be64(ulpdu.data() + 6));
    a.segment.payload = ulpdu.subspan(kTaggedHeader);
    admit_write(a);
    return;
  }
  const auto parsed = parse_segment(ulpdu);
  if (!parsed) {
    violate(a, parsed.error());
    return;
  }
  a.segment = *parsed;
  switch (a.segment.header.op) {
    case Opcode::Write:
      admit_write(a);
      break;
    case Opcode::ReadResponse:
      admit_read_response(a);
      break;
    case Opcode::ReadRequest:
    case Opcode::AtomicRequest:
      admit_read_request(a);
      break;
    case Opcode::AtomicResponse:
      admit_atomic_response(a);
      break;
    case Opcode::Terminate:
      a.what = Admit::Place;
      break;  // there is always room for a Terminate
    default:
      admit_send(a);
      break;
  }
}

void Admitter::admit_write(Admission& a) const {
  const SegmentHeader& h = a.segment.header;
  const std::uint64_t len = a.segment.payload.size();
  a.what = Admit::Place;
  if (len == 0) return;  // STag and TO are not checked (RFC 5041, 5.1)
  const Region* r = s_->memory->find(h.stag);
  if (r == nullptr || !r->may_write({s_->config.pd, s_->config.id}, h.to, len)) [[unlikely]] {
    return violate(a, check_write(*s_->shared, h.stag, h.to, len, s_->config.pd, s_->config.id));
  }
  if (!s_->allows(verbs::kRemoteWrite)) [[unlikely]]
    return violate(a, Violation::WriteAccess);
  const std::uint64_t offset = h.to - r->address;
  a.direct = r->base + offset;
  a.behind = r->length - offset - len;
}

void Admitter::admit_send(Admission& a) {
  const SegmentHeader& h = a.segment.header;
  const auto len = static_cast<std::uint32_t>(a.segment.payload.size());
  if (in_order_) {
    if (h.msn != send_msn_) return violate(a, Violation::UntaggedMsnRange);
  } else if (msn_distance(h.msn, s_->next_send_msn()) < 0) {
    return violate(a, Violation::UntaggedMsnRange);
  }
  if (!s_->rq.has(h.msn)) {  // the WQE for that MSN is not posted yet
    a.what = Admit::NoReceive;
    return;
  }
  const ReceiveWqe& w = s_->rq.wqe(h.msn);
  if (h.mo > w.capacity) return violate(a, Violation::UntaggedMo);
  if (len > w.capacity - h.mo) return violate(a, Violation::UntaggedTooLong);
  // Contiguity is known only for messages of which no part arrived out of order.
  if (in_order_ && h.mo != send_mo_ && msn_distance(h.msn, s_->mo_unchecked) > 0) {
    return violate(a, Violation::UntaggedMo);
  }
  if (len != 0 && !resolve_receive(*s_, h.msn, h.mo, len, &a.direct)) {
    return violate(a, Violation::LocalCatastrophic);  // the consumer's memory is not registered any
                                                      // more
  }
  a.what = Admit::Place;
  if (h.last) {
    ++send_msn_;
    send_mo_ = 0;
  } else {
    send_mo_ = h.mo + len;
  }
}

void Admitter::admit_read_request(Admission& a) {
  const SegmentHeader& h = a.segment.header;
  if (in_order_) {
    if (h.msn != read_msn_) return violate(a, Violation::UntaggedMsnRange);
    ++read_msn_;
  } else if (msn_distance(h.msn, s_->next_read_msn()) < 0) {
    return violate(a, Violation::UntaggedMsnRange);
  }
  if (!s_->inbound_reads.has_room(h.msn)) {
    return violate(a, Violation::ReadQueueFull);
  }
  a.what = Admit::Place;
}

// In order, a response must belong to the oldest read, continue where the previous part ended, and
// end where the read ends.
Violation Admitter::check_response_order(const SegmentHeader& h, std::uint32_t len) {
  Sender::ReadCursor after = reads_;
  std::uint32_t sink = 0, size = 0;
  if (!s_->sender.next_read(&after, &sink, &size)) return Violation::UnexpectedOpcode;
  if (len != 0 && h.stag != sink) return Violation::TaggedInvalidStag;
  const ReadSink* r = s_->shared->sinks.find(sink);
  const bool known = r != nullptr && !r->out_of_order;
  const std::uint32_t progress = response_begun_ ? response_progress_ : known ? r->progress : 0;
  if (known && len != 0 && h.to != progress) return Violation::TaggedBounds;
  if (h.last) {
    if ((known || size == 0) && progress + len != size) return Violation::TaggedBounds;
    reads_ = after;
    response_begun_ = false;
  } else {
    response_begun_ = true;
    response_progress_ = progress + len;
  }
  return Violation::None;
}

void Admitter::admit_read_response(Admission& a) {
  const SegmentHeader& h = a.segment.header;
  const auto len = static_cast<std::uint32_t>(a.segment.payload.size());
  Violation v = Violation::None;
  const ReadSink* r = nullptr;
  if (len != 0) {
    v = check_read_response(*s_->shared, h.stag, h.to, len, s_->config.id);
    if (v != Violation::None) return violate(a, v);
    r = s_->shared->sinks.find(h.stag);
    // The message must have the length that the request asked for (RFC 5040, 5.2.2: sink MAY
    // check).
    if (h.last && h.to + len != r->length) return violate(a, Violation::TaggedBounds);
  }
  if (in_order_) v = check_response_order(h, len);
  if (v != Violation::None) return violate(a, v);
  a.what = Admit::Place;
  if (r != nullptr && r->base != nullptr) a.direct = r->base + h.to;
}

// The id identifies the atomic. In order, it must be the oldest request, and its MSN must be the
// next one.
void Admitter::admit_atomic_response(Admission& a) {
  const SegmentHeader& h = a.segment.header;
  if (atomic_sink(*s_->shared, h.atomic_reply.id, s_->config.id) == nullptr) {
    return violate(a, Violation::UnexpectedOpcode);
  }
  if (!in_order_) {
    if (msn_distance(h.msn, atomic_msn_) < 0) return violate(a, Violation::UntaggedMsnRange);
  } else {
    if (h.msn != atomic_msn_) return violate(a, Violation::UntaggedMsnRange);
    std::uint32_t sink = 0, size = 0;
    if (!s_->sender.next_read(&reads_, &sink, &size) || sink != h.atomic_reply.id) {
      return violate(a, Violation::UnexpectedOpcode);
    }
    ++atomic_msn_;
  }
  a.what = Admit::Place;
}

}  // namespace urnic::ddp
