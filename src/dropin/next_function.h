// For libraries that are preloaded: the function a call would have reached without them. No
// run-time of C++.
#pragma once

#include <dlfcn.h>

namespace urnic::dropin {

// The function of this name that comes behind ours. Found once, into `*kept`; two threads find the
// same.
template <class F>
F* next_function(F** kept, const char* name) {
  F* f = __atomic_load_n(kept, __ATOMIC_RELAXED);
  if (f == nullptr) {
    f = reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
    __atomic_store_n(kept, f, __ATOMIC_RELAXED);
  }
  return f;
}

}  // namespace urnic::dropin
