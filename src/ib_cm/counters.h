// Counters of connection management. Plain numbers; monotonic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace urnic::ib_cm {

// Why a MAD was dropped, and nothing else was done.
enum class Drop : std::uint8_t {
  Length,  // no MAD, or none of ours: in the order of the checks
  BaseVersion,
  Class,
  ClassVersion,
  Method,
  Attribute,
  Unknown,     // names no connection of ours
  Stranger,    // names one, and comes from another than its peer
  Unexpected,  // the state of its connection has no use for it
  Backlog,     // as many requests wait as may
  Full,        // no room for one more connection
};
inline constexpr std::size_t kDrops = 11;
std::string_view name(Drop);

struct Counters {
  std::uint64_t received = 0, sent = 0;
  std::uint64_t repeated = 0;                // sent again because time was up
  std::uint64_t answered = 0;                // sent again because the peer asked again
  std::uint64_t unsent = 0;                  // lost here: the owner took nothing for too long
  std::uint64_t stale = 0;                   // REQs and REPs that named what another connection had
  std::uint64_t denied = 0, over_limit = 0;  // REQs refused at the gate of their listener
  std::array<std::uint64_t, kDrops> drops{};

  void count(Drop d) { ++drops[static_cast<std::size_t>(d)]; }
  std::uint64_t of(Drop d) const { return drops[static_cast<std::size_t>(d)]; }
};

}  // namespace urnic::ib_cm
