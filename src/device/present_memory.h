// Checks that memory which a program wants to register is mapped and allows the access. A kernel
// finds out when it pins the pages; urnic pins nothing and asks the kernel before it grants a
// region.
#pragma once

#include <cstdint>

namespace urnic::device {

// Ways to check. Tests disable one of them.
struct PresenceMeans {
  bool populate = true;  // MADV_POPULATE_READ and _WRITE, Linux 5.14
  bool maps = true;      // /proc/self/maps
};

// True if every page of [begin, begin + length) can be read, and written if `write`. The range must
// not wrap around. A small range is faulted in, as pinning would do; of a large one only the
// mappings are read, so the call takes no longer for more memory. Never changes a byte.
// True also if the kernel offers no means to find out.
bool is_present(const void* begin, std::uint64_t length, bool write, PresenceMeans means = {});

}  // namespace urnic::device
