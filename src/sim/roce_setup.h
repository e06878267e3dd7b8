// Two queue pairs of RoCE made ready to work for each other: by hand, as programs do that exchange
// number, address and PSN themselves, or by connection management.
#pragma once

#include <cstdint>

#include "sim/pair.h"
#include "sim/rd/ee_context.h"
#include "verbs/qp_state.h"

namespace urnic::sim {

// What a scenario says of both queue pairs. Codes and counts are as on the wire.
struct RocePlan {
  bool on = false;                              // transport = roce
  verbs::Service service = verbs::Service::Rc;  // XrcSend: of the left end; the right one receives
  bool by_cm = false;                           // RC and XRC
  std::uint8_t ack_timeout = 14;                // 67 ms; rdma_cm has 19
  std::uint8_t retry_count = 7;                 // seven
  std::uint8_t rnr_retry = 7;                   // for ever
  std::uint8_t min_rnr_timer = 12;              // 0.64 ms
  std::uint8_t depth = 16;                      // READs and atomics outstanding
  // Reliable datagrams: queue pairs over one EE context (rd_traffic.h).
  bool rd = false;
  OnRnr on_rnr = OnRnr::Retry;
};

inline constexpr std::uint32_t kSimQkey = 0x11223344;

// Both are in Reset; afterwards both are in Rts. The PSNs begin close to their wrap. False: they
// did not come up within `limit`.
bool connect_roce(Pair& pair, verbs::QueuePair& left, verbs::QueuePair& right, const RocePlan& plan,
                  Duration limit);

// Of the left node to the right one, and back. UD.
std::uint32_t address_of_right(Pair& pair);
std::uint32_t address_of_left(Pair& pair);

}  // namespace urnic::sim
