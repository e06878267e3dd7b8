// Common error handling of every public call: an empty handle and a lack of memory become errors;
// no exception leaves the library.
#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "urnic/status.h"

namespace urnic::device {

inline Error empty_handle(const char* what) {
  return {Errc::invalid_argument,
          std::string("the ") + what + " is empty: never created, or moved from"};
}

inline Error no_memory() {
  return {Errc::no_memory, "out of memory"};
}

// Stores why a call failed, if `to` is not null: the error from `why`, or no_memory if it cannot be
// built.
template <class F>
void explain(Error* to, F&& why) noexcept {
  if (to == nullptr) return;
  try {
    *to = why();
  } catch (const std::bad_alloc&) {
    *to = no_memory();
  }
}

// Runs f(), which returns a Result, and converts exceptions into errors.
template <class F>
auto guarded(F&& f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::length_error&) {
    return no_memory();
  } catch (const std::system_error& e) {  // a thread that cannot be started
    return Error{Errc::no_memory, e.what()};
  }
}

// The same for calls without a Result: returns an empty value.
template <class F>
auto or_nothing(F&& f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    if constexpr (!std::is_void_v<decltype(f())>) return {};
  }
}

}  // namespace urnic::device
