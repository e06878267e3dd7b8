// Packets of RoCE as they leave a node, before the wire treats them: what is said in them that
// counters of the queue pairs do not tell.
#pragma once

#include <cstdint>

#include "ib/psn.h"
#include "port/port_abi.h"

namespace urnic::sim {

struct PacketCounts {
  std::uint64_t requests = 0, responses = 0;  // those of queue pair 1 not included
  std::uint64_t payload = 0;                  // bytes
  std::uint64_t acks = 0;                     // Acknowledge and AtomicAcknowledge in ACK form
  std::uint64_t acks_with_credits = 0;
  std::uint64_t sequence_naks = 0, rnr_naks = 0, fatal_naks = 0;
  // Sequence NAKs with the PSN of the one before, nothing having been acknowledged between: a gap
  // that was told twice (IB-51).
  std::uint64_t naks_told_twice = 0;
  std::uint64_t read_requests = 0, atomics = 0;
};

class PacketWatch {
 public:
  // A frame that leaves.
  void see(const urnic_frame& frame);

  PacketCounts counts;

 private:
  bool nak_open_ = false;  // the newest that was acknowledged is a gap
  ib::Psn nak_;
};

}  // namespace urnic::sim
