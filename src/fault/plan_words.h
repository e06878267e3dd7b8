// The words of fault plans: numbers, probabilities, times, and items "KEY=VALUE" between commas.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace urnic::fault {

struct Unit {
  std::string_view name;
  double factor;
};
// If one name is a suffix of another, the longer one comes first.
inline constexpr Unit kTimes[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

inline std::optional<double> to_number(std::string_view s) {
  double v = 0;
  const auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (ec != std::errc() || end != s.data() + s.size() || !std::isfinite(v)) return std::nullopt;
  return v;
}

inline std::optional<double> to_probability(std::string_view s) {
  const auto v = to_number(s);
  return v && *v >= 0 && *v <= 1 ? v : std::nullopt;
}

template <std::size_t N>
std::optional<double> with_unit(std::string_view s, const Unit (&units)[N]) {
  for (const Unit& u : units) {
    if (!s.ends_with(u.name)) continue;
    const auto v = to_number(s.substr(0, s.size() - u.name.size()));
    if (v) return *v * u.factor;
  }
  return std::nullopt;
}

// At most one hour.
inline std::optional<Duration> to_time(std::string_view s) {
  const auto v = with_unit(s, kTimes);
  if (!v || *v < 0 || *v > 3600e9) return std::nullopt;
  return Duration::ns(std::llround(*v));
}

inline std::optional<std::uint64_t> to_whole(std::string_view s) {
  std::uint64_t v = 0;
  const auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (s.empty() || ec != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return v;
}

inline std::string number(double v) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, v).ptr;
  return {text, end};
}

inline std::string time_text(Duration d) {
  const std::int64_t ns = d.count_ns();
  if (ns % 1000000000 == 0) return std::to_string(ns / 1000000000) + "s";
  if (ns % 1000000 == 0) return std::to_string(ns / 1000000) + "ms";
  if (ns % 1000 == 0) return std::to_string(ns / 1000) + "us";
  return std::to_string(ns) + "ns";
}

inline std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// Takes the text up to `separator`, without blanks around it, off the front of `rest`.
inline std::string_view take_item(std::string_view& rest, char separator) {
  const std::string_view raw = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(rest.size(), raw.size() + 1));
  return trimmed(raw);
}

// Calls take(ITEM, KEY, VALUE) for each item until it returns an error. Returns that error, or that
// a key of `plan` is there twice; empty: none.
template <class F>
std::string for_each_item(std::string_view plan, std::string_view text, F&& take) {
  std::vector<std::string_view> seen;
  while (!text.empty()) {
    const std::string_view item = take_item(text, ',');
    if (item.empty()) continue;
    const auto eq = item.find('=');
    const std::string_view key = trimmed(item.substr(0, eq));
    const std::string_view value = eq == item.npos ? "" : trimmed(item.substr(eq + 1));
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      return std::string(plan) + ": '" + std::string(key) + "' is given twice";
    }
    seen.push_back(key);
    if (std::string wrong = take(item, key, value); !wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace urnic::fault
