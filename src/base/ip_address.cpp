#include "base/ip_address.h"

#include <charconv>

namespace urnic {
namespace {

// Parses a decimal number without sign or leading zeros, at most `max`.
std::optional<unsigned> parse_decimal(std::string_view text, unsigned max) {
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  unsigned value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  if (value > max) return std::nullopt;
  return value;
}

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

// Parses one to four hexadecimal digits.
std::optional<unsigned> parse_group(std::string_view text) {
  if (text.empty() || text.size() > 4) return std::nullopt;
  unsigned value = 0;
  for (const char c : text) {
    const auto digit = hex_digit(c);
    if (!digit) return std::nullopt;
    value = value << 4 | *digit;
  }
  return value;
}

std::optional<IpAddress> parse_v4(std::string_view text) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const std::size_t dot = i < 3 ? text.find('.') : text.size();
    if (dot == std::string_view::npos) return std::nullopt;
    const auto part = parse_decimal(text.substr(0, dot), 255);
    if (!part) return std::nullopt;
    value = value << 8 | *part;
    text.remove_prefix(i < 3 ? dot + 1 : dot);
  }
  return IpAddress::v4(value);
}

// Parses groups separated by single colons into `out`; a dotted IPv4 address may be the last two.
// Returns the number of groups, or nothing if the text is malformed or has more than eight.
std::optional<std::size_t> parse_groups(std::string_view text, bool dotted_tail,
                                        std::array<unsigned, 8>& out) {
  if (text.empty()) return 0;
  std::size_t n = 0;
  for (;;) {
    const std::size_t colon = text.find(':');
    const std::string_view part = text.substr(0, colon);
    const bool last = colon == std::string_view::npos;
    if (last && dotted_tail && part.find('.') != std::string_view::npos) {
      const auto v4 = parse_v4(part);
      if (!v4 || n + 2 > out.size()) return std::nullopt;
      out[n++] = v4->v4_value() >> 16;
      out[n++] = v4->v4_value() & 0xffff;
      return n;
    }
    const auto group = parse_group(part);
    if (!group || n == out.size()) return std::nullopt;
    out[n++] = *group;
    if (last) return n;
    text.remove_prefix(colon + 1);
  }
}

std::optional<IpAddress> parse_v6(std::string_view text) {
  std::array<unsigned, 8> front{}, back{};
  const std::size_t gap = text.find("::");
  const bool has_gap = gap != std::string_view::npos;
  const auto n_front = parse_groups(text.substr(0, gap), !has_gap, front);
  const auto n_back = has_gap ? parse_groups(text.substr(gap + 2), true, back) : 0;
  if (!n_front || !n_back) return std::nullopt;
  // "::" represents at least one group.
  const std::size_t written = *n_front + *n_back;
  if (has_gap ? written > 7 : written != 8) return std::nullopt;

  std::array<unsigned, 8> groups = front;
  for (std::size_t i = 0; i < *n_back; ++i) groups[8 - *n_back + i] = back[i];
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[2 * i] = static_cast<std::uint8_t>(groups[i] >> 8);
    bytes[2 * i + 1] = static_cast<std::uint8_t>(groups[i]);
  }
  return IpAddress::v6(bytes);
}

void append_number(std::string& out, unsigned value, int base) {
  char buffer[8];
  const auto r = std::to_chars(buffer, buffer + sizeof buffer, value, base);
  out.append(buffer, r.ptr);
}

void append_dotted(std::string& out, const std::uint8_t* p) {
  for (int i = 0; i < 4; ++i) {
    if (i != 0) out += '.';
    append_number(out, p[i], 10);
  }
}

