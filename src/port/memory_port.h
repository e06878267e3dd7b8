// Two ports joined in one process: what one sends the other receives. For tests and the simulator:
// no clock, and no descriptor until somebody wants to sleep. Received frames carry arrival_ns 0, so
// the engine's own (virtual) "now" counts.
//
// By name: "mem:name=x" twice in one process gives the two ends; the first is without link until
// the second is opened.
#pragma once

#include <cstdint>
#include <utility>

#include "port/port.h"

namespace urnic::port {

struct MemoryPairOptions {
  std::uint32_t max_frame = 65535;
  // bound: frames in a ring of the memory port; limit: `ring=`, 1024; beyond: the sender waits for
  // room; test: MemoryPort.AFullRingGivesLessAndRecovers
  std::uint32_t ring = 1024;  // frames in flight each way, rounded up to a power of two
  std::uint32_t queues = 1;
};

// Both ends must be closed by their owners; either may go first (the other then sees link down,
// and may still receive what was sent to it before). The two ends may be driven by two threads, and
// so may the queues of one end. An empty pair when memory is short.
std::pair<Port, Port> make_memory_pair(const MemoryPairOptions& options = {});

}  // namespace urnic::port
