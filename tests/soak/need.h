// What a process of the soak cannot begin without.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "urnic/status.h"

namespace urnic::soak {

// Ends the process with one line, exit 2, where it is not to be had.
template <class T>
T need(Result<T> r, const char* what) {
  if (r.ok()) return std::move(*r);
  std::fprintf(stderr, "soak: %s: %s\n", what, r.error().message.c_str());
  std::exit(2);
}

}  // namespace urnic::soak
