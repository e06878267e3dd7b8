// The drop-in verbs libraries (src/dropin): where they are, and which programs take them.
#pragma once

#include <string>

namespace urnic::cli {

// Beside this program, built or installed; empty when there are none.
std::string dropin_folder();

// librspreload.so among them.
std::string sockets_library(const std::string& folder);

// Why `file` would not use the libraries in `folder`, which LD_LIBRARY_PATH names already; empty:
// it will. Where the program's own RPATH comes first, LD_PRELOAD is set as well.
std::string cannot_be_run(const std::string& file, const std::string& folder);

}  // namespace urnic::cli
