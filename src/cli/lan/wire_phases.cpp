#include "cli/lan/wire_phases.h"

#include "cli/units.h"

namespace urnic::cli {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

}  // namespace

Outcome<std::vector<WirePhase>, std::string> parse_phases(std::string_view text) {
  std::vector<WirePhase> out;
  bool open_end = false;
  while (!trimmed(text).empty()) {
    const std::size_t end = text.find(';');
    const std::string_view item = trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (item.empty()) continue;
    if (open_end) {
      return fail("phase '" + out.back().text + "' never ends; add @SIZE, @TIME or @signal");
    }
    WirePhase phase;
    phase.text = item;
    const std::size_t at = item.rfind('@');
    const std::string_view plan = trimmed(item.substr(0, at));
    if (plan != "clean") {
      auto parsed = fault::FaultPlan::parse(plan);
      if (!parsed.ok()) return fail("phase '" + phase.text + "': " + parsed.error());
      phase.plan = *parsed;
    }
    if (at == std::string_view::npos) {
      open_end = true;
    } else {
      const std::string_view until = trimmed(item.substr(at + 1));
      if (until == "signal") {
        phase.until_signal = true;
        out.push_back(std::move(phase));
        continue;
      }
      const bool is_time = !until.empty() && (until.back() == 's' || until.back() == 'n' ||
                                              until.back() == 'm' || until.back() == 'h');
      const auto limit = is_time ? parse_duration_ms(until) : parse_size(until);
      if (!limit || *limit == 0) {
        return fail("phase '" + phase.text + "': '" + std::string(until) +
                    "' is not a size like 64M, a time like 5s, or signal");
      }
      (is_time ? phase.milliseconds : phase.bytes) = *limit;
    }
    out.push_back(std::move(phase));
  }
  if (out.empty()) return fail(std::string("no phases given"));
  return out;
}

}  // namespace urnic::cli
