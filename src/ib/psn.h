// Numbers of 24 bits: packet sequence numbers (BTH) and message sequence numbers (AETH). All
// arithmetic is modulo 2^24; which of two is earlier depends on a window, so there is no operator<.
//
// Small values; any thread.
#pragma once

#include <cstdint>

namespace urnic::ib {

inline constexpr std::uint32_t kMask24 = 0xffffff;
// Half the numbers. A send queue never has more PSNs outstanding, expected READ responses included
// (IB-9); with one more, a packet could be mistaken for a duplicate.
inline constexpr std::uint32_t kPsnWindow = 1u << 23;

template <class Tag>
class Serial24 {
 public:
  constexpr Serial24() = default;
  // Truncates to 24 bits.
  constexpr explicit Serial24(std::uint32_t v) : v_(v & kMask24) {}

  constexpr std::uint32_t value() const { return v_; }
  constexpr bool operator==(const Serial24&) const = default;
  constexpr Serial24 operator+(std::uint32_t n) const { return Serial24(v_ + n); }
  constexpr Serial24 operator-(std::uint32_t n) const { return Serial24(v_ - n); }
  // The number of steps from `o` up to this, 0..2^24-1.
  constexpr std::uint32_t operator-(Serial24 o) const { return (v_ - o.v_) & kMask24; }
  constexpr Serial24& operator+=(std::uint32_t n) { return *this = *this + n; }
  constexpr Serial24& operator++() { return *this += 1; }

  // Logically before `o`: 1..2^23-1 steps lead from this up to it.
  constexpr bool before(Serial24 o) const {
    const std::uint32_t up = o - *this;
    return up != 0 && up < kPsnWindow;
  }
  // True for first .. last, both included.
  constexpr bool within(Serial24 first, Serial24 last) const {
    return *this - first <= last - first;
  }

 private:
  std::uint32_t v_ = 0;
};

// Packet sequence number.
using Psn = Serial24<struct PsnTag>;
// Message sequence number; also the requester's SSN and LSN, which are compared with it.
using Msn = Serial24<struct MsnTag>;

// The position of a request as seen by its responder (C9-74..C9-79).
enum class PsnRegion : std::uint8_t {
  Expected,
  Duplicate,  // the 2^23 - 1 before the expected one
  Invalid,    // the 2^23 after it: something was lost
};
constexpr PsnRegion region(Psn psn, Psn expected) {
  const std::uint32_t ahead = psn - expected;
  if (ahead == 0) return PsnRegion::Expected;
  return ahead <= kPsnWindow ? PsnRegion::Invalid : PsnRegion::Duplicate;
}

// The number of packets that carry `bytes`, and of PSNs that a READ of them uses: at least one.
// `pmtu` is a value of PathMtu.
constexpr std::uint32_t packets_of(std::uint32_t bytes, std::uint32_t pmtu) {
  return bytes == 0 ? 1 : (bytes - 1) / pmtu + 1;
}

}  // namespace urnic::ib
