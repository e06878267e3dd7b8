#include "ddp_rdma/header.h"

#include <limits>

#include "ddp_rdma/atomic_request.h"
#include "ddp_rdma/once.h"
#include "mpa/fpdu.h"

namespace urnic::ddp {
namespace {

// Byte 0, DDP control (RFC 5041, 4.1): T, L, four reserved bits that are not checked, DV.
constexpr std::uint8_t kT = 0x80;
constexpr std::uint8_t kL = 0x40;
constexpr std::uint8_t kDvMask = 0x03;
constexpr std::uint8_t kDv = 0x01;
// Byte 1, RDMAP control (RFC 5040, 4.1): RV, two reserved bits that are not checked, opcode.
constexpr std::uint8_t kRvMask = 0xc0;
constexpr std::uint8_t kRv = 0x40;
constexpr std::uint8_t kOpcodeMask = 0x0f;

constexpr std::uint8_t kHighestOpcode = static_cast<std::uint8_t>(Opcode::AtomicResponse);

constexpr bool invalidates(Opcode op) {
  return op == Opcode::SendInv || op == Opcode::SendSeInv;
}

constexpr std::uint32_t queue_of(Opcode op) {
  if (op == Opcode::ReadRequest || op == Opcode::AtomicRequest) return kQnReadRequest;
  if (op == Opcode::AtomicResponse) return kQnAtomicResponse;
  if (op == Opcode::Terminate) return kQnTerminate;
  return kQnSend;
}

// Checks RV and opcode, and that the opcode fits this kind of buffer and queue (RFC 5040, 4.1).
Violation check_rdmap(std::uint8_t control, bool tagged, std::uint32_t qn) {
  if ((control & kRvMask) != kRv) return Violation::RdmapVersion;
  if ((control & kOpcodeMask) > kHighestOpcode) return Violation::UnexpectedOpcode;
  const auto op = static_cast<Opcode>(control & kOpcodeMask);
  const bool wants_tagged = op == Opcode::Write || op == Opcode::ReadResponse;
  if (wants_tagged != tagged) return Violation::UnexpectedOpcode;
  if (!tagged && queue_of(op) != qn) return Violation::UnexpectedOpcode;
  return Violation::None;
}

// `head`: the private copy of the header; `ulpdu`: contains the payload.
Outcome<ParsedSegment, Violation> parse_tagged(ByteView head, ByteView ulpdu) {
  if (head.size() < kTaggedHeader) return fail(Violation::StreamCatastrophic);
  const std::uint8_t* p = head.data();
  const Violation v = check_rdmap(p[1], true, 0);
  if (v != Violation::None) return fail(v);
  ParsedSegment s;
  s.header.op = static_cast<Opcode>(p[1] & kOpcodeMask);
  s.header.last = (p[0] & kL) != 0;
  s.header.stag = load_be32(p + 2);
  s.header.to = load_be64(p + 6);
  s.payload = ulpdu.subspan(kTaggedHeader);
  return s;
}

// Queues 1, 2 and 3 have buffers for one message that fits any MULPDU (>= 128). A message that is
// not complete in one segment has a wrong offset or is longer than its buffer.
Violation check_single(const SegmentHeader& h) {
  if (h.mo != 0) return Violation::UntaggedMo;
  if (!h.last) return Violation::UntaggedTooLong;
  return Violation::None;
}

Violation check_whole(const SegmentHeader& h, ByteView ulpdu, std::uint32_t bytes) {
  const Violation v = check_single(h);
  if (v != Violation::None) return v;
  if (ulpdu.size() > bytes) return Violation::UntaggedTooLong;
  return ulpdu.size() < bytes ? Violation::StreamCatastrophic : Violation::None;
}

Violation parse_read_request(ByteView head, ByteView ulpdu, SegmentHeader& h) {
  const Violation v = check_whole(h, ulpdu, kReadRequestHeader);
  if (v != Violation::None) return v;
  const std::uint8_t* p = head.data() + kUntaggedHeader;
  h.read.sink_stag = load_be32(p);
  h.read.sink_to = load_be64(p + 4);
  h.read.size = load_be32(p + 12);
  h.read.source_stag = load_be32(p + 16);
  h.read.source_to = load_be64(p + 20);
  return Violation::None;
}

Violation check_atomic(ByteView ulpdu, const SegmentHeader& h) {
  const Violation v = check_whole(h, ulpdu, kUntaggedHeader + kAtomicRequest);
  return v != Violation::None ? v : check_atomic_request(ulpdu.subspan(kUntaggedHeader));
}

Violation parse_atomic_response(ByteView head, ByteView ulpdu, SegmentHeader& h) {
  const Violation v = check_whole(h, ulpdu, kAtomicResponseHeader);
  if (v != Violation::None) return v;
  h.atomic_reply.id = load_be32(head.data() + kUntaggedHeader);
  h.atomic_reply.original = load_be64(head.data() + kUntaggedHeader + 4);
  return Violation::None;
}

// The Immediate Data is the beginning of its message, in one piece (any MULPDU is >= 128).
Violation parse_immediate(ByteView head, ByteView ulpdu, ParsedSegment& s) {
  SegmentHeader& h = s.header;
  h.with_immediate = h.mo == 0;
  if (!h.with_immediate) {
    if (h.mo < kImmediateData) return Violation::UntaggedMo;
    h.mo -= kImmediateData;
    return Violation::None;
  }
  if (head.size() < kUntaggedHeader + kImmediateData) return Violation::StreamCatastrophic;
  h.immediate = load_be64(head.data() + kUntaggedHeader);
  s.payload = ulpdu.subspan(kUntaggedHeader + kImmediateData);
  return Violation::None;
}

// The checks are made layer by layer: all of DDP's before RDMAP's (RFC 5041, 7; RFC 5040, 7).
Outcome<ParsedSegment, Violation> parse_untagged(ByteView head, ByteView ulpdu) {
  if (head.size() < kUntaggedHeader) return fail(Violation::StreamCatastrophic);
  const std::uint8_t* p = head.data();
  ParsedSegment s;
  SegmentHeader& h = s.header;
  h.qn = load_be32(p + 6);
  if (h.qn > kQnAtomicResponse) return fail(Violation::UntaggedQn);
  Violation v = check_rdmap(p[1], false, h.qn);
  if (v != Violation::None) return fail(v);
  h.op = static_cast<Opcode>(p[1] & kOpcodeMask);
  h.last = (p[0] & kL) != 0;
  if (invalidates(h.op)) h.inv_stag = load_be32(p + 2);
  h.msn = load_be32(p + 10);
  h.mo = load_be32(p + 14);
  s.payload = ulpdu.subspan(kUntaggedHeader);
  // A message has fewer than 2^32 bytes (RFC 5041, 5.2).
  const bool wraps = s.payload.size() > std::numeric_limits<std::uint32_t>::max() - h.mo;
  switch (h.op) {
    case Opcode::ReadRequest:
      v = parse_read_request(head, ulpdu, h);
      s.payload = {};
      break;
    case Opcode::Terminate:
      v = check_single(h);
      break;
    case Opcode::AtomicRequest:
      v = check_atomic(ulpdu, h);
      break;
    case Opcode::AtomicResponse:
      v = parse_atomic_response(head, ulpdu, h);
      s.payload = {};
      break;
    case Opcode::Immediate:
    case Opcode::ImmediateSe:
      v = wraps ? Violation::UntaggedTooLong : parse_immediate(head, ulpdu, s);
      break;
    default:
      if (wraps) v = Violation::UntaggedTooLong;
      break;
  }
  if (v != Violation::None) return fail(v);
  return s;
}

}  // namespace

Outcome<ParsedSegment, Violation> parse_segment(ByteView ulpdu) {
  if (ulpdu.size() < 2) return fail(Violation::StreamCatastrophic);
  const CopiedHead<kMaxHeader> copied(ulpdu);
  const ByteView head = copied.view();
  const bool tagged = (head[0] & kT) != 0;
  // Checked before any length, since another DDP version may have another header.
  if ((head[0] & kDvMask) != kDv) {
    return fail(tagged ? Violation::TaggedVersion : Violation::UntaggedVersion);
  }
  return tagged ? parse_tagged(head, ulpdu) : parse_untagged(head, ulpdu);
}

namespace {

std::uint32_t emit_atomic_response(const AtomicResponse& a, std::uint8_t* dst) {
  store_be32(dst + kUntaggedHeader, a.id);
  store_be64(dst + kUntaggedHeader + 4, a.original);
  return kAtomicResponseHeader;
}

// The two control bytes.
std::uint16_t control_of(const SegmentHeader& h) {
  const unsigned of_ddp = (h.tagged() ? kT : 0u) | (h.last ? kL : 0u) | kDv;
  return static_cast<std::uint16_t>(of_ddp << 8 | kRv | static_cast<unsigned>(h.op));
}

}  // namespace

std::uint32_t emit_header(const SegmentHeader& h, std::uint8_t* dst) {
  store_be16(dst, control_of(h));
  if (h.tagged()) {
    store_be32(dst + 2, h.stag);
    store_be64(dst + 6, h.to);
    return kTaggedHeader;
  }
  store_be32(dst + 2, invalidates(h.op) ? h.inv_stag : 0);
  store_be32(dst + 6, h.qn);
  store_be32(dst + 10, h.msn);
  store_be32(dst + 14, h.mo);
  if (carries_immediate(h.op)) {
    if (!h.with_immediate) {
      store_be32(dst + 14, h.mo + kImmediateData);
      return kUntaggedHeader;
    }
    store_be64(dst + kUntaggedHeader, h.immediate);
    return kUntaggedHeader + kImmediateData;
  }
  if (h.op == Opcode::AtomicResponse) return emit_atomic_response(h.atomic_reply, dst);
  if (h.op != Opcode::ReadRequest) return kUntaggedHeader;
  store_be32(dst + 18, h.read.sink_stag);
  store_be64(dst + 22, h.read.sink_to);
  store_be32(dst + 30, h.read.size);
  store_be32(dst + 34, h.read.source_stag);
  store_be64(dst + 38, h.read.source_to);
  return kReadRequestHeader;
}

std::uint32_t emit_fpdu_head(const SegmentHeader& h, std::uint32_t ulpdu, std::uint8_t* dst) {
  constexpr std::uint32_t kLengthField = mpa::kLengthField;
  const std::uint64_t first = std::uint64_t{ulpdu} << 48 | std::uint64_t{control_of(h)} << 32;
  if (h.tagged()) {
    store_be64(dst, first | h.stag);
    store_be64(dst + 8, h.to);
    return kLengthField + kTaggedHeader;
  }
  if (h.op < Opcode::Send || h.op > Opcode::SendSeInv) {
    store_be16(dst, static_cast<std::uint16_t>(ulpdu));
    return kLengthField + emit_header(h, dst + kLengthField);
  }
  store_be64(dst, first | (invalidates(h.op) ? h.inv_stag : 0));
  store_be64(dst + 8, std::uint64_t{h.qn} << 32 | h.msn);
  store_be32(dst + 16, h.mo);
  return kLengthField + kUntaggedHeader;
}

}  // namespace urnic::ddp
