#include "ddp_rdma/terminate.h"

#include <cstring>

#include "ddp_rdma/header.h"
#include "ddp_rdma/once.h"

namespace urnic::ddp {
namespace {

constexpr std::uint32_t kControl = 4;
constexpr std::uint32_t kSegmentLength = 2;
constexpr std::uint32_t kReadHeader = kReadRequestHeader - kUntaggedHeader;

// Header control bits of byte 2, in RFC 5040 4.8 and as siw packs them on little-endian machines.
constexpr std::uint8_t kM = 0x80, kD = 0x40, kR = 0x20;
constexpr std::uint8_t kRfcBits = kM | kD | kR;
constexpr std::uint8_t kSwappedBits = 0x07;

constexpr std::uint8_t kTaggedBit = 0x80;

std::uint32_t ddp_header_of(std::uint8_t control) {
  return (control & kTaggedBit) != 0 ? kTaggedHeader : kUntaggedHeader;
}

bool is_read_request(ByteView ulpdu) {
  return ulpdu.size() >= kReadRequestHeader && (ulpdu[0] & kTaggedBit) == 0 &&
         (ulpdu[1] & 0x0f) == static_cast<std::uint8_t>(Opcode::ReadRequest);
}

// True if the registries define this error (iwarp error codes, RFC 6580 and 6581) and it is
// possible at this time: MPA's set-up errors answer a start-up frame, the others an FPDU.
bool possible(std::uint8_t layer, std::uint8_t etype, std::uint8_t code, TerminateWhen when) {
  if (when == TerminateWhen::AtSetup) return layer == 2 && etype == 0 && code >= 4 && code <= 7;
  switch (layer << 4 | etype) {
    case 0x00:
      return true;
    case 0x01:
      return code <= 4 || code == 9 || code == 0xff;
    case 0x02:
      return (code >= 5 && code <= 9) || code == 0xff;
    case 0x10:
      return code == 0;
    case 0x11:
      return code <= 4;
    case 0x12:
      return code >= 1 && code <= 6;
    case 0x13:
      return true;
    case 0x20:
      return code >= 1 && code <= 3;
    default:
      return false;
  }
}

// The header control bits decide first: both packings set some if a header follows. If none is set,
// the packing that gives a possible error is chosen, the RFC's if both do.
bool read_swapped(const std::uint8_t* control, TerminateWhen when) {
  if ((control[2] & kRfcBits) != 0) return false;
  if ((control[2] & kSwappedBits) != 0) return true;
  const std::uint8_t high = control[0] >> 4, low = control[0] & 0x0f;
  return !possible(high, low, control[1], when) && possible(low, high, control[1], when);
}

}  // namespace

std::uint32_t build_terminate(Violation violation, ByteView offending, std::uint8_t* dst) {
  const ViolationRow& row = violation_row(violation);
  SegmentHeader header;
  header.op = Opcode::Terminate;
  header.last = true;
  header.qn = kQnTerminate;
  header.msn = 1;  // one Terminate per direction (RFC 5040, 4.8)
  std::uint32_t n = emit_header(header, dst);

  const std::uint32_t ddp = offending.empty() ? 0 : ddp_header_of(offending[0]);
  const bool with_ddp = row.with_ddp && ddp != 0 && offending.size() >= ddp;
  const bool with_rdmap = row.with_rdmap && with_ddp && is_read_request(offending);
  dst[n] = static_cast<std::uint8_t>(row.layer << 4 | row.etype);
  dst[n + 1] = row.code;
  dst[n + 2] = static_cast<std::uint8_t>((with_ddp ? kM | kD : 0) | (with_rdmap ? kR : 0));
  dst[n + 3] = 0;
  n += kControl;
  if (!with_ddp) return n;
  // "DDP Segment Length" is interpreted as the length of the whole segment, including the header.
  store_be16(dst + n, static_cast<std::uint16_t>(offending.size()));
  n += kSegmentLength;
  const std::uint32_t copied = ddp + (with_rdmap ? kReadHeader : 0);
  std::memcpy(dst + n, offending.data(), copied);
  return n + copied;
}

TerminateInfo parse_terminate(ByteView whole, TerminateWhen when) {
  const CopiedHead<kMaxTerminate> copied(whole);  // E-19
  const ByteView body = copied.view();
  TerminateInfo info;
  if (body.size() < kControl) return info;
  info.swapped = read_swapped(body.data(), when);
  info.layer = info.swapped ? body[0] & 0x0f : body[0] >> 4;
  info.etype = info.swapped ? body[0] >> 4 : body[0] & 0x0f;
  info.code = body[1];
  if (body.size() < kControl + kSegmentLength) return info;
  info.segment_length = load_be16(body.data() + kControl);
  // The length alone tells what follows. siw sets R without a Read header, and leaves M and D at 0
  // when a header follows.
  const ByteView rest = body.subspan(kControl + kSegmentLength);
  if (rest.empty()) return info;
  const std::uint32_t ddp = ddp_header_of(rest[0]);
  info.has_ddp = rest.size() >= ddp;
  info.has_rdmap = ddp == kUntaggedHeader && rest.size() >= ddp + kReadHeader;
  return info;
}

}  // namespace urnic::ddp
