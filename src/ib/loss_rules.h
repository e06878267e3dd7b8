// What an RC queue pair may do about loss beyond the letter of the transport (S-1..S-4, S-8, S-9):
// chosen at its set-up, constant afterwards.
//
// Values; any thread.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::ib {

// S-1. Slow is the letter: what lies behind a gap is dropped, and the peer goes back N. Fast is
// what OutOfOrder says.
enum class ConnectionType : std::uint8_t { Fast, Slow };

// What becomes of a request behind a gap.
enum class OutOfOrder : std::uint8_t {
  Drop,   // the letter
  Store,  // it is kept until the gap closes
  Place,  // the same, but of a WRITE whose place is certain the payload goes there at once (S-2)
};

struct LossRules {
  ConnectionType type = ConnectionType::Slow;  // initiated as
  OutOfOrder out_of_order = OutOfOrder::Store;
  // bound: packets that a FAST queue pair keeps after a gap; setting: held_packets; beyond: it goes
  // SLOW and drops them; they are sent again (S-8); test: BehindGap.AFullStoreMakesItSlow,
  // BehindGap.SoManyInOrderMakeItFastAgain, HeldPacketsTest.AreNoMoreThanSoMany
  std::uint32_t store_packets = 512;         // kept at a time, 1..kMostStored
  std::uint32_t max_recovery_attempts = 32;  // gaps in one recovery; one more, and it is SLOW (S-8)
  std::uint32_t upgrade_after = 64;          // requests in order, 1..kMostUpgradeAfter
  // S-9: while FAST, a request that finds no receive waits in the store, and what follows it, until
  // one is posted; the RNR NAK goes out when so many are kept, or when that time is up. 0: at once.
  // bound: packets that wait for a receive on a FAST queue pair; setting: rnr_park; beyond: RNR
  // NAK: the peer retries (S-9); test: Parked.SoManyWaitAndNoMore,
  // Parked.WhatFollowsWaitsAsWellAndEachHasItsReceive,
  // RoceEmptyQueue.MoreThanMayWaitAreToldToComeAgain
  std::uint32_t rnr_park = 0;  // 0..kMostStored
  // bound: time that packets wait for a receive; setting: rnr_park_ms; beyond: RNR NAK: the peer
  // retries (S-9); test: RoceEmptyQueue.APeerIsToldToComeAgainWhenTheTimeIsUp
  Duration rnr_park_time = Duration::ms(10);

  static constexpr std::uint32_t kMostStored = 4096;
  static constexpr std::uint32_t kMostUpgradeAfter = 65536;
};

}  // namespace urnic::ib
