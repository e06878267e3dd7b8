// Converts the library's errors to errno, and stops all exceptions.
#pragma once

#include <errno.h>

#include <new>
#include <type_traits>

#include "dropin/cancel.h"
#include "urnic/status.h"

namespace urnic::dropin {

inline int to_errno(Errc code) {
  switch (code) {
    case Errc::invalid_argument:
    case Errc::wrong_state:
      return EINVAL;
    case Errc::permission:
      return EACCES;
    case Errc::unavailable:
      return ENODEV;
    case Errc::in_use:
      return EADDRINUSE;
    case Errc::no_memory:
    case Errc::queue_full:  // the error of libibverbs' ibv_post_send and ibv_post_recv
      return ENOMEM;
    case Errc::unreachable:
      return EHOSTUNREACH;
    case Errc::refused:
    case Errc::rejected:
      return ECONNREFUSED;
    case Errc::timed_out:
      return ETIMEDOUT;
    case Errc::reset:
      return ECONNRESET;
    case Errc::protocol:
      return EPROTO;
    case Errc::closed:
      return ENODEV;
    case Errc::would_block:
      return EAGAIN;
    case Errc::unsupported:
      return EOPNOTSUPP;
    case Errc::no_descriptors:
      return EMFILE;
    case Errc::bad_address:
      return EFAULT;
    case Errc::io:
      break;
  }
  return EIO;
}

// Set errno and return -1 or a null pointer.
inline int failed(int error) {
  errno = error;
  return -1;
}
inline std::nullptr_t nothing(int error) {
  errno = error;
  return nullptr;
}

// Converts an errno value into the result of a call that returns 0 or -1.
inline int zero_or_failed(int error) {
  return error == 0 ? 0 : failed(error);
}

// The result of a call that returns an errno value. It also sets errno, because programs check it,
// and a failed call of a kernel's device sets it too.
inline int told(int error) {
  if (error > 0) errno = error;
  return error;
}

// Runs `f`, the body of a function called from C; returns `otherwise` when memory runs out. `f`
// must not wait without a limit: a cancelled thread would stay in it.
template <class F>
auto guarded(F&& f, decltype(f()) otherwise) noexcept -> decltype(f()) {
  const Uncancelled uncancelled;
  try {
    if constexpr (std::is_same_v<decltype(f()), int>) {
      return otherwise > 0 ? told(f()) : f();  // `f` returns an errno value, or -1
    } else {
      return f();
    }
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
  } catch (...) {
    errno = EIO;
  }
  return otherwise;
}

}  // namespace urnic::dropin
