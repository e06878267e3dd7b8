// Inspects RoCE packets as they leave a node, before the wire changes them. Counts properties of
// packets that the counters of the queue pairs do not show.
#pragma once

#include <cstdint>

#include "ib/psn.h"
#include "port/port_abi.h"

namespace urnic::sim {

struct PacketCounts {
  std::uint64_t requests = 0, responses = 0;  // without packets of queue pair 1
  std::uint64_t payload = 0;                  // bytes
  std::uint64_t acks = 0;                     // Acknowledge and AtomicAcknowledge in ACK form
  std::uint64_t acks_with_credits = 0;
  std::uint64_t sequence_naks = 0, rnr_naks = 0, fatal_naks = 0;
  // Sequence NAKs that repeat the PSN of the previous one without an acknowledgment in between: a
  // gap was reported twice (IB-51).
  std::uint64_t naks_told_twice = 0;
  std::uint64_t read_requests = 0, atomics = 0;
};

class PacketWatch {
 public:
  // Inspects an outgoing frame.
  void see(const urnic_frame& frame);

  PacketCounts counts;

 private:
  bool nak_open_ = false;  // a gap was reported and not acknowledged since
  ib::Psn nak_;
};

}  // namespace urnic::sim
