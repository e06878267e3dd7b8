#include "ddp_rdma/sender_run.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "base/fused.h"
#include "base/guarded.h"
#include "ddp_rdma/sender_cut.h"
#include "mpa/fpdu.h"

namespace urnic::ddp {
namespace {

// Finds the memory of the bytes, and builds the first head.
bool describe_run(const SenderState& s, SendRun* run) {
  const CurrentMessage at = s.current;
  const SendWqe& w = s.requests.wqe(at.id);
  const std::uint8_t* const memory = s.requests.memory_of(s.requests.queue().sges(at.id)[0]);
  if (memory == nullptr) return false;
  run->source = memory + at.offset;
  SegmentHeader h;
  h.op = run->op = at.op;
  run->tagged = h.tagged();
  if (run->tagged) {
    h.stag = w.key;
    h.to = w.remote_address + at.offset;
  } else {
    h.inv_stag = w.key;
    h.qn = kQnSend;
    h.msn = s.requests.part(at.id).msn;
    h.mo = at.offset;
  }
  run->head_bytes = emit_fpdu_head(h, header_of(run->tagged) + run->payload, run->head.data());
  return true;
}

}  // namespace

bool begin_run(SenderState& s, StreamOffset begin, std::uint32_t emss, SendRun* run) {
  if (s.current.kind != CurrentMessage::Kind::Request || begin != s.retained.end() || s.ended ||
      s.stopped || s.sizes.framing().marked()) {
    return false;
  }
  set_emss(s, emss);
  const SendWqe& w = s.requests.wqe(s.current.id);
  const SendPart& p = s.requests.part(s.current.id);
  if (p.kept || p.broken || (w.flags & kInline) != 0 || w.num_sge != 1) return false;
  if (carries_immediate(s.current.op)) return false;  // its payload is elsewhere
  const bool tagged = s.current.tagged();
  run->payload = s.sizes.most(tagged);
  const std::uint32_t ulpdu = header_of(tagged) + run->payload;
  run->wire = mpa::fpdu_size(ulpdu);
  // The FPDU must be the whole segment, and must need no pad.
  if (run->wire > emss || emss - run->wire >= FpduSizes::kSmallestFpdu || mpa::pad_of(ulpdu) != 0) {
    return false;
  }
  const std::uint32_t remaining = s.current.length - s.current.offset;
  if (remaining <= run->payload) return false;
  run->left = std::min((remaining - 1) / run->payload, s.retained.room());
  return run->left != 0 && describe_run(s, run);
}

bool next_of_run(SenderState& s, SendRun* run, std::uint8_t* dst, std::uint32_t* out) {
  const ByteView head(run->head.data(), run->head_bytes);
  const ByteView payload(run->source, run->payload);
  std::uint8_t* const body = dst + run->head_bytes;
  std::uint8_t* const tail = body + run->payload;
  std::uint64_t sum = 0;  // head and payload begin at even offsets, so their sums can be added
  std::uint32_t crc = 0;
  const bool there = guarded(payload.data(), payload.size(), [&] {
    if (s.crc) {
      const FusedSums first = fused_copy_crc_sum(dst, head, kCrc32cInit);
      const FusedSums all = fused_copy_crc_sum(body, payload, first.crc);
      crc = crc32c_finish(all.crc);
      sum = std::uint64_t{first.sum} + all.sum;
    } else {
      sum = std::uint64_t{fused_copy_sum(dst, head)} + fused_copy_sum(body, payload);
    }
  });
  if (!there) return false;
  std::uint8_t field[mpa::kCrcField];
  store_le32(field, crc);
  std::memcpy(tail, field, sizeof field);
  sum += load_be32(field);

  Record& r = s.retained.cut(run->wire);
  r.owner = s.current.id;
  r.offset = s.current.offset;
  r.payload = run->payload;
  r.kind = RecordKind::Message;
  r.flags = kRecordFilled;
  r.op = run->op;
  ++s.counters.fpdus[static_cast<std::size_t>(run->op)];
  s.retained.note_sent(s.retained.end());
  s.current.offset += run->payload;
  run->source += run->payload;
  --run->left;
  // The next head has a higher TO or MO.
  if (run->tagged) {
    std::uint8_t* const to = run->head.data() + mpa::kLengthField + kTaggedHeader - 8;
    store_be64(to, load_be64(to) + run->payload);
  } else {
    store_be32(run->head.data() + mpa::kLengthField + kUntaggedHeader - 4, s.current.offset);
  }
  sum = (sum & 0xffffffffu) + (sum >> 32);
  *out = static_cast<std::uint32_t>((sum & 0xffffffffu) + (sum >> 32));
  return true;
}

}  // namespace urnic::ddp
