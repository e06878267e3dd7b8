// Shows the counters of open DPDK ports under "/urnic/ports" of DPDK telemetry (D10), for users of
// DPDK's monitoring tools. Telemetry runs only on request: eal="--telemetry".
#pragma once

#include <string>

#include "port/port_abi.h"

namespace urnic::port::dpdk {

// The telemetry thread calls `read` with `port` until `hide`.
void show(const std::string& name, const void* port, void (*read)(const void*, urnic_port_stats*));
void hide(const void* port);

}  // namespace urnic::port::dpdk
