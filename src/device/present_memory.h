// Checks that memory which a program wants to register is mapped and allows the access. A kernel
// finds out when it pins the pages; urnic pins nothing and asks the kernel before it grants a
// region.
#pragma once

#include <cstdint>
#include <mutex>

namespace urnic::device {

// Asks the kernel for one mapping at a time (PROCMAP_QUERY, Linux 6.11). The first query opens a
// descriptor that stays open, because opening it costs ten times as much as a query. It belongs to
// this process: in a forked child queries have no answer. Any thread.
class MappingQueries {
 public:
  MappingQueries() = default;
  ~MappingQueries();
  MappingQueries(const MappingQueries&) = delete;
  MappingQueries& operator=(const MappingQueries&) = delete;
  int descriptor();

 private:
  std::once_flag opened_;
  int fd_ = -1;
};

// Ways to check. Tests disable one of them.
struct PresenceMeans {
  bool populate = true;  // MADV_POPULATE_READ and _WRITE, Linux 5.14
  bool maps = true;      // the text of /proc/self/maps
  MappingQueries* queries = nullptr;
};

// True if every page of [begin, begin + length) can be read, and written if `write`. The range must
// not wrap around. A small range is faulted in, as pinning would do; of a large one only the
// mappings are looked up, so the call takes no longer for more memory. Never changes a byte.
// True also if the kernel offers no means to find out.
bool is_present(const void* begin, std::uint64_t length, bool write, const PresenceMeans& means);

}  // namespace urnic::device
