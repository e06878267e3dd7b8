// The protocol between two rsockets, byte by byte: the private data of rdma_cm, the messages of 32
// bits, and the entries that one end writes into the other's memory.
//
// Private data is in network byte order. Messages and entries are in the byte order of the end
// whose memory they are written to; each end announces its own in its private data.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>

namespace urnic::rsockets {

enum class Op : std::uint8_t {
  data = 0,     // value: bytes, appended to the earlier ones in the receiver's buffer
  grant = 4,    // value: the limit of the peer's message numbers; a target entry may be new
  iomap = 6,    // value: the index of the new mapping in the receiver's table
  control = 7,  // value: a Control
};

enum class Control : std::uint32_t { disconnect = 0, keepalive = 1, shutdown = 2 };

constexpr std::uint32_t kValueMask = 0x1fff'ffff;

constexpr std::uint32_t message(Op op, std::uint32_t value) {
  return static_cast<std::uint32_t>(op) << 29 | (value & kValueMask);
}
constexpr std::uint32_t message(Control c) {
  return message(Op::control, static_cast<std::uint32_t>(c));
}
constexpr Op op_of(std::uint32_t m) {
  return static_cast<Op>(m >> 29);
}
constexpr std::uint32_t value_of(std::uint32_t m) {
  return m & kValueMask;
}

enum class Order : std::uint8_t { little, big };
constexpr Order kOwnOrder = std::endian::native == std::endian::big ? Order::big : Order::little;

// Memory of the peer.
struct Entry {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t length = 0;
  bool operator==(const Entry&) const = default;
};

// A buffer that its owner has mapped: the peer writes to it from `offset` on.
struct Mapping {
  std::uint64_t offset = 0;
  Entry memory;
  bool operator==(const Mapping&) const = default;
};

constexpr std::size_t kMessageBytes = 4, kEntryBytes = 16, kMappingBytes = 24;
constexpr std::size_t kConnectionBytes = 40;
constexpr std::uint32_t kTargets = 2;  // entries of the table of targets

void put_message(std::uint32_t, Order, std::uint8_t* out);
std::uint32_t get_message(const std::uint8_t* in, Order);
void put(const Entry&, Order, std::uint8_t* out);
Entry get_entry(const std::uint8_t* in, Order);
void put(const Mapping&, Order, std::uint8_t* out);
Mapping get_mapping(const std::uint8_t* in, Order);

struct ConnectionData {
  Order order = kOwnOrder;
  std::uint16_t credits = 0;   // data and iomap messages that may be outstanding
  std::uint32_t mappings = 0;  // entries of its iomap, which follows its targets
  Entry targets;               // where the peer announces buffers; length counts entries
  Entry buffer;                // the first target
  bool operator==(const ConnectionData&) const = default;
};

std::array<std::uint8_t, kConnectionBytes> encode(const ConnectionData&);
// Returns no value if it is another version, or contains unusable values. More bytes may follow.
std::optional<ConnectionData> decode(std::span<const std::uint8_t>);

// Encodes numbers of mappings in eight bits: exact up to 128, above it multiples of 256, rounded
// down.
std::uint8_t to_scale(std::uint32_t);
std::uint32_t from_scale(std::uint8_t);

}  // namespace urnic::rsockets
