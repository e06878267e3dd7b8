#include "fastpath/validation_unit.h"

#include "base/crc32c.h"
#include "base/fused.h"
#include "base/inet_checksum.h"
#include "mpa/fpdu.h"

namespace urnic::fastpath {
namespace {

constexpr std::uint32_t kSmallestFpdu = mpa::fpdu_size(0);

// The frame size by the length field of the remaining bytes; the smallest frame if there is no
// length field.
std::uint32_t asked_for(const std::uint8_t* p, std::size_t left) {
  return left < mpa::kLengthField ? kSmallestFpdu : mpa::fpdu_size(load_be16(p));
}

}  // namespace

void validate(ByteView payload, Validation& out) {
  out.frames.clear();
  const std::uint8_t* const begin = payload.data();
  const std::size_t total = payload.size();
  // Nearly every segment is one FPDU. (If the peer changes the length before it is read again
  // below, that later value is used there, E-19.)
  const std::uint32_t whole = asked_for(begin, total);
  if (whole == total) [[likely]] {
    const FusedSums s = fused_crc_sum(payload, kCrc32cInit);
    out.sum = s.sum;
    out.all_valid = s.crc == kCrcResidue;
    out.frames.push_back({0, whole, out.all_valid ? FrameStatus::Valid : FrameStatus::Invalid});
    return;
  }
  std::size_t at = 0;
  std::uint64_t sum = 0;
  bool good = true;
  // Every FPDU is a whole number of words, so each begins at an even offset and the sums can be
  // added.
  while (at < total) {
    const std::uint8_t* const p = begin + at;
    const std::size_t left = total - at;
    // Read once: the payload may lie in memory the peer can still write (E-19).
    const std::uint32_t size = asked_for(p, left);
    if (size > left) {  // also R-70: the remaining bytes cannot hold any frame
      out.frames.push_back({static_cast<std::uint32_t>(at), size, FrameStatus::TooLong});
      good = false;
      break;
    }
    const FusedSums s = fused_crc_sum({p, size}, kCrc32cInit);
    sum += s.sum;
    good = s.crc == kCrcResidue;
    out.frames.push_back(
        {static_cast<std::uint32_t>(at), size, good ? FrameStatus::Valid : FrameStatus::Invalid});
    at += size;
    if (!good) break;
  }
  // InLogic stops at the first error, but the TCP checksum covers the rest as well.
  if (at < total) sum += inet_sum(payload.subspan(at));
  // 2^32 = 1 modulo 0xffff, so folding keeps the sum's value and fits 32 bits.
  sum = (sum & 0xffffffffu) + (sum >> 32);
  sum = (sum & 0xffffffffu) + (sum >> 32);
  out.sum = static_cast<std::uint32_t>(sum);
  out.all_valid = good && !out.frames.empty();
}

}  // namespace urnic::fastpath
