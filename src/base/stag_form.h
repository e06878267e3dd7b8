// How the entries of a table of STags look outside (E-49; RFC 5042, 5.1.1): who has not been told
// an STag does not find it by counting.
//
// An STag is a 24-bit index and an 8-bit key (RFC 5040, 1.1). Inside, entries are numbered from 1;
// outside, a keyed permutation of the 24 bits stands for them, cheap enough for each FPDU that
// comes in. The key is a permutation of the number of uses of that entry, keyed per entry: it does
// not come back before 256 uses, and knowing some keys does not tell the next.
#pragma once

#include <cstdint>

#include "base/siphash.h"

namespace urnic {

class StagForm {
 public:
  // Unkeyed: STags as they are numbered, keys counting from `first_key`. For tests.
  explicit StagForm(std::uint8_t first_key = 1) : first_key_(first_key) {}
  explicit StagForm(const SipKey& key) : keyed_(true), key_(key) {
    const std::uint64_t words = siphash24(key, {0});
    mask_ = static_cast<std::uint32_t>(words) & kIndexMask;
    factor_ = (static_cast<std::uint32_t>(words >> 32) & kIndexMask) | 1;
    inverse_ = factor_;  // Newton: each step doubles the bits that are right, three to begin with
    for (int i = 0; i < 4; ++i) inverse_ *= 2 - factor_ * inverse_;
    inverse_ &= kIndexMask;
    offset_ = (mask_ * factor_) & kIndexMask;  // so that 0, which is no entry, stays 0
  }

  std::uint32_t outside(std::uint32_t index) const {
    return (((index ^ mask_) * factor_) & kIndexMask) ^ offset_;
  }
  std::uint32_t inside(std::uint32_t stag) const {
    return ((((stag >> 8) ^ offset_) * inverse_) & kIndexMask) ^ mask_;
  }
  // Of the `use`-th STag of an entry.
  std::uint8_t key(std::uint32_t index, std::uint8_t use) const {
    if (!keyed_) return static_cast<std::uint8_t>(first_key_ + use);
    const std::uint64_t h = siphash13(key_, {1, index});
    std::uint32_t x = use;
    for (int round = 0; round < 4; ++round) {  // each step can be undone, so no two uses meet
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
