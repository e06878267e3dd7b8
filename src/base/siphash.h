// SipHash (Aumasson and Bernstein, 2012): a short hash with a secret key. Used for initial sequence
// numbers (RFC 6528) and for hash tables whose keys a peer chooses.
//
// SipHash-2-4 is the conservative variant. SipHash-1-3 is about twice as fast and sufficient where
// only the distribution over a table depends on it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/bytes.h"

namespace urnic {

struct SipKey {
  std::uint64_t k0 = 0;
  std::uint64_t k1 = 0;
};

namespace siphash_detail {

class State {
 public:
  constexpr explicit State(const SipKey& key)
      : v_{key.k0 ^ 0x736f6d6570736575ULL, key.k1 ^ 0x646f72616e646f6dULL,
           key.k0 ^ 0x6c7967656e657261ULL, key.k1 ^ 0x7465646279746573ULL} {}

  template <int kRounds>
  constexpr void absorb(std::uint64_t word) {
    v_[3] ^= word;
    for (int i = 0; i < kRounds; ++i) round();
    v_[0] ^= word;
  }
  template <int kRounds>
  constexpr std::uint64_t finish() {
    v_[2] ^= 0xff;
    for (int i = 0; i < kRounds; ++i) round();
    return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  }

 private:
  constexpr void round() {
    v_[0] += v_[1];
    v_[2] += v_[3];
    v_[1] = std::rotl(v_[1], 13) ^ v_[0];
    v_[3] = std::rotl(v_[3], 16) ^ v_[2];
    v_[0] = std::rotl(v_[0], 32);
    v_[2] += v_[1];
    v_[0] += v_[3];
    v_[1] = std::rotl(v_[1], 17) ^ v_[2];
    v_[3] = std::rotl(v_[3], 21) ^ v_[0];
    v_[2] = std::rotl(v_[2], 32);
  }
  std::uint64_t v_[4];
};

template <int kCompress, int kFinish>
std::uint64_t hash_bytes(const SipKey& key, ByteView bytes) {
  State s(key);
  const std::uint8_t* p = bytes.data();
  std::size_t n = bytes.size();
  for (; n >= 8; n -= 8, p += 8) s.absorb<kCompress>(load_le64(p));
  std::uint64_t last = static_cast<std::uint64_t>(bytes.size()) << 56;
  for (std::size_t i = 0; i < n; ++i) last |= static_cast<std::uint64_t>(p[i]) << (8 * i);
  s.absorb<kCompress>(last);
  return s.finish<kFinish>();
}

// Like hash_bytes over the words in little-endian order.
template <int kCompress, int kFinish>
constexpr std::uint64_t hash_words(const SipKey& key, std::initializer_list<std::uint64_t> words) {
  State s(key);
  for (const std::uint64_t w : words) s.absorb<kCompress>(w);
  s.absorb<kCompress>(static_cast<std::uint64_t>(words.size() * 8) << 56);
  return s.finish<kFinish>();
}

}  // namespace siphash_detail

inline std::uint64_t siphash24(const SipKey& key, ByteView bytes) {
  return siphash_detail::hash_bytes<2, 4>(key, bytes);
}
constexpr std::uint64_t siphash24(const SipKey& key, std::initializer_list<std::uint64_t> words) {
  return siphash_detail::hash_words<2, 4>(key, words);
}
inline std::uint64_t siphash13(const SipKey& key, ByteView bytes) {
  return siphash_detail::hash_bytes<1, 3>(key, bytes);
}
constexpr std::uint64_t siphash13(const SipKey& key, std::initializer_list<std::uint64_t> words) {
  return siphash_detail::hash_words<1, 3>(key, words);
}

}  // namespace urnic
