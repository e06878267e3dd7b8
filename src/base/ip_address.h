// Addresses: IP (version 4 or 6), prefixes, IP with port, Ethernet. Small values, comparable and
// hashable; parsing is strict, and output is in canonical form.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace urnic {

class IpAddress {
 public:
  // 0.0.0.0
  constexpr IpAddress() = default;
  // Example: 0x0a000001 is 10.0.0.1.
  static constexpr IpAddress v4(std::uint32_t value) {
    IpAddress a;
    for (std::size_t i = 0; i < 4; ++i) {
      a.bytes_[i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
    }
    return a;
  }
  static constexpr IpAddress v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    return v4(std::uint32_t{a} << 24 | std::uint32_t{b} << 16 | std::uint32_t{c} << 8 | d);
  }
  static constexpr IpAddress v6(const std::array<std::uint8_t, 16>& bytes) {
    IpAddress a;
    a.version_and_zone_ = kV6;
    a.bytes_ = bytes;
    return a;
  }
  // From the bytes on the wire. `bytes` must have the length 4 or 16.
  static constexpr IpAddress from_bytes(ByteView bytes) {
    IpAddress a;
    a.version_and_zone_ = bytes.size() == 16 ? kV6 : 0;
    for (std::size_t i = 0; i < a.size(); ++i) a.bytes_[i] = bytes[i];
    return a;
  }
  static constexpr IpAddress any_v4() { return {}; }
  static constexpr IpAddress any_v6() { return v6({}); }
  static constexpr IpAddress broadcast_v4() { return v4(0xffffffffu); }

  // Parses "10.0.0.1" (four decimal numbers without leading zeros) or any form of RFC 4291, 2.2,
  // without zone and brackets.
  static std::optional<IpAddress> parse(std::string_view text);
  // The same; a link-local IPv6 address may have a zone as a number: "fe80::1%2".
  static std::optional<IpAddress> parse_zoned(std::string_view text);
  // Dotted, or in the form of RFC 5952, with the zone if there is one.
  std::string to_string() const;

  constexpr bool is_v4() const { return !is_v6(); }
  constexpr bool is_v6() const { return (version_and_zone_ & kV6) != 0; }
  // The bytes on the wire: 4 or 16. Valid while this object exists.
  constexpr ByteView bytes() const { return {bytes_.data(), size()}; }
  constexpr std::size_t size() const { return is_v6() ? 16 : 4; }
  constexpr unsigned bits() const { return is_v6() ? 128 : 32; }
  // IPv4 only.
  constexpr std::uint32_t v4_value() const {
    return std::uint32_t{bytes_[0]} << 24 | std::uint32_t{bytes_[1]} << 16 |
           std::uint32_t{bytes_[2]} << 8 | bytes_[3];
  }

  // The zone of a link-local IPv6 address (RFC 4007, fe80::/10): the interface number in this
  // machine's kernel, at most kMostZone; 0: unspecified. Addresses with different zones are
  // different. Prefixes have no zone, and bytes() (the wire format) does not include it.
  static constexpr std::uint32_t kMostZone = 0x7fffffff;
  constexpr std::uint32_t zone() const { return version_and_zone_ & kMostZone; }
  // An address that cannot have a zone is returned unchanged.
  constexpr IpAddress with_zone(std::uint32_t zone) const {
    IpAddress a = *this;
    if (is_v6() && is_link_local()) a.version_and_zone_ = kV6 | (zone & kMostZone);
    return a;
  }
  constexpr IpAddress without_zone() const { return with_zone(0); }

