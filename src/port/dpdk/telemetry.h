// The counters of open DPDK ports under "/urnic/ports" of DPDK telemetry (D10), for those who
// watch DPDK programs with its tools. Telemetry runs only when asked for: eal="--telemetry".
#pragma once

#include <string>

#include "port/port_abi.h"

namespace urnic::port::dpdk {

// `read` is called from the telemetry thread with `port`, until `hide`.
void show(const std::string& name, const void* port, void (*read)(const void*, urnic_port_stats*));
void hide(const void* port);

}  // namespace urnic::port::dpdk
