// The drop-in verbs libraries (src/dropin): where they are, and which programs can use them.
#pragma once

#include <string>

namespace urnic::cli {

// The folder beside this program, built or installed; empty if the libraries are missing.
std::string dropin_folder();

// The path of librspreload.so in that folder.
std::string sockets_library(const std::string& folder);

// The reason why `file` would not use the libraries in `folder`, which LD_LIBRARY_PATH already
// names; empty if it would. If the program's RPATH takes precedence, also sets LD_PRELOAD.
std::string cannot_be_run(const std::string& file, const std::string& folder);

}  // namespace urnic::cli
