// For resources without which a process of the soak test cannot start.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "urnic/status.h"

namespace urnic::soak {

// If it is not available, ends the process with one line and exit code 2.
template <class T>
T need(Result<T> r, const char* what) {
  if (r.ok()) return std::move(*r);
  std::fprintf(stderr, "soak: %s: %s\n", what, r.error().message.c_str());
  std::exit(2);
}

}  // namespace urnic::soak
