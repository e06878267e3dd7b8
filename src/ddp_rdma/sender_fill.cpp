#include "ddp_rdma/sender_fill.h"

#include <algorithm>
#include <cstring>

#include "base/fused.h"
#include "base/guarded.h"
#include "base/inet_checksum.h"
#include "ddp_rdma/access.h"
#include "mpa/builder.h"
#include "mpa/fpdu.h"

namespace urnic::ddp {
namespace {

// Room for the pieces of one FPDU. Not initialized, since this is made for every FPDU.
union Pieces {
  Pieces() {}
  ByteView at[kMaxSges];
};

// The same for a message with Immediate Data, which is at the beginning of the first FPDU.
bool describe_immediate(const SenderState& s, const Record& r, SegmentHeader* h, ByteView* pieces,
                        std::uint32_t* count) {
  h->qn = kQnSend;
  h->msn = s.requests.part(r.owner).msn;
  h->with_immediate = r.offset == 0;
  if (h->with_immediate) {
    h->immediate = s.requests.queue().operands(r.owner).immediate;
    return s.requests.gather(r.owner, 0, r.payload - kImmediateData, pieces, count);
  }
  h->mo = r.offset - kImmediateData;
  return s.requests.gather(r.owner, h->mo, r.payload, pieces, count);
}

// Sets header and payload of a Message or Response record.
inline bool describe(const SenderState& s, const Record& r, SegmentHeader* header, ByteView* pieces,
                     std::uint32_t* count) {
  SegmentHeader& h = *header;
  *count = 0;
  h.op = r.op;
  h.last = (r.flags & kRecordLast) != 0;
  if (r.kind == RecordKind::Message) {
    const SendWqe& w = s.requests.wqe(r.owner);
    switch (r.op) {
      case Opcode::Write:
        h.stag = w.key;
        h.to = w.remote_address + r.offset;
        break;
      case Opcode::Immediate:
      case Opcode::ImmediateSe:
        return describe_immediate(s, r, header, pieces, count);
      default:
        h.inv_stag = w.key;
        h.qn = kQnSend;
        h.msn = s.requests.part(r.owner).msn;
        h.mo = r.offset;
        break;
    }
    return s.requests.gather(r.owner, r.offset, r.payload, pieces, count);
  }
  const ReadRequest& q = s.inbound->request(r.owner);
  h.stag = q.sink_stag;
  h.to = q.sink_to + r.offset;
  if (r.payload == 0) return true;
  const std::uint64_t at = q.source_to + r.offset;
  const Violation v =
      check_read_source(*s.shared, q.source_stag, at, r.payload, s.requests.pd(), s.stream);
  if (v != Violation::None) return false;
  const Region* region = s.requests.memory().find(q.source_stag);
  pieces[(*count)++] = {region->base + (at - region->address), r.payload};
  return true;
}

// The memory from the first to the last of the pieces, with what lies between them.
ByteView span_around(std::span<const ByteView> pieces) {
  if (pieces.size() == 1) [[likely]]
    return pieces[0];
  const std::uint8_t *begin = nullptr, *end = nullptr;
  for (const ByteView& p : pieces) {
    if (begin == nullptr || p.data() < begin) begin = p.data();
    if (end == nullptr || p.data() + p.size() > end) end = p.data() + p.size();
  }
  return {begin, end};
}

// Builds the FPDU of a record. Returns false if the memory of its payload is gone.
bool build(const SenderState& s, const Record& r, std::uint8_t* dst, std::uint32_t* sum) {
  SegmentHeader h;
  Pieces pieces;
  std::uint32_t count = 0;
  if (!describe(s, r, &h, pieces.at, &count)) return false;
  alignas(8) std::uint8_t head[mpa::kLengthField + kMaxHeader];
  const std::uint32_t head_bytes = emit_fpdu_head(h, header_of(h.tagged()) + r.payload, head);
  const mpa::Framing& framing = s.sizes.framing();
  const std::span<const ByteView> payload(pieces.at, count);
  const ByteView all = span_around(payload);
  return guarded(all.data(), all.size(), [&] {
    if (framing.marked()) {
      const ByteView header = ByteView(head, head_bytes).subspan(mpa::kLengthField);
      *sum =
          mpa::build_framed(dst, framing.policy, framing.pos(r.begin), header, payload, s.crc).sum;
    } else {
      *sum = mpa::build_fpdu_of(dst, {head, head_bytes}, payload, s.crc).sum;
    }
  });
}

// True if the record may be rebuilt from its source any number of times (E-21).
bool rebuilds(const SenderState& s, const Record& r) {
  return r.kind == RecordKind::Message && !s.requests.part(r.owner).kept;
}

// The record is passed to TCP for the first time. A copied request is done once all its records
// were (E-23).
void note_filled(SenderState& s, Record& r) {
  if ((r.flags & kRecordFilled) != 0) return;
  r.flags |= kRecordFilled;
  if (r.kind != RecordKind::Raw) ++s.counters.fpdus[static_cast<std::size_t>(r.op)];
  if (r.kind != RecordKind::Message) return;
  SendPart& p = s.requests.part(r.owner);
  if (p.kept && --p.unfilled == 0 && p.whole) s.requests.finish(r.owner);
}

// Record `i` cannot be built: its source is gone. If it was never sent, it and all later records
// are removed from the stream, so that a Terminate can follow the data sent.
[[gnu::noinline, gnu::cold]] void take_back(SenderState& s, std::uint32_t i) {
  const Record r = s.retained[i];
  if (!s.retained.take_back(i)) s.failure.torn = true;
  if (s.failure.violation != Violation::None) return;
  if (r.kind == RecordKind::Response) {
    s.current = {CurrentMessage::Kind::Response, Opcode::ReadResponse, r.owner, r.offset,
                 s.inbound->request(r.owner).size};
    s.fail(Violation::ReadInvalidStag);
  } else {
    s.fail_request(r.owner, Status::LocalProtection);
  }
}

}  // namespace

bool capture(SenderState& s, Record& r, std::uint32_t* sum) {
  std::uint8_t* block = s.retained.kept().allocate(r.wire);
  if (!build(s, r, block, sum)) {
    s.retained.kept().free(block);
    return false;
  }
  r.kept = block;
  return true;
}

void note_source_removed(SenderState& s, StreamOffset at) {
  if (!s.retained.holds(at)) return;
  std::uint32_t skip;
  take_back(s, s.retained.find(at, &skip));
}

bool view_fpdu(SenderState& s, StreamOffset begin, std::uint32_t len, std::uint32_t worth,
               FpduView* out, std::uint32_t* skip) {
  if (s.crc || s.sizes.framing().marked() || !s.retained.holds(begin)) return false;
  std::uint32_t at;
  Record& r = s.retained[s.retained.find(begin, &at)];
  const bool in_place = r.kept == nullptr && r.payload >= worth && r.wire - at == len &&
                        (r.kind == RecordKind::Response || rebuilds(s, r));
  if (!in_place) return false;
  SegmentHeader h;
  if (!describe(s, r, &h, out->pieces.data(), &out->count)) return false;
  const std::uint32_t ulpdu = header_of(h.tagged()) + r.payload;
  out->head_bytes = emit_fpdu_head(h, ulpdu, out->head.data());
  out->tail.fill(0);
  out->tail_bytes = mpa::pad_of(ulpdu) + mpa::kCrcField;
  *skip = at;
  note_filled(s, r);
  s.retained.note_sent(begin + len);
  return true;
}

std::uint32_t fill_segment(SenderState& s, StreamOffset begin, std::uint32_t len, std::uint8_t* dst,
                           bool* ok) {
  *ok = false;
  if (len == 0 || !s.retained.holds(begin) || s.retained.end() - begin < len) return 0;
  std::uint32_t skip;
  std::uint32_t i = s.retained.find(begin, &skip);
  std::uint64_t total = 0;
  for (std::uint32_t at = 0; at < len; skip = 0, ++i) {
    Record& r = s.retained[i];
    const std::uint32_t n = std::min(len - at, r.wire - skip);
    const bool whole = n == r.wire;
    std::uint32_t sum = 0;
    if (r.kept != nullptr) {
      sum = fused_copy_sum(dst + at, {r.kept + skip, n});
    } else if (whole && rebuilds(s, r)) {
      if (!build(s, r, dst + at, &sum)) {
        take_back(s, i);
        return 0;
      }
    } else {
      if (!capture(s, r, &sum)) {
        take_back(s, i);
        return 0;
      }
      if (whole) {
        std::memcpy(dst + at, r.kept, n);
      } else {
        sum = fused_copy_sum(dst + at, {r.kept + skip, n});
      }
    }
    note_filled(s, r);
    // The sum of a piece that begins at an odd offset is byte-swapped (RFC 1071, 2 (B)).
    total += (at & 1) != 0 ? __builtin_bswap16(inet_fold(sum)) : sum;
    at += n;
  }
  s.retained.note_sent(begin + len);
  *ok = true;
  total = (total & 0xffffffffu) + (total >> 32);
  return static_cast<std::uint32_t>((total & 0xffffffffu) + (total >> 32));
}

}  // namespace urnic::ddp
