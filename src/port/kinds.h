// The port kinds compiled into the library.
#pragma once

#include "port/port_abi.h"

namespace urnic::port {

extern const urnic_port_ops kMemoryPortOps;
extern const urnic_port_ops kMemifPortOps;
extern const urnic_port_ops kTapPortOps;
extern const urnic_port_ops kDgramPortOps;

}  // namespace urnic::port
