#include "fault/roce_frame.h"

#include <algorithm>
#include <vector>

#include "ib/packet.h"

namespace urnic::fault {
namespace {

constexpr std::uint8_t kProtoUdp = 17;
constexpr std::uint32_t kUdpHeader = 8;
constexpr std::uint32_t kUdpChecksum = 6;
// The ICRC detects every burst of up to 32 bits.
constexpr std::uint32_t kMostChanged = 4;

}  // namespace

std::uint32_t RoceView::body() const {
  return bytes - ib::kBthBytes - ib::kIcrcBytes;
}

std::optional<RoceView> view_roce(const net::Classified& c, ByteView head) {
  if (c.kind != net::FrameKind::Other || c.protocol != kProtoUdp) return std::nullopt;
  constexpr std::uint32_t kLeast = kUdpHeader + ib::kBthBytes;
  if (c.l4_len < kLeast + ib::kIcrcBytes || head.size() < c.l4_offset + std::size_t{kLeast}) {
    return std::nullopt;
  }
  const std::uint8_t* udp = head.data() + c.l4_offset;
  const std::uint32_t length = load_be16(udp + 4);
  if (load_be16(udp + 2) != ib::kUdpPort || length < kLeast + ib::kIcrcBytes || length > c.l4_len) {
    return std::nullopt;
  }
  const std::uint8_t* bth = udp + kUdpHeader;
  RoceView v;
  v.net = c;
  v.bth = c.l4_offset + kUdpHeader;
  v.bytes = length - kUdpHeader;
  v.opcode = bth[0];
  v.dest_qp = load_be32(bth + 4) & 0xffffff;
  v.psn = load_be32(bth + 8) & 0xffffff;
  const std::uint32_t pad = bth[1] >> 4 & 3;
  const std::uint32_t around = ib::header_bytes(ib::Opcode(v.opcode)) + pad + ib::kIcrcBytes;
  if (v.bytes < around) return std::nullopt;
  v.payload = v.bytes - around;
  return v;
}

std::uint32_t corrupt_roce(Frame& f, const RoceView& v, Rng* rng) {
  const std::uint64_t n = rng->between(1, std::min(kMostChanged, v.body()));
  const auto at = static_cast<std::uint32_t>(v.bth + ib::kBthBytes + rng->below(v.body() - n + 1));
  const auto first = f.bytes.begin() + at;
  const std::vector<std::uint8_t> was(first, first + static_cast<std::ptrdiff_t>(n));
  for (std::uint64_t i = 0; i < n; ++i) {
    f.bytes[at + i] = static_cast<std::uint8_t>(f.bytes[at + i] ^ rng->between(1, 255));
  }
  std::uint8_t* checksum = f.bytes.data() + v.net.l4_offset + kUdpChecksum;
  if (load_be16(checksum) == 0) return at;  // there is no checksum (RFC 768)
  mend_checksum(f, v.net.l4_offset, kUdpChecksum, at, was);
  if (load_be16(checksum) == 0) store_be16(checksum, 0xffff);
  return at;
}

}  // namespace urnic::fault
