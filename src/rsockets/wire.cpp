#include "rsockets/wire.h"

namespace urnic::rsockets {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kBigEndian = 1, kHasIomap = 2;  // flags
constexpr std::uint8_t kScaled = 0x80;
// Offsets of fields.
constexpr std::size_t kFlags = 1, kCredits = 2, kIomap = 7, kTargetsAt = 8, kBufferAt = 24;

template <class T>
void store(T value, Order order, std::uint8_t* out) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    const std::size_t at = order == Order::little ? i : sizeof(T) - 1 - i;
    out[at] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

template <class T>
T load(const std::uint8_t* in, Order order) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    const std::size_t at = order == Order::little ? sizeof(T) - 1 - i : i;
    value = static_cast<T>(value << 8 | in[at]);
  }
  return value;
}

}  // namespace

void put_message(std::uint32_t m, Order order, std::uint8_t* out) {
  store(m, order, out);
}

std::uint32_t get_message(const std::uint8_t* in, Order order) {
  return load<std::uint32_t>(in, order);
}

void put(const Entry& e, Order order, std::uint8_t* out) {
  store(e.address, order, out);
  store(e.key, order, out + 8);
  store(e.length, order, out + 12);
}

Entry get_entry(const std::uint8_t* in, Order order) {
  return {load<std::uint64_t>(in, order), load<std::uint32_t>(in + 8, order),
          load<std::uint32_t>(in + 12, order)};
}

void put(const Mapping& m, Order order, std::uint8_t* out) {
  store(m.offset, order, out);
  put(m.memory, order, out + 8);
}

Mapping get_mapping(const std::uint8_t* in, Order order) {
  return {load<std::uint64_t>(in, order), get_entry(in + 8, order)};
}

std::array<std::uint8_t, kConnectionBytes> encode(const ConnectionData& d) {
  std::array<std::uint8_t, kConnectionBytes> out{};
  out[0] = kVersion;
  out[kFlags] = kHasIomap | (d.order == Order::big ? kBigEndian : 0);
  store(d.credits, Order::big, &out[kCredits]);
  out[kIomap] = to_scale(d.mappings);
  put(d.targets, Order::big, &out[kTargetsAt]);
  put(d.buffer, Order::big, &out[kBufferAt]);
  return out;
}

std::optional<ConnectionData> decode(std::span<const std::uint8_t> in) {
  if (in.size() < kConnectionBytes || in[0] != kVersion) return std::nullopt;
  ConnectionData d;
  d.order = (in[kFlags] & kBigEndian) != 0 ? Order::big : Order::little;
  d.credits = load<std::uint16_t>(&in[kCredits], Order::big);
  if ((in[kFlags] & kHasIomap) != 0) d.mappings = from_scale(in[kIomap]);
  d.targets = get_entry(&in[kTargetsAt], Order::big);
  d.buffer = get_entry(&in[kBufferAt], Order::big);
  const bool usable = d.credits != 0 && d.targets.length != 0 && d.buffer.length != 0;
  return usable ? std::optional(d) : std::nullopt;
}

std::uint8_t to_scale(std::uint32_t n) {
  if (n <= kScaled) return static_cast<std::uint8_t>(n);
  const std::uint32_t scaled = n >> 8;
  return static_cast<std::uint8_t>(kScaled | (scaled < kScaled ? scaled : kScaled - 1));
}

std::uint32_t from_scale(std::uint8_t n) {
  return n <= kScaled ? n : static_cast<std::uint32_t>(n & ~kScaled) << 8;
}

}  // namespace urnic::rsockets
