// The files in which a kernel shows its RDMA devices, written for ours: what programs read that go
// past the libraries (Documentation/ABI/stable/sysfs-class-infiniband of Linux names them).
#pragma once

#include "dropin/exported.h"

// Writes below `folder`, which is empty, sys/class/infiniband, sys/class/infiniband_verbs and
// dev/infiniband, with what ibv_query_device and its kind say now. Opens each device and closes it.
// 0 or an errno value; what is wrong with a device has been said on standard error. There are no
// counters in it: a copy of them would stand still.
URNIC_EXPORTED int urnic_write_sysfs(const char* folder);
