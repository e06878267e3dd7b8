// The middle of a large message: what cut() and fill() decide for each of its FPDUs is the same
// every time, so it is decided once. The bytes and the ledger are those the steps one by one would
// make.
#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "base/fused.h"
#include "ddp_rdma/sender.h"
#include "mpa/fpdu.h"

namespace urnic::ddp {

bool Sender::begin_run(StreamOffset begin, std::uint32_t emss, SendRun* run) {
  if (current_ != Current::Request || begin != end_ || ended_ || stopped_ || framing_.marked()) {
    return false;
  }
  set_emss(emss);
  const SendWqe& w = sq_.wqe(current_id_);
  const SendPart& p = part(current_id_);
  if (p.kept || p.broken || (w.flags & kInline) != 0 || w.num_sge != 1) return false;
  const bool tagged = w.op == WrOp::Write;
  run->payload = tagged ? tagged_max_ : untagged_max_;
  const std::uint32_t ulpdu = (tagged ? kTaggedHeader : kUntaggedHeader) + run->payload;
  run->wire = mpa::fpdu_size(ulpdu);
  // The FPDU has to be the whole segment, and must need no pad.
  if (run->wire > emss || emss - run->wire >= kSmallestFpdu || mpa::pad_of(ulpdu) != 0) {
    return false;
  }
  const std::uint32_t remaining = w.length - current_offset_;
  if (remaining <= run->payload) return false;
  run->left = std::min((remaining - 1) / run->payload, kMaxRecords - ledger_.size());
  return run->left != 0 && describe_run(run);
}

// Where the bytes are, and the first head.
bool Sender::describe_run(SendRun* run) {
  const SendWqe& w = sq_.wqe(current_id_);
  const Sge& sge = sq_.sges(current_id_)[0];
  const Region* region = memory_->find_registered(sge.lkey);
  if (region == nullptr) return false;
  const std::uint64_t offset = sge.addr - region->address;
  if (offset > region->length || sge.length > region->length - offset) return false;
  run->source = region->base + offset + current_offset_;
  SegmentHeader h;
  h.op = run->op = opcode_of(w);
  run->tagged = h.tagged();
  if (run->tagged) {
    h.stag = w.key;
    h.to = w.remote_address + current_offset_;
  } else {
    h.inv_stag = w.key;
    h.qn = kQnSend;
    h.msn = part(current_id_).msn;
    h.mo = current_offset_;
  }
  const std::uint32_t header = emit_header(h, run->head.data() + mpa::kLengthField);
  store_be16(run->head.data(), static_cast<std::uint16_t>(header + run->payload));
  run->head_octets = mpa::kLengthField + header;
  return true;
}

std::uint32_t Sender::next_of_run(SendRun* run, std::uint8_t* dst) {
  const ByteView head(run->head.data(), run->head_octets);
  const ByteView payload(run->source, run->payload);
  std::uint8_t* const body = dst + run->head_octets;
  std::uint8_t* const tail = body + run->payload;
  std::uint64_t sum;  // head and payload begin at even offsets: their sums add up
  std::uint32_t crc = 0;
  if (crc_) {
    const FusedSums first = fused_copy_crc_sum(dst, head, kCrc32cInit);
    const FusedSums all = fused_copy_crc_sum(body, payload, first.crc);
    crc = crc32c_finish(all.crc);
    sum = std::uint64_t{first.sum} + all.sum;
  } else {
    sum = std::uint64_t{fused_copy_sum(dst, head)} + fused_copy_sum(body, payload);
  }
  std::uint8_t field[mpa::kCrcField];
  store_le32(field, crc);
  std::memcpy(tail, field, sizeof field);
  sum += load_be32(field);

  // Field by field into its place: copied from a local one it would wait until that has left the
  // store buffer, behind all of the frame.
  Record& r = ledger_.push();
  r.begin = static_cast<std::uint32_t>(end_.value());
  r.wire = run->wire;
  r.owner = current_id_;
  r.offset = current_offset_;
  r.payload = run->payload;
  r.kind = RecordKind::Message;
  r.flags = kRecordFilled;
  r.op = run->op;
  ++counters_.fpdus[static_cast<std::size_t>(run->op)];
  end_ += run->wire;
  sent_ = std::max(sent_, end_);
  current_offset_ += run->payload;
  run->source += run->payload;
  --run->left;
  // The next head: TO, or MO, has moved on.
  if (run->tagged) {
    std::uint8_t* const to = run->head.data() + mpa::kLengthField + kTaggedHeader - 8;
    store_be64(to, load_be64(to) + run->payload);
  } else {
    store_be32(run->head.data() + mpa::kLengthField + kUntaggedHeader - 4, current_offset_);
  }
  sum = (sum & 0xffffffffu) + (sum >> 32);
  return static_cast<std::uint32_t>((sum & 0xffffffffu) + (sum >> 32));
}

}  // namespace urnic::ddp
