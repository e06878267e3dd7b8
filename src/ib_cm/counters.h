// Counters of connection management. Plain numbers; monotonic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace urnic::ib_cm {

// Why a MAD was dropped without any other effect.
enum class Drop : std::uint8_t {
  Length,  // not a MAD, or not of connection management: in the order of the checks
  BaseVersion,
  Class,
  ClassVersion,
  Method,
  Attribute,
  Unknown,     // names an unknown connection
  Stranger,    // names a connection, but is not from its peer
  Unexpected,  // does not fit the state of its connection
  Backlog,     // too many requests wait
  Full,        // no room for one more connection
};
inline constexpr std::size_t kDrops = 11;
std::string_view name(Drop);

struct Counters {
  std::uint64_t received = 0, sent = 0;
  std::uint64_t repeated = 0;  // sent again after a timeout
  std::uint64_t answered = 0;  // sent again because the peer asked again
  std::uint64_t unsent = 0;    // lost here: the owner did not fetch it for too long
  std::uint64_t stale = 0;     // REQs and REPs with ids or queue pairs of another connection
  std::uint64_t denied = 0, over_limit = 0;  // REQs refused by the gate of their listener
  std::array<std::uint64_t, kDrops> drops{};

  void count(Drop d) { ++drops[static_cast<std::size_t>(d)]; }
  std::uint64_t of(Drop d) const { return drops[static_cast<std::size_t>(d)]; }
};

}  // namespace urnic::ib_cm
