#include "counters/publisher.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/private_descriptors.h"
#include "counters/files.h"
#include "counters/names.h"

namespace urnic::counters {

Publisher::Publisher(std::string folder, std::string section, std::string port)
    : folder_(std::move(folder)),
      section_(std::move(section)),
      port_(std::move(port)),
      owner_(getpid()) {}

Publisher::~Publisher() {
  if (page_ == nullptr) return;
  munmap(page_, sizeof(Page));
  private_descriptors::remove(fd_);
  close(fd_);  // now the page is one of an ended process
  if (getpid() != owner_) return;
  const FolderLock lock(folder_.c_str());
  if (lock.error() == 0) merge_ended(lock.folder());
}

// Under the lock of the folder, so that nobody takes the unfinished page for one of an ended
// process.
int Publisher::open() {
  if (page_ != nullptr) return 0;
  if (section_.size() >= kSectionRoom || port_.size() >= kPortRoom) return ENAMETOOLONG;
  const FolderLock lock(folder_.c_str());
  if (lock.error() != 0) return lock.error();
  merge_ended(lock.folder());
  std::uint64_t id = 0;
  while (id == 0) {
    if (getrandom(&id, sizeof id, 0) != sizeof id) return errno;
  }
  char name[64];
  std::snprintf(name, sizeof name, "%d-%016llx%s", owner_, static_cast<unsigned long long>(id),
                kEnding);
  const int fd = openat(lock.folder(), name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  private_descriptors::add(fd);
  const int error = map(fd, id);
  if (error == 0) return 0;
  unlinkat(lock.folder(), name, 0);
  private_descriptors::remove(fd);
  close(fd);
  return error;
}

// Storage is allocated beforehand: a write to a mapped file that the folder has no room for would
// be a fatal signal.
int Publisher::map(int fd, std::uint64_t id) {
  if (const int e = posix_fallocate(fd, 0, sizeof(Page)); e != 0) return e;
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) return errno;
  void* const at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return errno;
  fd_ = fd;
  page_ = static_cast<Page*>(at);
  page_->id = id;
  set_name(&page_->device, section_.c_str(), port_.c_str());
  for (const PortCounter& c : port_counters()) {
    if (c.value == nullptr) continue;
    std::strcpy(page_->entry[page_->entries++].path, c.path);
  }
  std::memcpy(page_->magic, kMagic, sizeof page_->magic);
  return 0;
}

int Publisher::publish(const EngineStats& s) {
  if (const int e = open(); e != 0) return e;
  Entry* e = page_->entry;
  for (const PortCounter& c : port_counters()) {
    if (c.value == nullptr) continue;
    const std::uint64_t value = std::max(e->value, c.value(s));
    __atomic_store_n(&e->value, value, __ATOMIC_RELAXED);
    ++e;
  }
  return 0;
}

}  // namespace urnic::counters
