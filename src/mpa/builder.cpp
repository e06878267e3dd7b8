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

std::size_t total_of(ByteView header, std::span<const ByteView> payload) {
  std::size_t n = header.size();
  for (const ByteView& piece : payload) n += piece.size();
  return n;
}

// Writes an FPDU: the write position, the running CRC, and the Internet sum of all bytes so far.
// The sum of a piece that starts at an odd offset is byte-swapped (RFC 1071, 2 (B)).
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

  // Writes the pad and the CRC field. The CRC covers the pad, so the pad comes first.
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
    // 2^32 = 1 modulo 2^16 - 1, so folding the carries in keeps the one's-complement sum.
    std::uint64_t s = (sum_ & 0xffffffffu) + (sum_ >> 32);
    s = (s & 0xffffffffu) + (s >> 32);
    return {written(), static_cast<std::uint32_t>(s)};
  }

  std::uint32_t written() const { return static_cast<std::uint32_t>(at_ - begin_); }

 private:
  bool odd() const { return ((at_ - begin_) & 1) != 0; }

  std::uint8_t* begin_;
  std::uint8_t* at_;
  bool crc_on_;
  std::uint32_t crc_ = kCrc32cInit;
  std::uint64_t sum_ = 0;
};

// A Writer that inserts a marker at each grid position.
class MarkedWriter {
 public:
  MarkedWriter(std::uint8_t* dst, std::uint32_t pos, bool crc) : w_(dst, crc), pos_(pos) {
    marker_if_due();
    field_ = w_.written();
  }

  void add(ByteView piece) {
    while (!piece.empty()) {
      const std::size_t n = std::min<std::size_t>(piece.size(), to_marker(pos_ + w_.written()));
      w_.add(piece.first(n));
      piece = piece.subspan(n);
      // Also after the last byte: the CRC always follows a marker there.
      marker_if_due();
    }
  }
  // Writes the pad (a marker may begin right after it) and the CRC field.
  Built finish(std::uint32_t pad) {
    static constexpr std::uint8_t kZeros[3] = {};
    add(ByteView(kZeros, pad));
    w_.finish(0);
    return w_.built();
  }

 private:
  // The pointer is the distance back to the length field. A leading marker is before that field and
  // holds 0.
  void marker_if_due() {
    const std::uint32_t at = w_.written();
    if (to_marker(pos_ + at) != 0) return;
    std::uint8_t marker[kMarker];
    store_be32(marker, at - field_);
    w_.add(ByteView(marker, kMarker));
  }

  Writer w_;
  std::uint32_t pos_;
  std::uint32_t field_ = 0;
};

}  // namespace

// Every byte is summed as it is written, and the port's buffer is not read back: the other side of
// a shared-memory wire can change it.
Built build_fpdu_of(std::uint8_t* dst, ByteView head, std::span<const ByteView> payload, bool crc) {
  const std::size_t ulpdu = total_of(head, payload) - kLengthField;
  if (ulpdu > kMaxUlpdu) return {};  // does not fit the length field

  Writer w(dst, crc);
  w.add(head);
  for (const ByteView& piece : payload) w.add(piece);
  w.finish(pad_of(static_cast<std::uint32_t>(ulpdu)));
  return w.built();
}

Built build_fpdu(std::uint8_t* dst, ByteView header, std::span<const ByteView> payload, bool crc) {
  const std::size_t ulpdu = total_of(header, payload);
  if (ulpdu > kMaxUlpdu) return {};

  // Length field and header are assembled in a local block.
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

Built build_framed(std::uint8_t* dst, Policy policy, std::uint32_t pos, ByteView header,
                   std::span<const ByteView> payload, bool crc) {
  if (!has_markers(policy)) return build_fpdu(dst, header, payload, crc);
  const std::size_t total = total_of(header, payload);
  if (total > kMaxUlpdu) return {};
  const auto ulpdu = static_cast<std::uint32_t>(total);
  const bool leading = leading_marker(pos);
  const std::uint32_t frame = marked_size(pos, ulpdu) - (leading ? kMarker : 0);
  if (frame > kMaxModifiedFrame) return {};

  std::uint8_t field[kLengthField];
  store_be16(field, policy == Policy::ModifiedLength ? modified_length(frame, pad_of(ulpdu))
                                                     : static_cast<std::uint16_t>(ulpdu));
  MarkedWriter w(dst, pos, crc);
  w.add(ByteView(field, kLengthField));
  w.add(header);
  for (const ByteView& piece : payload) w.add(piece);
  return w.finish(pad_of(ulpdu));
}

}  // namespace urnic::mpa
