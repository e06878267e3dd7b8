// Two ports joined in one process: what one sends the other receives. For tests and the
// simulator: no descriptor, no clock; a virtual clock is given through `set_now`.
#pragma once

#include <cstdint>
#include <utility>

#include "port/port.h"

namespace urnic::port {

struct MemoryPairOptions {
  std::uint32_t max_frame = 65535;
  std::uint32_t ring = 1024;  // frames in flight each way, a power of two
  std::uint32_t queues = 1;
};

// Both ends must be closed by their owners; either may go first (the other then sees link down).
std::pair<Port, Port> make_memory_pair(const MemoryPairOptions& options = {});

}  // namespace urnic::port
