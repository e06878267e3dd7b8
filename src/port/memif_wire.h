// The memif protocol, version 2.0, as used by DPDK net_memif and VPP: control messages on a
// SEQPACKET unix socket, rings and buffers in shared memory. All fields are in little-endian host
// order, and are read and written by offset here.
//
// Terms: the *server* (called master by memif) listens; the *client* (slave) connects and owns the
// shared memory. S2M rings carry frames from client to server, M2S rings from server to client.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace urnic::port::memif {

inline constexpr std::uint32_t kCookie = 0x3E31F20;
inline constexpr std::uint16_t kVersion = 2 << 8;
inline constexpr std::size_t kMessageSize = 128;
inline constexpr std::size_t kNameSize = 32;
inline constexpr std::size_t kSecretSize = 24;
inline constexpr std::size_t kReasonSize = 96;
// bound: frames in a memif ring; limit: `rsize=` (a power of two), up to 2^14; beyond: the sender
// waits for room and is woken; test: MemifPort.AFullRingGivesLessAndRecovers,
// MemifPort.TheReceiverWakesASenderWithoutRoom
inline constexpr unsigned kMaxLog2Ring = 14;
inline constexpr unsigned kMaxQueues = 255;
// bound: memory regions that a memif client shares with its server; beyond: the handshake is
// refused with a reason; test: MemifHostile.RegionsOfAClientAreLimited
inline constexpr unsigned kMaxRegions = 16;

enum class MessageType : std::uint16_t {
  kNone = 0,
  kAck = 1,
  kHello = 2,
  kInit = 3,
  kAddRegion = 4,
  kAddRing = 5,
  kConnect = 6,
  kConnected = 7,
  kDisconnect = 8,
};

// One control message with its descriptor (-1: none; not owned).
struct Message {
  std::array<std::uint8_t, kMessageSize> bytes{};
  int fd = -1;

  MessageType type() const { return static_cast<MessageType>(load_le16(bytes.data())); }
  std::uint8_t u8(std::size_t at) const { return bytes[at]; }
  std::uint16_t u16(std::size_t at) const { return load_le16(&bytes[at]); }
  std::uint32_t u32(std::size_t at) const { return load_le32(&bytes[at]); }
  std::uint64_t u64(std::size_t at) const {
    return u32(at) | (static_cast<std::uint64_t>(u32(at + 4)) << 32);
  }
  // A text field; ends at the first zero byte or at its size.
  std::string text(std::size_t at, std::size_t size) const {
    const auto* p = reinterpret_cast<const char*>(&bytes[at]);
    return std::string(p, strnlen(p, size));
  }

  void set_type(MessageType t) { store_le16(bytes.data(), static_cast<std::uint16_t>(t)); }
  void set_u8(std::size_t at, std::uint8_t v) { bytes[at] = v; }
  void set_u16(std::size_t at, std::uint16_t v) { store_le16(&bytes[at], v); }
  void set_u32(std::size_t at, std::uint32_t v) { store_le32(&bytes[at], v); }
  void set_u64(std::size_t at, std::uint64_t v) {
    set_u32(at, static_cast<std::uint32_t>(v));
    set_u32(at + 4, static_cast<std::uint32_t>(v >> 32));
  }
  void set_text(std::size_t at, std::size_t size, std::string_view s) {
    std::memcpy(&bytes[at], s.data(), s.size() < size ? s.size() : size - 1);
  }
};

// Offsets of the fields, after the 16-bit type; the layout has no padding.
namespace hello {
inline constexpr std::size_t kName = 2, kMinVersion = 34, kMaxVersion = 36, kMaxRegion = 38,
                             kMaxM2s = 40, kMaxS2m = 42, kMaxLog2 = 44;
}
namespace init {
inline constexpr std::size_t kVersionAt = 2, kId = 4, kMode = 8, kSecret = 9, kName = 33;
inline constexpr std::uint8_t kModeEthernet = 0;
}  // namespace init
namespace add_region {
inline constexpr std::size_t kIndex = 2, kSize = 4;
}
namespace add_ring {
inline constexpr std::size_t kFlags = 2, kIndex = 4, kRegion = 6, kOffset = 8, kLog2 = 12,
                             kPrivateHeader = 13;
inline constexpr std::uint16_t kFlagS2m = 1;
}  // namespace add_ring
namespace connect {
inline constexpr std::size_t kName = 2;
}
namespace disconnect {
inline constexpr std::size_t kCode = 2, kReason = 6;
}

// A ring: a header of two cache lines, then the descriptors.
namespace ring {
inline constexpr std::size_t kCookieAt = 0, kFlags = 4, kHead = 6, kTail = 64, kDescriptors = 128;
inline constexpr std::size_t kDescriptorSize = 16;
inline constexpr std::uint16_t kFlagMaskInterrupt = 1;

constexpr std::size_t bytes(unsigned log2) {
  return kDescriptors + (kDescriptorSize << log2);
}

inline std::atomic_ref<std::uint16_t> u16(std::uint8_t* ring, std::size_t at) {
  return std::atomic_ref<std::uint16_t>(*reinterpret_cast<std::uint16_t*>(ring + at));
}
}  // namespace ring

// A descriptor, copied out of shared memory with exactly one read per half. The peer may change it
// at any time, so the checked copy must be the one that is used (E-19).
struct Descriptor {
  static constexpr std::uint16_t kFlagNext = 1;  // the frame continues in the next descriptor

  std::uint16_t flags = 0;
  std::uint16_t region = 0;
  std::uint32_t length = 0;
  std::uint32_t offset = 0;

  static std::uint64_t* words(std::uint8_t* ring, std::size_t slot) {
    return reinterpret_cast<std::uint64_t*>(ring + ring::kDescriptors +
                                            slot * ring::kDescriptorSize);
  }
  static Descriptor load(std::uint8_t* ring, std::size_t slot) {
    std::uint64_t* w = words(ring, slot);
    const std::uint64_t a = std::atomic_ref(w[0]).load(std::memory_order_relaxed);
    const std::uint64_t b = std::atomic_ref(w[1]).load(std::memory_order_relaxed);
    return {static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(a >> 16),
            static_cast<std::uint32_t>(a >> 32), static_cast<std::uint32_t>(b)};
  }
  // Flags, region and length: the only fields that a sender may set in the receiver's descriptor.
  void store_first_half(std::uint8_t* ring, std::size_t slot) const {
    const std::uint64_t a = flags | (static_cast<std::uint64_t>(region) << 16) |
                            (static_cast<std::uint64_t>(length) << 32);
    std::atomic_ref(words(ring, slot)[0]).store(a, std::memory_order_relaxed);
  }
  void store(std::uint8_t* ring, std::size_t slot) const {
    store_first_half(ring, slot);
    std::atomic_ref(words(ring, slot)[1]).store(offset, std::memory_order_relaxed);
  }
};

}  // namespace urnic::port::memif
