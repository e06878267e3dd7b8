// The root of the source tree, for tests that read its files.
#pragma once

#include <string>

namespace urnic {

std::string source_dir();

}  // namespace urnic
