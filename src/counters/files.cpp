#include "counters/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace urnic::counters {
namespace {

constexpr char kLockFile[] = "counters.lock", kNewFile[] = "counters.new";

bool same(const DeviceName& a, const DeviceName& b) {
  return strcmp(a.section, b.section) == 0 && strcmp(a.port, b.port) == 0;
}

// A mapped page. A file that is no page is null.
class Mapped {
 public:
  explicit Mapped(int fd) {
    struct stat s;
    if (fd < 0 || fstat(fd, &s) != 0 || s.st_size < static_cast<off_t>(sizeof(Page))) return;
    void* const at = mmap(nullptr, sizeof(Page), PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return;
    page_ = static_cast<const Page*>(at);
  }
  ~Mapped() {
    if (page_ != nullptr) munmap(const_cast<Page*>(page_), sizeof(Page));
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  const Page* get() const {
    const bool whole = page_ != nullptr && memcmp(page_->magic, kMagic, sizeof page_->magic) == 0 &&
                       page_->entries <= kMostEntries;
    return whole ? page_ : nullptr;
  }

 private:
  const Page* page_ = nullptr;
};

class File {
 public:
  File(int folder, const char* name, int flags, mode_t mode = 0)
      : fd_(openat(folder, name, flags | O_CLOEXEC, mode)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// One entry in the place that it has in every page of the same version, else where it is found.
void add(Entry* to, std::size_t* entries, std::size_t at, const Entry& e) {
  if (at >= *entries || strncmp(to[at].path, e.path, sizeof e.path) != 0) {
    for (at = 0; at < *entries && strncmp(to[at].path, e.path, sizeof e.path) != 0;) ++at;
  }
  if (at == kMostEntries) return;
  if (at == *entries) {
    memcpy(to[at].path, e.path, sizeof e.path);
    to[at].path[sizeof e.path - 1] = 0;
    to[at].value = 0;
    ++*entries;
  }
  to[at].value += __atomic_load_n(&e.value, __ATOMIC_RELAXED);
}

void add(Entry* to, std::size_t* entries, const Page& page) {
  for (std::size_t i = 0; i < page.entries; ++i) add(to, entries, i, page.entry[i]);
}

// Calls f(name) for each page of a process. opendir(3) would allocate memory.
template <class F>
void for_each_page(int folder, F&& f) {
  const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  alignas(dirent64) char room[4096];
  for (long n = 0; (n = syscall(SYS_getdents64, fd, room, sizeof room)) > 0;) {
    for (long at = 0; at < n;) {
      const auto* e = reinterpret_cast<const dirent64*>(room + at);
      at += e->d_reclen;
      const std::size_t length = strlen(e->d_name), ending = sizeof kEnding - 1;
      if (length <= ending || strcmp(e->d_name + length - ending, kEnding) != 0) continue;
      if (strncmp(e->d_name, kTotals, sizeof kTotals - 1) != 0) f(e->d_name);
    }
  }
  close(fd);
}

// FNV-1a over both texts with their ends.
std::uint64_t hash_of(const DeviceName& d) {
  std::uint64_t hash = 14695981039346656037u;
  const char* const texts[] = {d.section, d.port};
  for (const char* text : texts) {
    const char* p = text;
    do {
      hash = (hash ^ static_cast<std::uint8_t>(*p)) * 1099511628211u;
    } while (*p++ != 0);
  }
  return hash;
}

struct TotalsName {
  explicit TotalsName(const DeviceName& d) {
    snprintf(text, sizeof text, "%s%016llx%s", kTotals, static_cast<unsigned long long>(hash_of(d)),
             kEnding);
  }
  char text[48];
};

bool write_all(int fd, const void* data, std::size_t size) {
  const ssize_t n = write(fd, data, size);
  if (n >= 0 && n != static_cast<ssize_t>(size)) errno = ENOSPC;
  return n == static_cast<ssize_t>(size);
}

// Replaces a file by way of `other` in the same file system. Returns an errno value.
int replace(int other_folder, const char* other, int folder, const char* name, const void* data,
            std::size_t size, mode_t mode) {
  unlinkat(other_folder, other, 0);  // left by a process that was killed
  const File file(other_folder, other, O_WRONLY | O_CREAT | O_EXCL, mode);
  if (file.get() < 0) return errno;
  if (write_all(file.get(), data, size) && renameat(other_folder, other, folder, name) == 0) {
    return 0;
  }
  const int error = errno;
  unlinkat(other_folder, other, 0);
  return error;
}

// Adds the page to the totals of its device. False: they cannot be written. The id in the totals
// makes it happen once, even if this process is killed between the two steps of the caller.
bool add_to_totals(int folder, const Page& page) {
  const TotalsName name(page.device);
  Page totals = {};
  {
    const File file(folder, name.text, O_RDONLY);
    const Mapped before(file.get());
    if (before.get() != nullptr) memcpy(&totals, before.get(), sizeof totals);
  }
  if (totals.magic[0] == 0) {
    memcpy(totals.magic, kMagic, sizeof totals.magic);
    totals.device = page.device;
  } else if (!same(totals.device, page.device)) {
    return false;  // another device with the same hash: its own pages stay
  } else if (totals.merged == page.id) {
    return true;
  }
  std::size_t entries = totals.entries;
  add(totals.entry, &entries, page);
  totals.entries = entries;
  totals.merged = page.id;
  return replace(folder, kNewFile, folder, name.text, &totals, sizeof totals, 0600) == 0;
}

bool has_counted(const Page& page) {
  for (std::size_t i = 0; i < page.entries; ++i) {
    if (page.entry[i].value != 0) return true;
  }
  return false;
}

// Its process holds a lock on a page while it lives.
void merge_if_ended(int folder, const char* name) {
  const File file(folder, name, O_RDWR);
  if (file.get() < 0 || flock(file.get(), LOCK_EX | LOCK_NB) != 0) return;
  const Mapped page(file.get());
  const bool is_empty = page.get() == nullptr || !has_counted(*page.get());
  if (is_empty || add_to_totals(folder, *page.get())) unlinkat(folder, name, 0);
}

// The value as a line, if the file has another one. Returns an errno value.
int refresh_file(int tree, int port, const Entry& e) {
  char now[24], before[24];
  const int length = snprintf(now, sizeof now, "%llu\n", static_cast<unsigned long long>(e.value));
  {
    const File file(port, e.path, O_RDONLY);
    if (file.get() < 0) return errno == ENOENT ? 0 : errno;  // not shown for such a device
    if (read(file.get(), before, sizeof before) == length &&
        memcmp(now, before, static_cast<std::size_t>(length)) == 0) {
      return 0;
    }
  }
  return replace(tree, kNewFile, port, e.path, now, static_cast<std::size_t>(length), 0444);
}

int refresh_device(int tree, const char* shown, const Sum& sum) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "sys/class/infiniband/%s/ports/1", shown);
  const File port(tree, path, O_RDONLY | O_DIRECTORY);
  if (port.get() < 0) return errno;
  for (std::size_t i = 0; i < sum.entries; ++i) {
    if (const int e = refresh_file(tree, port.get(), sum.entry[i]); e != 0) return e;
  }
  return 0;
}

// A file as text that may be changed in memory.
class Text {
 public:
  explicit Text(int fd) {
    struct stat s;
    if (fd < 0 || fstat(fd, &s) != 0 || s.st_size <= 0) return;
    size_ = static_cast<std::size_t>(s.st_size);
    void* const at = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (at != MAP_FAILED) at_ = static_cast<char*>(at);
  }
  ~Text() {
    if (at_ != nullptr) munmap(at_, size_);
  }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  char* begin() const { return at_; }
  char* end() const { return at_ == nullptr ? nullptr : at_ + size_; }

 private:
  char* at_ = nullptr;
  std::size_t size_ = 0;
};

// Ends the text at the next `mark` before `end`, and returns what follows; null if there is none.
char* cut(char* text, char mark, const char* end) {
  if (text == nullptr || text >= end) return nullptr;
  auto* const at = static_cast<char*>(memchr(text, mark, static_cast<std::size_t>(end - text)));
  if (at == nullptr) return nullptr;
  *at = 0;
  return at + 1;
}

}  // namespace

FolderLock::FolderLock(const char* folder) {
  constexpr int kTries = 50;
  folder_ = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ >= 0) lock_ = openat(folder_, kLockFile, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ < 0) {
    error_ = errno;
    return;
  }
  for (int i = 0; flock(lock_, LOCK_EX | LOCK_NB) != 0; ++i) {
    if (errno == EWOULDBLOCK && i < kTries) {
      usleep(1000);
      continue;
    }
    error_ = errno == EWOULDBLOCK ? EBUSY : errno;
    close(lock_);
    lock_ = -1;
    return;
  }
}

// A child that another thread has forked meanwhile has the descriptor too: closing it here would
// not unlock.
FolderLock::~FolderLock() {
  if (lock_ >= 0) {
    flock(lock_, LOCK_UN);
    close(lock_);
  }
  if (folder_ >= 0) close(folder_);
}

bool set_name(DeviceName* to, const char* section, const char* port) {
  if (strlen(section) >= kSectionRoom || strlen(port) >= kPortRoom) return false;
  *to = {};
  strcpy(to->section, section);
  strcpy(to->port, port);
  return true;
}

Sum add_up(int folder, const DeviceName& device) {
  Sum sum;
  std::uint64_t merged = 0;
  {
    const File file(folder, TotalsName(device).text, O_RDONLY);
    const Mapped totals(file.get());
    if (totals.get() != nullptr && same(totals.get()->device, device)) {
      add(sum.entry, &sum.entries, *totals.get());
      merged = totals.get()->merged;
    }
  }
  for_each_page(folder, [&](const char* name) {
    const File file(folder, name, O_RDONLY);
    const Mapped mapped(file.get());
    const Page* const page = mapped.get();
    if (page == nullptr || !same(page->device, device)) return;
    if (page->id != merged) add(sum.entry, &sum.entries, *page);
  });
  return sum;
}

void merge_ended(int folder) {
  int merged = 0;
  for_each_page(folder, [&](const char* name) {
    if (merged++ < kAtOnce) merge_if_ended(folder, name);
  });
}

int refresh_tree(const char* tree, const char* folder) {
  const File top(AT_FDCWD, tree, O_RDONLY | O_DIRECTORY);
  if (top.get() < 0) return errno;
  const File file(top.get(), kDevicesFile, O_RDONLY);
  if (file.get() < 0) return errno;
  const Text devices(file.get());
  const FolderLock lock(folder);
  if (lock.error() != 0) return lock.error();
  char* next = nullptr;
  for (char* line = devices.begin(); (next = cut(line, '\n', devices.end())) != nullptr;
       line = next) {
    char* const section = cut(line, '\t', next - 1);
    char* const port = cut(section, '\t', next - 1);
    DeviceName name;
    if (port == nullptr || !set_name(&name, section, port)) continue;
    const Sum sum = add_up(lock.folder(), name);
    if (const int e = refresh_device(top.get(), line, sum); e != 0) return e;
  }
  return 0;
}

}  // namespace urnic::counters
