// The counters that tools find in ports/1/counters and ports/1/hw_counters, and which counters of
// an engine each of them is (docs/counters.md). No value is made up: what urnic has no event for is
// 0.
#pragma once

#include <cstdint>
#include <span>

#include "urnic/stats.h"

namespace urnic::counters {

// Which devices show a counter.
enum class On : std::uint8_t {
  Each,
  Roce,
  Iwarp,
  OwnTcp,  // iWARP, but not over the kernel's TCP, whose segments nobody counts
};

struct PortCounter {
  const char* path;  // below ports/1/
  On on;
  // `s.ended` has the totals of all connections. Null: always 0.
  std::uint64_t (*value)(const EngineStats& s);
};

std::span<const PortCounter> port_counters();
// `port` is the setting.
bool is_shown(const PortCounter&, bool roce, const char* port);

}  // namespace urnic::counters
