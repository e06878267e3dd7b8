// Bytes on the wire: views, and big-endian loads and stores by offset. All multi-byte fields of
// Ethernet, IP, TCP, MPA, DDP and RDMAP are big-endian, except the CRC32C value, which is sent
// least significant byte first (RFC 5044, 4.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace urnic {

using ByteView = std::span<const std::uint8_t>;
using MutBytes = std::span<std::uint8_t>;

inline std::uint16_t load_be16(const std::uint8_t* p) {
  std::uint16_t v;
  std::memcpy(&v, p, 2);
  return __builtin_bswap16(v);
}
inline std::uint32_t load_be32(const std::uint8_t* p) {
  std::uint32_t v;
  std::memcpy(&v, p, 4);
  return __builtin_bswap32(v);
}
inline std::uint64_t load_be64(const std::uint8_t* p) {
  std::uint64_t v;
  std::memcpy(&v, p, 8);
  return __builtin_bswap64(v);
}
inline std::uint16_t load_le16(const std::uint8_t* p) {
  std::uint16_t v;
  std::memcpy(&v, p, 2);
  return v;
}
inline std::uint32_t load_le32(const std::uint8_t* p) {
  std::uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}
inline std::uint64_t load_le64(const std::uint8_t* p) {
  std::uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}
inline void store_be16(std::uint8_t* p, std::uint16_t v) {
  v = __builtin_bswap16(v);
  std::memcpy(p, &v, 2);
}
inline void store_be32(std::uint8_t* p, std::uint32_t v) {
  v = __builtin_bswap32(v);
  std::memcpy(p, &v, 4);
}
inline void store_be64(std::uint8_t* p, std::uint64_t v) {
  v = __builtin_bswap64(v);
  std::memcpy(p, &v, 8);
}
inline void store_le16(std::uint8_t* p, std::uint16_t v) {
  std::memcpy(p, &v, 2);
}
inline void store_le32(std::uint8_t* p, std::uint32_t v) {
  std::memcpy(p, &v, 4);
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "urnic is built for little-endian hosts");

}  // namespace urnic
