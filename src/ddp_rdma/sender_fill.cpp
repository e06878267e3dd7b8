// Bytes of the outgoing stream: FPDUs built from registered memory in one pass, copies kept where
// rebuilding could change octets the peer may already hold (E-20..E-22).
#include <algorithm>
#include <cstring>

#include "base/fused.h"
#include "base/inet_checksum.h"
#include "ddp_rdma/access.h"
#include "ddp_rdma/sender.h"
#include "mpa/builder.h"
#include "mpa/fpdu.h"

namespace urnic::ddp {
namespace {

// Room for the pieces of one FPDU, not cleared: this is made for every FPDU there is.
union Pieces {
  Pieces() {}
  ByteView at[kMaxSges];
};

}  // namespace

Opcode Sender::opcode_of(const SendWqe& w) {
  const bool solicited = (w.flags & kSolicited) != 0;
  switch (w.op) {
    case WrOp::Write:
      return Opcode::Write;
    case WrOp::SendInv:
      return solicited ? Opcode::SendSeInv : Opcode::SendInv;
    default:
      return solicited ? Opcode::SendSe : Opcode::Send;
  }
}

// The memory of a Message record, piece by piece. Regions are looked up anew each time: one that
// was deregistered without detach_region is noticed, one that was only invalidated still holds our
// data.
bool Sender::gather(const Record& r, ByteView* pieces, std::uint32_t* count) {
  const SendWqe& w = sq_.wqe(r.owner);
  *count = 0;
  if (r.payload == 0) return true;
  if ((w.flags & kInline) != 0) {
    pieces[(*count)++] = sq_.inline_payload(r.owner).subspan(r.offset, r.payload);
    return true;
  }
  std::uint32_t skip = r.offset, left = r.payload;
  for (const Sge& sge : sq_.sges(r.owner)) {
    if (skip >= sge.length) {
      skip -= sge.length;
      continue;
    }
    const Region* region = memory_->find_registered(sge.lkey);
    if (region == nullptr) return false;
    const std::uint64_t offset = sge.addr - region->address;
    if (offset > region->length || sge.length > region->length - offset) return false;
    const std::uint32_t n = std::min(left, sge.length - skip);
    pieces[(*count)++] = {region->base + offset + skip, n};
    left -= n;
    if (left == 0) return true;
    skip = 0;
  }
  return false;
}

// Header and payload of a Message or Response record.
inline bool Sender::describe(const Record& r, SegmentHeader* header, ByteView* pieces,
                             std::uint32_t* count) {
  SegmentHeader& h = *header;
  *count = 0;
  h.op = r.op;
  h.last = (r.flags & kRecordLast) != 0;
  if (r.kind == RecordKind::Message) {
    const SendWqe& w = sq_.wqe(r.owner);
    if (!gather(r, pieces, count)) return false;
    if (w.op == WrOp::Write) {
      h.stag = w.key;
      h.to = w.remote_address + r.offset;
    } else {
      h.inv_stag = w.key;
      h.qn = kQnSend;
      h.msn = part(r.owner).msn;
      h.mo = r.offset;
    }
  } else {
    const ReadRequest& q = inbound_->request(r.owner);
    h.stag = q.sink_stag;
    h.to = q.sink_to + r.offset;
    if (r.payload != 0) {
      const std::uint64_t at = q.source_to + r.offset;
      const Violation v = check_read_source(*shared_, q.source_stag, at, r.payload, pd_, stream_);
      if (v != Violation::None) return false;
      const Region* region = memory_->find(q.source_stag);
      pieces[(*count)++] = {region->base + (at - region->address), r.payload};
    }
  }
  return true;
}

bool Sender::build(const Record& r, std::uint8_t* dst, std::uint32_t* sum) {
  SegmentHeader h;
  Pieces pieces;
  std::uint32_t count = 0;
  if (!describe(r, &h, pieces.at, &count)) return false;
  std::uint8_t header[kMaxHeader];
  const std::uint32_t header_len = emit_header(h, header);
  if (framing_.marked()) {
    *sum = mpa::build_framed(dst, framing_.policy, framing_.pos(r.begin), {header, header_len},
                             {pieces.at, count}, crc_)
               .sum;
  } else {
    *sum = mpa::build_fpdu(dst, {header, header_len}, {pieces.at, count}, crc_).sum;
  }
  return true;
}

// The record's octets become a copy; `*sum` is that of all of them.
bool Sender::capture(Record& r, std::uint32_t* sum) {
  std::uint8_t* block = kept_.allocate(r.wire);
  if (!build(r, block, sum)) {
    kept_.free(block);
    return false;
  }
  r.kept = block;
  return true;
}

// First time in TCP's hands: a request that is kept is done once all of it is (E-23).
void Sender::note_filled(Record& r) {
  if ((r.flags & kRecordFilled) != 0) return;
  r.flags |= kRecordFilled;
  if (r.kind != RecordKind::Raw) ++counters_.fpdus[static_cast<std::size_t>(r.op)];
  if (r.kind != RecordKind::Message) return;
  SendPart& p = part(r.owner);
  if (p.kept && --p.unfilled == 0 && p.whole) finish(r.owner);
}

// Record `i` cannot be built: its source is gone. If it was never sent, it and all behind it leave
// the stream, so that a Terminate can follow what was.
void Sender::take_back(std::uint32_t i) {
  const Record r = ledger_[i];
  const std::uint32_t behind = static_cast<std::uint32_t>(end_.value()) - r.begin;
  if (end_ - behind < sent_) return;
  if (!failed()) {
    if (r.kind == RecordKind::Response) {
      failure_ = Violation::ReadInvalidStag;
      current_ = Current::Response;
      current_id_ = r.owner;
      current_offset_ = r.offset;
      ended_ = true;
    } else {
      fail_request(r.owner, Status::LocalProtection);
    }
  }
  while (ledger_.size() > i) {
    if (ledger_.back().kept != nullptr) kept_.free(ledger_.back().kept);
    ledger_.pop_back();
  }
  end_ = end_ - behind;
}

bool Sender::view(StreamOffset begin, std::uint32_t len, std::uint32_t worth, FpduView* out,
                  std::uint32_t* skip) {
  if (crc_ || framing_.marked() || !holds(begin)) return false;
  Record& r = ledger_[ledger_.find(static_cast<std::uint32_t>(begin.value()))];
  const std::uint32_t at = static_cast<std::uint32_t>(begin.value()) - r.begin;
  const bool in_place =
      r.kept == nullptr && r.payload >= worth && r.wire - at == len &&
      (r.kind == RecordKind::Response || (r.kind == RecordKind::Message && !part(r.owner).kept));
  if (!in_place) return false;
  SegmentHeader h;
  if (!describe(r, &h, out->pieces.data(), &out->count)) return false;
  const std::uint32_t header = emit_header(h, out->head.data() + mpa::kLengthField);
  const std::uint32_t ulpdu = header + r.payload;
  store_be16(out->head.data(), static_cast<std::uint16_t>(ulpdu));
  out->head_octets = mpa::kLengthField + header;
  out->tail.fill(0);
  out->tail_octets = mpa::pad_of(ulpdu) + mpa::kCrcField;
  *skip = at;
  note_filled(r);
  sent_ = std::max(sent_, begin + len);
  return true;
}

std::uint32_t Sender::fill(StreamOffset begin, std::uint32_t len, std::uint8_t* dst, bool* ok) {
  *ok = false;
  if (len == 0 || !holds(begin) || end_ - begin < len) return 0;
  std::uint32_t i = ledger_.find(static_cast<std::uint32_t>(begin.value()));
  std::uint32_t skip = static_cast<std::uint32_t>(begin.value()) - ledger_[i].begin;
  std::uint64_t total = 0;
  for (std::uint32_t at = 0; at < len; skip = 0, ++i) {
    Record& r = ledger_[i];
    const std::uint32_t n = std::min(len - at, r.wire - skip);
    const bool whole = n == r.wire;
    std::uint32_t sum = 0;
    if (r.kept != nullptr) {
      sum = fused_copy_sum(dst + at, {r.kept + skip, n});
    } else if (whole && r.kind == RecordKind::Message && !part(r.owner).kept) {
      if (!build(r, dst + at, &sum)) {
        take_back(i);
        return 0;
      }
    } else {
      if (!capture(r, &sum)) {
        take_back(i);
        return 0;
      }
      if (whole) {
        std::memcpy(dst + at, r.kept, n);
      } else {
        sum = fused_copy_sum(dst + at, {r.kept + skip, n});
      }
    }
    note_filled(r);
    // A piece that begins at an odd offset adds with its octets swapped (RFC 1071, 2 (B)).
    total += (at & 1) != 0 ? __builtin_bswap16(inet_fold(sum)) : sum;
    at += n;
  }
  sent_ = std::max(sent_, begin + len);
  *ok = true;
  total = (total & 0xffffffffu) + (total >> 32);
  return static_cast<std::uint32_t>((total & 0xffffffffu) + (total >> 32));
}

}  // namespace urnic::ddp
