#include "cli/units.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace urnic::cli {

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t v = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc()) return std::nullopt;
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  unsigned shift = 0;
  if (!unit.empty()) {
    switch (unit.front()) {
      case 'k':
      case 'K':
        shift = 10;
        break;
      case 'm':
      case 'M':
        shift = 20;
        break;
      case 'g':
      case 'G':
        shift = 30;
        break;
      case 't':
      case 'T':
        shift = 40;
        break;
      default:
        return std::nullopt;
    }
    unit.remove_prefix(1);
    if (!unit.empty() && unit != "iB" && unit != "B") return std::nullopt;
  }
  if (v > (UINT64_MAX >> shift)) return std::nullopt;
  return v << shift;
}

std::optional<std::uint64_t> parse_duration_ms(std::string_view text) {
  double v = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc() || !std::isfinite(v) || v < 0) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit == "ms") {
  } else if (unit == "s" || unit.empty()) {
    v *= 1000;
  } else if (unit == "m" || unit == "min") {
    v *= 60'000;
  } else if (unit == "h") {
    v *= 3'600'000;
  } else {
    return std::nullopt;
  }
  if (v > 1e13) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(v));
}

std::string format_fixed(double value, int decimals) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", decimals, value);
  return buffer;
}

std::string format_size(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  const int decimals = unit == 0 || bytes >= 100 ? 0 : bytes >= 10 ? 1 : 2;
  return format_fixed(bytes, decimals) + " " + kUnits[unit];
}

std::string format_rate(double bytes_per_second) {
  return format_size(bytes_per_second) + "/s";
}

std::string format_seconds(double seconds) {
  if (seconds < 60) return format_fixed(seconds, seconds < 10 ? 2 : 1) + " s";
  const auto whole = static_cast<std::uint64_t>(seconds);
  char buffer[64];
  if (whole < 3600) {
    std::snprintf(buffer, sizeof buffer, "%u min %02u s", static_cast<unsigned>(whole / 60),
                  static_cast<unsigned>(whole % 60));
  } else {
    std::snprintf(buffer, sizeof buffer, "%u h %02u min", static_cast<unsigned>(whole / 3600),
                  static_cast<unsigned>(whole / 60 % 60));
  }
  return buffer;
}

std::string format_count(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ' ');
  return digits;
}

std::string format_share(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (part < whole && percent > 99.99) percent = 99.99;
  if (part > 0 && percent < 0.01) percent = 0.01;
  return format_fixed(percent, part == whole || part == 0 ? 0 : 2) + " %";
}

}  // namespace urnic::cli
