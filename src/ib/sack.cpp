#include "ib/sack.h"

#include <algorithm>

namespace urnic::ib {
namespace {

constexpr std::uint32_t kWord = 4;  // unit of the bitmap's length

constexpr std::uint8_t kHelloVersion = 1;
constexpr std::uint8_t kSelectiveBit = 0x80, kAnswerBit = 0x40, kPartsBit = 0x20;

}  // namespace

std::optional<Sack> parse_sack(const ParsedPacket& p) {
  const std::size_t n = p.payload.size();
  if (n < kSerialBytes + kWord || n > kMostSackBytes || n % kWord != 0) return std::nullopt;
  return Sack{p.header.bth.psn + 1, load_be32(p.payload.data()), p.payload.subspan(kSerialBytes)};
}

SackWriter::SackWriter(SackBytes* to, std::uint32_t serial)
    : to_(to), bytes_(kSerialBytes + kWord) {
  to->fill(0);
  store_be32(to->data(), serial);
}

bool SackWriter::set(std::uint32_t i) {
  if (i >= kMostSackBits) return false;
  const std::uint32_t at = kSerialBytes + i / 8;
  (*to_)[at] = static_cast<std::uint8_t>((*to_)[at] | 0x80u >> i % 8);
  bytes_ = std::max(bytes_, (at / kWord + 1) * kWord);
  return true;
}

std::optional<Hello> parse_hello(const ParsedPacket& p) {
  if (p.payload.size() != kHelloBytes || p.payload[0] != kHelloVersion) return std::nullopt;
  const std::uint8_t flags = p.payload[1];
  return Hello{(flags & kSelectiveBit) != 0, (flags & kAnswerBit) != 0, (flags & kPartsBit) != 0};
}

std::array<std::uint8_t, kHelloBytes> write_hello(const Hello& h) {
  const unsigned flags = (h.selective ? kSelectiveBit : 0u) | (h.answer ? kAnswerBit : 0u) |
                         (h.parts ? kPartsBit : 0u);
  return {kHelloVersion, static_cast<std::uint8_t>(flags), 0, 0};
}

}  // namespace urnic::ib
