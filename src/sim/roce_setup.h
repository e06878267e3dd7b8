// Connects two queue pairs of RoCE: manually, like programs that exchange number, address and PSN
// themselves, or by connection management.
#pragma once

#include <cstdint>

#include "sim/pair.h"
#include "sim/rd/ee_context.h"
#include "verbs/qp_state.h"

namespace urnic::sim {

// The settings of a scenario for both queue pairs. Codes and counts are as on the wire.
struct RocePlan {
  bool on = false;                              // transport = roce
  verbs::Service service = verbs::Service::Rc;  // XrcSend: for the left end; the right one receives
  bool by_cm = false;                           // for RC and XRC
  std::uint8_t ack_timeout = 14;                // 67 ms; rdma_cm uses 19
  std::uint8_t retry_count = 7;                 // seven
  std::uint8_t rnr_retry = 7;                   // 7: unlimited
  std::uint8_t min_rnr_timer = 12;              // 0.64 ms
  std::uint8_t depth = 16;                      // outstanding READs and atomics
  // Reliable datagrams: several queue pairs over one EE context (rd_traffic.h).
  bool rd = false;
  OnRnr on_rnr = OnRnr::Retry;
};

inline constexpr std::uint32_t kSimQkey = 0x11223344;

// Takes both queue pairs from Reset to Rts. The PSNs begin close to wrapping around. False if this
// takes longer than `limit`.
bool connect_roce(Pair& pair, verbs::QueuePair& left, verbs::QueuePair& right, const RocePlan& plan,
                  Duration limit);

// The address handles for UD: of the left node to the right one, and back.
std::uint32_t address_of_right(Pair& pair);
std::uint32_t address_of_left(Pair& pair);

}  // namespace urnic::sim
