// What every public call does alike: an empty handle answers an error, and so does a call that
// finds no memory; no exception leaves the library.
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

// Why a call failed, for who wants to know: as `why` has it, or that there is no memory to say it.
template <class F>
void explain(Error* to, F&& why) noexcept {
  if (to == nullptr) return;
  try {
    *to = why();
  } catch (const std::bad_alloc&) {
    *to = no_memory();
  }
}

// f() with a Result of its own, or the error it could not return.
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

// The same where there is no Result to put an error into: an empty value.
template <class F>
auto or_nothing(F&& f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    if constexpr (!std::is_void_v<decltype(f())>) return {};
  }
}

}  // namespace urnic::device
