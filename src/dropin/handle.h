// Numbers of objects, like a kernel's handles. Programs print them; if a program changes the number
// of an object, calls fail with ENOENT, except the calls made for each message, which do not check.
#pragma once

#include <atomic>
#include <cstdint>

namespace urnic::dropin {

inline std::uint32_t new_handle() {
  static std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1) + 1;
}

}  // namespace urnic::dropin
