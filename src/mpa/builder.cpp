#include "mpa/builder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/crc32c.h"
#include "base/fused.h"
#include "base/inet_checksum.h"
#include "mpa/fpdu.h"

namespace urnic::mpa {
namespace {

// The FPDU as it grows: where the next octet goes, the running CRC, and the Internet sum of all
// octets so far. A piece that starts at an odd offset has its sum byte-swapped (RFC 1071, 2 (B)).
class Writer {
 public:
  Writer(std::uint8_t* dst, bool crc) : begin_(dst), at_(dst), crc_on_(crc) {}

  void add(ByteView piece) {
    if (piece.empty()) return;
    std::uint32_t piece_sum;
    if (crc_on_) {
      const FusedSums s = fused_copy_crc_sum(at_, piece, crc_);
      crc_ = s.crc;
      piece_sum = s.sum;
    } else {
      piece_sum = fused_copy_sum(at_, piece);
    }
    sum_ += odd() ? __builtin_bswap16(inet_fold(piece_sum)) : piece_sum;
    at_ += piece.size();
  }

  // Pad and CRC field. The CRC covers the pad, so that goes first.
  void finish(std::uint32_t pad) {
    if (pad != 0) {
      static constexpr std::uint8_t kZeros[3] = {};
      std::memcpy(at_, kZeros, pad);  // zeros add nothing to the sum
      if (crc_on_) crc_ = crc32c_update(crc_, ByteView(kZeros, pad));
      at_ += pad;
    }
    const std::uint32_t crc = crc_on_ ? crc32c_finish(crc_) : 0;
    std::array<std::uint8_t, kCrcField> field;
    store_le32(field.data(), crc);
    std::memcpy(at_, field.data(), field.size());
    sum_ += load_be16(field.data()) + std::uint32_t{load_be16(field.data() + 2)};
    at_ += kCrcField;
  }

  Built built() const {
    // 2^32 = 1 modulo 2^16 - 1: folding the carries in keeps the one's-complement sum.
    std::uint64_t s = (sum_ & 0xffffffffu) + (sum_ >> 32);
    s = (s & 0xffffffffu) + (s >> 32);
    return {static_cast<std::uint32_t>(at_ - begin_), static_cast<std::uint32_t>(s)};
  }

 private:
  bool odd() const { return ((at_ - begin_) & 1) != 0; }

  std::uint8_t* begin_;
  std::uint8_t* at_;
  bool crc_on_;
  std::uint32_t crc_ = kCrc32cInit;
  std::uint64_t sum_ = 0;
};

}  // namespace

Built build_fpdu(std::uint8_t* dst, ByteView header, std::span<const ByteView> payload, bool crc) {
  std::size_t ulpdu = header.size();
  for (const ByteView& piece : payload) ulpdu += piece.size();
  if (ulpdu > kMaxUlpdu) return {};  // cannot be said in the length field

  // Length field and header go through one local block: every octet is summed as it is written,
  // never by reading the port's buffer, which the other side of a shared-memory wire can change.
  std::array<std::uint8_t, 64> head;
  store_be16(head.data(), static_cast<std::uint16_t>(ulpdu));
  const std::size_t n = std::min(header.size(), head.size() - kLengthField);
  if (n != 0) std::memcpy(head.data() + kLengthField, header.data(), n);

  Writer w(dst, crc);
  w.add(ByteView(head.data(), kLengthField + n));
  w.add(header.subspan(n));
  for (const ByteView& piece : payload) w.add(piece);
  w.finish(pad_of(static_cast<std::uint32_t>(ulpdu)));
  return w.built();
}

}  // namespace urnic::mpa
