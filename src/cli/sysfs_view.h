// The files of RDMA devices that `urnic run --sysfs` shows a program: where they are, and the
// library that leads there.
#pragma once

#include <map>
#include <string>

#include "urnic/status.h"

namespace urnic::cli {

// Has the drop-in libraries in `folder` write them for the devices these variables set up, as a
// process of its own, which opens and closes the devices. What it gives is the folder they lie in,
// one for each content, of this user alone, left for those that run behind us. The error is one
// line.
Result<std::string> write_sysfs(const std::string& folder,
                                const std::map<std::string, std::string>& variables);

// The library to be preloaded, in the folder of the drop-in libraries.
std::string sysfs_library(const std::string& folder);

}  // namespace urnic::cli
