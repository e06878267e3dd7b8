// Moves an ICRC from one identification of the IPv4 header to another. The ICRC covers the
// identification, and the kernel numbers the datagrams of one segmented send from 0 on, without
// showing the numbers to the receiver. A CRC is linear, so one exclusive-or is enough.
//
// One thread. Holds the factors of the last two lengths.
#pragma once

#include <array>
#include <cstdint>

#include "base/crc32.h"
#include "base/crc_math.h"

namespace urnic::port {

class IdentificationPatch {
 public:
  // Returns the difference between the ICRCs of two datagrams of `payload` bytes (BTH to ICRC, at
  // least 4) that have the identifications 0 and `identification` and are equal otherwise.
  std::uint32_t of(std::uint32_t payload, std::uint8_t identification) {
    if (identification == 0) return 0;
    const std::array<std::uint32_t, 8>& bits = factors(payload);
    std::uint32_t difference = 0;
    for (unsigned bit = 0; bit < bits.size(); ++bit) {
      if ((identification >> bit & 1) != 0) difference ^= bits[bit];
    }
    return difference;
  }
  // Changes the ICRC at the end of that payload from one identification to the other.
  void apply(std::uint8_t* payload, std::uint32_t length, std::uint8_t from, std::uint8_t to) {
    std::uint8_t* const icrc = payload + length - kIcrc;
    store_le32(icrc, load_le32(icrc) ^ of(length, from ^ to));
  }

 private:
  static constexpr std::uint32_t kIcrc = 4;
  // Bytes from the identification to the payload: the rest of the IPv4 header, and the UDP header.
  static constexpr std::uint32_t kBetween = 14 + 8;
  struct Factors {
    std::uint32_t payload = 0;
    std::array<std::uint32_t, 8> bits{};
  };

  const std::array<std::uint32_t, 8>& factors(std::uint32_t payload) {
    if (last_[0].payload != payload) {
      std::swap(last_[0], last_[1]);
      if (last_[0].payload != payload) fill(payload);
    }
    return last_[0].bits;
  }
  void fill(std::uint32_t payload) {
    last_[0].payload = payload;
    const std::uint32_t power =
        Crc32Math::x_to(8 * (1 + std::uint64_t{kBetween} + payload - kIcrc));
    for (unsigned bit = 0; bit < last_[0].bits.size(); ++bit) {
      last_[0].bits[bit] = Crc32Math::multiply(1u << bit, power);
    }
  }

  std::array<Factors, 2> last_;
};

}  // namespace urnic::port
