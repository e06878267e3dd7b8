// ConnectionContext 42: the state that InLogic keeps per connection (specification 1.4, Fig 2B).
#pragma once

#include <cstdint>

#include "base/time.h"
#include "tcp/seq.h"

namespace urnic::fastpath {

enum class ConnectionType : std::uint8_t { Fast, Slow };

// The decision procedure of a connection (D6, E-3): Fig 3 on streams with markers, Figs 9 and 10
// without.
enum class InLogicVariant : std::uint8_t { Fig9, Fig10, Fig3 };

struct ContextConfig {
  ConnectionType initiated_as = ConnectionType::Fast;
  InLogicVariant variant = InLogicVariant::Fig9;
  // MaxRecoveryAttemptsNum 296: this many drops are allowed, the next error downgrades.
  // At least 1 without markers (E-3). 0 is Fig 3 alone: the first error downgrades.
  std::uint32_t max_recovery_attempts = 32;
  std::uint32_t max_same_segment = 4;  // E-8; 0 = off
  // Number of FPDUs that may arrive cut in two before the connection is downgraded
  // (docs/decisions/cut-frames.md). 0 = off.
  std::uint32_t max_cut_frames = 0;
  std::uint32_t upgrade_after = 64;  // E-9: N in-order aligned segments; 0 counts as 1
  bool immediate_dup_ack = true;     // section 7
  bool crc = true;                   // without CRC: always SLOW (E-2)
  bool place_out_of_order = true;    // E-12: place | store
};

// Cut FPDUs count together only within this many bytes of the stream.
inline constexpr std::int32_t kCutReach = 1u << 20;
// A peer that cuts FPDUs often sends many whole FPDUs in between, so the upgrade waits for at least
// this many times the configured number of segments.
inline constexpr std::uint32_t kHabit = 16;

// The most in-order aligned segments an upgrade ever waits for (E-9).
inline constexpr std::uint32_t kMaxUpgradeAfter = 1u << 16;

struct ConnectionContext {
  ContextConfig config;
  ConnectionType type = ConnectionType::Fast;  // ConnectionType 62
  bool startup = true;                         // E-1: before full operation; InLogic is not called
  std::uint32_t recovery_attempts = 0;         // RecoveryAttemptsNum 292
  // LastRecoverySN 294. Undefined while recovery_attempts is 0.
  tcp::Seq last_recovery_sn;
  // E-8: how often in a row the segment at RCV.NXT was refused.
  tcp::Seq same_sn;
  std::uint32_t same_count = 0;
  // Cut FPDUs: end of the refused segment that holds the beginning of one; the position of the last
  // refused segment that began exactly there and completed one.
  tcp::Seq cut_end, last_cut;
  bool cut_open = false;  // cut_end is valid
  std::uint32_t cuts = 0;
  // E-9: current N; in-order aligned segments in a row seen while SLOW; when the connection became
  // FAST; whether it has been downgraded before.
  std::uint32_t upgrade_needed = 64;
  std::uint32_t aligned_seen = 0;
  Instant fast_since;
  bool was_downgraded = false;
};

}  // namespace urnic::fastpath