  constexpr bool is_any() const { return *this == any_v4() || *this == any_v6(); }
  // 127.0.0.0/8, ::1.
  constexpr bool is_loopback() const {
    if (!is_v6()) return bytes_[0] == 127;
    for (std::size_t i = 0; i < 15; ++i) {
      if (bytes_[i] != 0) return false;
    }
    return bytes_[15] == 1;
  }
  // 224.0.0.0/4, ff00::/8.
  constexpr bool is_multicast() const {
    return is_v6() ? bytes_[0] == 0xff : (bytes_[0] & 0xf0) == 0xe0;
  }
  // 169.254.0.0/16, fe80::/10.
  constexpr bool is_link_local() const {
    return is_v6() ? bytes_[0] == 0xfe && (bytes_[1] & 0xc0) == 0x80
                   : bytes_[0] == 169 && bytes_[1] == 254;
  }
  constexpr bool is_broadcast() const { return *this == broadcast_v4(); }
  // ::ffff:a.b.c.d.
  constexpr bool is_v4_mapped() const {
    if (!is_v6() || bytes_[10] != 0xff || bytes_[11] != 0xff) return false;
    for (std::size_t i = 0; i < 10; ++i) {
      if (bytes_[i] != 0) return false;
    }
    return true;
  }
  // The IPv4 address inside a mapped one; any other address unchanged.
  constexpr IpAddress unmapped() const {
    return is_v4_mapped() ? v4(bytes_[12], bytes_[13], bytes_[14], bytes_[15]) : *this;
  }
  // The first `prefix` bits, the rest zero, without a zone; prefix <= bits().
  constexpr IpAddress masked(unsigned prefix) const {
    IpAddress a = *this;
    a.version_and_zone_ &= kV6;
    for (std::size_t i = 0; i < 16; ++i) {
      const unsigned from = static_cast<unsigned>(8 * i);
      if (prefix <= from) {
        a.bytes_[i] = 0;
      } else if (prefix < from + 8) {
        a.bytes_[i] = static_cast<std::uint8_t>(a.bytes_[i] & (0xff00u >> (prefix - from)));
      }
    }
    return a;
  }

  // All IPv4 addresses sort before all IPv6 addresses.
  constexpr auto operator<=>(const IpAddress&) const = default;

 private:
  static constexpr std::uint32_t kV6 = 0x80000000;

  std::uint32_t version_and_zone_ = 0;    // kV6 | zone, or 0
  std::array<std::uint8_t, 16> bytes_{};  // an IPv4 address uses the first four, the rest are zero
};

// An address and the length of its network prefix in bits. The address is kept as given, so
// "10.1.2.3/8" can also describe an interface's own address.
struct IpPrefix {
  IpAddress address;
  std::uint8_t length = 0;  // 0..address.bits()

  // Parses "address/length"; without "/length" the prefix is the single address.
  static std::optional<IpPrefix> parse(std::string_view text);
  std::string to_string() const;

  constexpr IpAddress network() const { return address.masked(length); }
  constexpr bool contains(const IpAddress& a) const {
    return a.is_v6() == address.is_v6() && a.masked(length) == network();
  }
  constexpr auto operator<=>(const IpPrefix&) const = default;
};

struct SocketAddress {
  IpAddress ip;
  std::uint16_t port = 0;

  // Parses "10.0.0.1:80" or "[::1]:80"; the port is required.
  static std::optional<SocketAddress> parse(std::string_view text);
  // The same with a zone, as in IpAddress::parse_zoned(): "[fe80::1%2]:80".
  static std::optional<SocketAddress> parse_zoned(std::string_view text);
  std::string to_string() const;
  constexpr auto operator<=>(const SocketAddress&) const = default;
};

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};

  static constexpr MacAddress broadcast() { return {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}; }
  static constexpr MacAddress from_bytes(const std::uint8_t* p) {
    MacAddress m;
    for (std::size_t i = 0; i < 6; ++i) m.bytes[i] = p[i];
    return m;
  }
  // Parses six pairs of hexadecimal digits, all separated by ':' or all by '-'.
  static std::optional<MacAddress> parse(std::string_view text);
  // "02:00:0a:00:00:01"
  std::string to_string() const;

  constexpr bool is_zero() const { return *this == MacAddress{}; }
  constexpr bool is_broadcast() const { return *this == broadcast(); }
  constexpr bool is_multicast() const { return (bytes[0] & 1) != 0; }  // includes broadcast
  constexpr auto operator<=>(const MacAddress&) const = default;
};

}  // namespace urnic

// For tables with values from the configuration. Demultiplexing by values from the wire uses a
// keyed hash (siphash.h).
template <>
struct std::hash<urnic::IpAddress> {
  std::size_t operator()(const urnic::IpAddress& a) const noexcept {
    const auto b = a.bytes();
    return std::hash<std::string_view>{}({reinterpret_cast<const char*>(b.data()), b.size()}) ^
           a.zone();
  }
};
template <>
struct std::hash<urnic::SocketAddress> {
  std::size_t operator()(const urnic::SocketAddress& a) const noexcept {
    return std::hash<urnic::IpAddress>{}(a.ip) * 31 + a.port;
  }
};
template <>
struct std::hash<urnic::MacAddress> {
  std::size_t operator()(const urnic::MacAddress& m) const noexcept {
    return std::hash<std::string_view>{}(
        {reinterpret_cast<const char*>(m.bytes.data()), m.bytes.size()});
  }
};
