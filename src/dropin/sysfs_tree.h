// Writes the files in which a kernel shows its RDMA devices, for programs that read them instead of
// calling the libraries (Documentation/ABI/stable/sysfs-class-infiniband of Linux describes them).
#pragma once

#include "dropin/exported.h"

// Writes sys/class/infiniband, sys/class/infiniband_verbs and dev/infiniband below `folder`, which
// must be empty, with the present results of ibv_query_device and similar calls. Opens each device
// and closes it. Returns 0 or an errno value; errors of a device are printed on standard error.
// Counters are 0; the file `devices` says whose they are (counters/page.h).
URNIC_EXPORTED int urnic_write_sysfs(const char* folder);
