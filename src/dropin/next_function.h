// For preloaded libraries: finds the function that a call would have reached without them. Needs no
// C++ run-time.
#pragma once

#include <dlfcn.h>

namespace urnic::dropin {

// The next definition of this name after ours. Looked up once and stored in `*kept`; if two threads
// look it up, both find the same.
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
