// Maps the entries of an STag table to STag values (E-49; RFC 5042, 5.1.1), so that a peer cannot
// find unadvertised STags by counting.
//
// An STag is a 24-bit index and an 8-bit key (RFC 5040, 1.1). Internally, entries are numbered from
// 1. Externally, a keyed permutation of the 24 bits represents them; it is cheap enough for every
// received FPDU. The key is a permutation of the entry's use count, keyed per entry: it does not
// repeat within 256 uses, and known keys do not reveal the next one.
#pragma once

#include <cstdint>

#include "base/siphash.h"

namespace urnic {

class StagForm {
 public:
  // Unkeyed: indexes are not permuted and keys count from `first_key`. For tests.
  explicit StagForm(std::uint8_t first_key = 1) : first_key_(first_key) {}
  explicit StagForm(const SipKey& key) : keyed_(true), key_(key) {
    const std::uint64_t words = siphash24(key, {0});
    mask_ = static_cast<std::uint32_t>(words) & kIndexMask;
    factor_ = (static_cast<std::uint32_t>(words >> 32) & kIndexMask) | 1;
    inverse_ = factor_;  // Newton: each step doubles the number of correct bits, initially three
    for (int i = 0; i < 4; ++i) inverse_ *= 2 - factor_ * inverse_;
    inverse_ &= kIndexMask;
    offset_ = (mask_ * factor_) & kIndexMask;  // maps 0, which is not an entry, to 0
  }

  std::uint32_t outside(std::uint32_t index) const {
    return (((index ^ mask_) * factor_) & kIndexMask) ^ offset_;
  }
  std::uint32_t inside(std::uint32_t stag) const {
    return ((((stag >> 8) ^ offset_) * inverse_) & kIndexMask) ^ mask_;
  }
  // The key of the `use`-th STag of an entry.
  std::uint8_t key(std::uint32_t index, std::uint8_t use) const {
    if (!keyed_) return static_cast<std::uint8_t>(first_key_ + use);
    const std::uint64_t h = siphash13(key_, {1, index});
    std::uint32_t x = use;
    for (int round = 0; round < 4; ++round) {  // each step is invertible, so all keys are distinct
      x = (x * (static_cast<std::uint32_t>(h >> (16 * round)) | 1) +
           static_cast<std::uint32_t>(h >> (16 * round + 8))) &
          0xff;
      x ^= x >> 4;
    }
    return static_cast<std::uint8_t>(x);
  }
  std::uint32_t stag(std::uint32_t index, std::uint8_t key) const {
    return (outside(index) << 8) | key;
  }

 private:
  static constexpr std::uint32_t kIndexMask = 0xffffff;
  bool keyed_ = false;
  std::uint8_t first_key_ = 1;
  SipKey key_;
  std::uint32_t mask_ = 0, factor_ = 1, inverse_ = 1, offset_ = 0;
};

}  // namespace urnic
