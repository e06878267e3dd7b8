// The virtio-net header before every frame on a TAP device. It describes work that the kernel
// leaves to us, or that we leave to the kernel. 12 bytes, little-endian; the last field (buffer
// count) is unused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace urnic::port {

struct VnetHeader {
  static constexpr std::size_t kSize = 12;
  static constexpr std::uint8_t kNeedsChecksum = 1, kDataValid = 2;
  static constexpr std::uint8_t kGsoNone = 0, kGsoTcp4 = 1, kGsoTcp6 = 4, kGsoEcn = 0x80;

  std::uint8_t flags = 0;
  std::uint8_t gso_type = kGsoNone;
  std::uint16_t header_length = 0;
  std::uint16_t gso_size = 0;
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;

  static VnetHeader load(const std::uint8_t* p) {
    return {p[0], p[1], load_le16(p + 2), load_le16(p + 4), load_le16(p + 6), load_le16(p + 8)};
  }
  void store(std::uint8_t* p) const {
    p[0] = flags;
    p[1] = gso_type;
    store_le16(p + 2, header_length);
    store_le16(p + 4, gso_size);
    store_le16(p + 6, checksum_start);
    store_le16(p + 8, checksum_offset);
    store_le16(p + 10, 0);
  }
  std::uint8_t gso_kind() const { return gso_type & static_cast<std::uint8_t>(~kGsoEcn); }
};

}  // namespace urnic::port
