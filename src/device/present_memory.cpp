#include "device/present_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstddef>
#include <cstdio>

#include "base/private_descriptors.h"
#include "port/fd.h"

namespace urnic::device {
namespace {

// Older headers do not define them.
constexpr int kPopulateRead = 22, kPopulateWrite = 23;
// Up to this size the pages are faulted in. For larger ranges that would allocate memory that the
// program may never use, and take 50 ms and more for each GiB.
constexpr std::uint64_t kSmall = std::uint64_t{4} << 20;

std::uint64_t page_size() {
  static const auto size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// Addresses [begin, end).
struct Range {
  std::uint64_t begin, end;
};

// The whole pages that contain [begin, begin + length); an end of 0 if that includes the last page
// of the address space.
Range pages_of(std::uint64_t begin, std::uint64_t length) {
  const std::uint64_t page = page_size();
  return {begin & ~(page - 1), ((begin + (length - 1)) & ~(page - 1)) + page};
}

bool populate(const Range& r, int advice) {
  void* const at = reinterpret_cast<void*>(r.begin);  // NOLINT(performance-no-int-to-ptr)
  return madvise(at, r.end - r.begin, advice) == 0;
}

// Some emulators of Linux, such as qemu-user, ignore advice that they do not know: there even the
// page at address 0 is said to be populated.
bool populates() {
  static const bool known = [] {
    static const char here = 1;
    return populate(pages_of(reinterpret_cast<std::uintptr_t>(&here), 1), kPopulateRead) &&
           !populate(pages_of(0, 1), kPopulateRead);
  }();
  return known;
}

bool populate_for(const Range& r, bool write) {
  return populate(r, kPopulateRead) && (!write || populate(r, kPopulateWrite));
}

// One line of /proc/self/maps.
struct Mapping {
  Range range{};
  bool readable = false, writable = false;
  bool of_file = false;
};

bool parse(const char* line, Mapping* m) {
  char rights[5] = {};
  std::uint64_t inode = 0;
  if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %" SCNu64, &m->range.begin,
                  &m->range.end, rights, &inode) != 4) {
    return false;
  }
  m->readable = rights[0] == 'r';
  m->writable = rights[1] == 'w';
  m->of_file = inode != 0;
  return true;
}

// The mappings of this process, in order of their addresses.
class Mappings {
 public:
  Mappings() : fd_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  bool usable() const { return fd_.get() >= 0 && !broken_; }
  // False at the end, or when the file cannot be read (usable()).
  bool next(Mapping* m) {
    char line[kUseful + 1];
    std::size_t n = 0;
    for (;;) {
      if (at_ == size_ && !refill()) return false;
      const char c = buffer_[at_++];
      if (c == '\n') break;
      if (n < kUseful) line[n++] = c;
    }
    line[n] = '\0';
    broken_ = !parse(line, m);
    return !broken_;
  }

 private:
  // bytes of a line that are needed: the part before the path
  static constexpr std::size_t kUseful = 128;
  bool refill() {
    ssize_t n;
    do {
      n = read(fd_.get(), buffer_, sizeof buffer_);
    } while (n < 0 && errno == EINTR);
    broken_ = n < 0;
    at_ = 0;
    size_ = n > 0 ? static_cast<std::size_t>(n) : 0;
    return n > 0;
  }

  port::Fd fd_;
  bool broken_ = false;
  std::size_t at_ = 0, size_ = 0;
  char buffer_[8192];
};

// A mapping may extend past the end of its file. If its last page is present, all are.
bool has_its_file(const Mapping& m, const Range& asked, bool populating) {
  if (!m.of_file || !populating) return true;
  const std::uint64_t end = std::min(m.range.end, asked.end);
  return populate({end - page_size(), end}, kPopulateRead);
}

enum class Answer : std::uint8_t { Present, Absent, Unknown };

// The kernel's argument of PROCMAP_QUERY; older headers do not define it.
struct MappingQuery {
  std::uint64_t size, flags, address;
  std::uint64_t begin, end, rights;
  std::uint64_t page_size, offset, inode;
  std::uint32_t device[2];
  std::uint32_t name_size, build_id_size;
  std::uint64_t name, build_id;
};
static_assert(sizeof(MappingQuery) == 104);

// Finds the mapping that contains `address`. Unknown: this kernel cannot tell.
Answer query(int fd, std::uint64_t address, Mapping* m) {
  constexpr std::uint64_t kReadable = 1, kWritable = 2;
  MappingQuery q{};
  q.size = sizeof q;
  q.address = address;
  if (ioctl(fd, _IOWR('f', 17, MappingQuery), &q) != 0) {
    return errno == ENOENT ? Answer::Absent : Answer::Unknown;
  }
  *m = {{q.begin, q.end}, (q.rights & kReadable) != 0, (q.rights & kWritable) != 0, q.inode != 0};
  return Answer::Present;
}

bool allows(const Mapping& m, const Range& asked, bool write, bool populating) {
  return m.readable && (!write || m.writable) && has_its_file(m, asked, populating);
}

Answer look_up_by_query(int fd, const Range& asked, bool write, bool populating) {
  Mapping m;
  for (std::uint64_t covered = asked.begin; covered < asked.end; covered = m.range.end) {
    if (const Answer a = query(fd, covered, &m); a != Answer::Present) return a;
    if (!allows(m, asked, write, populating)) return Answer::Absent;
  }
  return Answer::Present;
}

Answer look_up(const Range& asked, bool write, bool populating) {
  Mappings mappings;
  std::uint64_t covered = asked.begin;
  for (Mapping m; covered < asked.end && mappings.next(&m);) {
    if (m.range.end <= covered) continue;
    if (m.range.begin > covered || !allows(m, asked, write, populating)) return Answer::Absent;
    covered = m.range.end;
  }
  if (covered >= asked.end) return Answer::Present;
  return mappings.usable() ? Answer::Absent : Answer::Unknown;
}

}  // namespace

MappingQueries::~MappingQueries() {
  if (fd_ < 0) return;
  private_descriptors::remove(fd_);
  close(fd_);
}

int MappingQueries::descriptor() {
  std::call_once(opened_, [this] {
    fd_ = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    private_descriptors::add(fd_);
  });
  return fd_;
}

bool is_present(const void* begin, std::uint64_t length, bool write, const PresenceMeans& means) {
  if (length == 0) return true;
  const Range asked = pages_of(reinterpret_cast<std::uintptr_t>(begin), length);
  if (asked.end == 0) return false;  // the kernel maps nothing there
  const bool populating = means.populate && populates();
  if (populating && asked.end - asked.begin <= kSmall) return populate_for(asked, write);
  if (means.queries != nullptr) {
    const int fd = means.queries->descriptor();
    const Answer answer = look_up_by_query(fd, asked, write, populating);
    if (answer != Answer::Unknown) return answer == Answer::Present;
  }
  if (means.maps) {
    const Answer answer = look_up(asked, write, populating);
    if (answer != Answer::Unknown) return answer == Answer::Present;
  }
  return !populating || populate_for(asked, write);
}

}  // namespace urnic::device
