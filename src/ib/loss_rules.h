// The options of an RC queue pair for handling loss beyond the specification (S-1..S-4, S-8, S-9):
// chosen at its creation, constant afterwards.
//
// Values; any thread.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::ib {

// S-1. Slow follows the specification: packets past a gap are dropped, and the peer goes back N.
// Fast follows OutOfOrder.
enum class ConnectionType : std::uint8_t { Fast, Slow };

// The handling of a request past a gap.
enum class OutOfOrder : std::uint8_t {
  Drop,   // as specified
  Store,  // it is kept until the gap closes
  Place,  // the same, but payload of a WRITE with a certain destination is placed at once (S-2)
};

struct LossRules {
  ConnectionType type = ConnectionType::Slow;  // initial type
  OutOfOrder out_of_order = OutOfOrder::Store;
  // bound: packets that a FAST queue pair keeps after a gap; setting: held_packets; beyond: it goes
  // SLOW and drops them; they are sent again (S-8); test: BehindGap.AFullStoreMakesItSlow,
  // BehindGap.EnoughRequestsInOrderMakeItFastAgain, HeldPacketsTest.AreAtMostTheLimit
  std::uint32_t store_packets = 512;         // kept at a time, 1..kMostStored
  std::uint32_t max_recovery_attempts = 32;  // gaps in one recovery; one more, and it is SLOW (S-8)
  std::uint32_t upgrade_after = 64;          // requests in order, 1..kMostUpgradeAfter
  // S-9: while FAST, a request that finds no receive waits in the store, with those after it, until
  // one is posted. The RNR NAK is sent when that many are kept, or when the time below has passed;
  // a limit of 0 means at once.
  // bound: packets that wait for a receive on a FAST queue pair; setting: rnr_park; beyond: RNR
  // NAK: the peer retries (S-9); test: Parked.RequestsUpToTheLimitWaitAndNoMore,
  // Parked.LaterRequestsWaitTooAndEachGetsItsReceive,
  // RoceEmptyQueue.MoreThanTheLimitDrawAnRnrNak
  std::uint32_t rnr_park = 0;  // 0..kMostStored
  // bound: time that packets wait for a receive; setting: rnr_park_ms; beyond: RNR NAK: the peer
  // retries (S-9); test: RoceEmptyQueue.AfterTheTimeoutAnRnrNakIsSent
  Duration rnr_park_time = Duration::ms(10);

  static constexpr std::uint32_t kMostStored = 4096;
  static constexpr std::uint32_t kMostUpgradeAfter = 65536;
};

}  // namespace urnic::ib
