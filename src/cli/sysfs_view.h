// The sysfs files of RDMA devices that `urnic run --sysfs` shows to a program: where they are, and
// the library that redirects the program to them.
#pragma once

#include <map>
#include <string>

#include "urnic/status.h"

namespace urnic::cli {

// Runs a child process in which the drop-in libraries in `folder` write the files for the devices
// that these variables configure. The child opens and closes the devices. Returns the folder with
// the files: one folder per content, private to this user, kept for later runs. The error is one
// line.
Result<std::string> write_sysfs(const std::string& folder,
                                const std::map<std::string, std::string>& variables);

// Brings the counters in such a folder up to date. The error is one line; `unavailable`: another
// process is doing it.
Result<void> refresh_counters(const std::string& tree);

// The library to preload, in the folder of the drop-in libraries.
std::string sysfs_library(const std::string& folder);

}  // namespace urnic::cli
