// Parses and formats sizes, times and rates for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace urnic::cli {

// Parses "65536", "64K", "1M", "2GiB" (powers of 1024). nullopt if invalid.
std::optional<std::uint64_t> parse_size(std::string_view text);
// Parses "250ms", "5s", "2m", "1.5" (seconds without a unit) into milliseconds. nullopt if invalid.
std::optional<std::uint64_t> parse_duration_ms(std::string_view text);

// "1.50 GiB", "312 B"
std::string format_size(double bytes);
// "237 MiB/s", "1.9 GiB/s"
std::string format_rate(double bytes_per_second);
// "0.52 s", "3 min 05 s"
std::string format_seconds(double seconds);
// 1234567 -> "1 234 567"
std::string format_count(std::uint64_t n);
// "99.97 %"; "-" if the whole is 0. Never rounds up to 100 or down to 0.
std::string format_share(std::uint64_t part, std::uint64_t whole);
std::string format_fixed(double value, int decimals);

}  // namespace urnic::cli
