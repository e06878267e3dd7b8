// Two connected ports in one process: each receives what the other sends. For tests and the
// simulator: there is no clock, and no descriptor until a caller wants to sleep. Received frames
// have arrival_ns 0, so the engine's own (virtual) time applies.
//
// By name: opening "mem:name=x" twice in one process gives the two ends. The first end has no link
// until the second is opened.
#pragma once

#include <cstdint>
#include <utility>

#include "port/port.h"

namespace urnic::port {

struct MemoryPairOptions {
  std::uint32_t max_frame = 65535;
  // bound: frames in a ring of the memory port; limit: `ring=`, 1024; beyond: the sender waits for
  // room; test: MemoryPort.AFullRingGivesLessAndRecovers
  std::uint32_t ring = 1024;  // frames in flight in each direction, rounded up to a power of two
  std::uint32_t queues = 1;
};

// The owners must close both ends, in any order. When one is closed, the other sees link down, but
// may still receive frames sent before. Two threads may drive the two ends, and also the queues of
// one end. Returns an empty pair if there is not enough memory.
std::pair<Port, Port> make_memory_pair(const MemoryPairOptions& options = {});

}  // namespace urnic::port