std::string format_v6(const IpAddress& a) {
  const ByteView b = a.bytes();
  std::string out;
  // RFC 5952, 5: the mixed notation for addresses known to contain an IPv4 address.
  if (a.is_v4_mapped()) {
    out = "::ffff:";
    append_dotted(out, b.data() + 12);
    return out;
  }
  // RFC 5952, 4.2: the longest run of two or more zero groups; among equals the first.
  std::size_t run_at = 8, run_length = 1;
  for (std::size_t i = 0; i < 8;) {
    std::size_t j = i;
    while (j < 8 && b[2 * j] == 0 && b[2 * j + 1] == 0) ++j;
    if (j - i > run_length) {
      run_at = i;
      run_length = j - i;
    }
    i = j + 1;
  }
  for (std::size_t i = 0; i < 8;) {
    if (i == run_at) {
      out += "::";
      i += run_length;
      continue;
    }
    if (!out.empty() && out.back() != ':') out += ':';
    append_number(out, load_be16(b.data() + 2 * i), 16);
    ++i;
  }
  return out;
}

std::optional<SocketAddress> parse_with_port(
    std::string_view text, std::optional<IpAddress> (*parse_ip)(std::string_view)) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto ip = parse_ip(host);
  const auto port = parse_decimal(text.substr(colon + 1), 65535);
  // Brackets are required for IPv6 and forbidden for IPv4: "::1:80" would be ambiguous.
  if (!ip || !port || ip->is_v6() != bracketed) return std::nullopt;
  return SocketAddress{*ip, static_cast<std::uint16_t>(*port)};
}

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  return text.find(':') == std::string_view::npos ? parse_v4(text) : parse_v6(text);
}

std::optional<IpAddress> IpAddress::parse_zoned(std::string_view text) {
  const std::size_t percent = text.find('%');
  const auto address = parse(text.substr(0, percent));
  if (percent == std::string_view::npos || !address) return address;
  const std::string_view digits = text.substr(percent + 1);
  const char* const end = digits.data() + digits.size();
  std::uint32_t zone = 0;
  const auto [read, wrong] = std::from_chars(digits.data(), end, zone);
  if (wrong != std::errc() || read != end || digits[0] == '0' || zone > kMostZone) {
    return std::nullopt;
  }
  if (!address->is_v6() || !address->is_link_local()) return std::nullopt;
  return address->with_zone(zone);
}

std::string IpAddress::to_string() const {
  std::string out;
  if (is_v6()) {
    out = format_v6(*this);
  } else {
    append_dotted(out, bytes_.data());
  }
  if (zone() != 0) out += '%' + std::to_string(zone());
  return out;
}

std::optional<IpPrefix> IpPrefix::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = IpAddress::parse(text.substr(0, slash));
  if (!address) return std::nullopt;
  unsigned length = address->bits();
  if (slash != std::string_view::npos) {
    const auto given = parse_decimal(text.substr(slash + 1), address->bits());
    if (!given) return std::nullopt;
    length = *given;
  }
  return IpPrefix{*address, static_cast<std::uint8_t>(length)};
}

std::string IpPrefix::to_string() const {
  std::string out = address.to_string() + '/';
  append_number(out, length, 10);
  return out;
}

std::optional<SocketAddress> SocketAddress::parse(std::string_view text) {
  return parse_with_port(text, IpAddress::parse);
}

std::optional<SocketAddress> SocketAddress::parse_zoned(std::string_view text) {
  return parse_with_port(text, IpAddress::parse_zoned);
}

std::string SocketAddress::to_string() const {
  std::string out = ip.is_v6() ? '[' + ip.to_string() + ']' : ip.to_string();
  out += ':';
  append_number(out, port, 10);
  return out;
}

std::optional<MacAddress> MacAddress::parse(std::string_view text) {
  if (text.size() != 17) return std::nullopt;
  const char separator = text[2];
  if (separator != ':' && separator != '-') return std::nullopt;
  MacAddress m;
  for (std::size_t i = 0; i < 6; ++i) {
    const auto high = hex_digit(text[3 * i]);
    const auto low = hex_digit(text[3 * i + 1]);
    if (!high || !low || (i < 5 && text[3 * i + 2] != separator)) return std::nullopt;
    m.bytes[i] = static_cast<std::uint8_t>(*high << 4 | *low);
  }
  return m;
}

std::string MacAddress::to_string() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::uint8_t b : bytes) {
    if (!out.empty()) out += ':';
    out += kDigits[b >> 4];
    out += kDigits[b & 15];
  }
  return out;
}

}  // namespace urnic
