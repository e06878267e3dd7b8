// Numbers of objects, as a kernel gives them: programs print them, and one that a program has
// changed is no object's any more (ENOENT), as far as calls look that are not for each message.
#pragma once

#include <atomic>
#include <cstdint>

namespace urnic::dropin {

inline std::uint32_t new_handle() {
  static std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1) + 1;
}

}  // namespace urnic::dropin
