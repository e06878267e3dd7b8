// The files of counters in the folder of a user's sockets (stats_directory()): adding them up, and
// writing the sums into the tree of `urnic run --sysfs`. libsysfsview.so contains this too, so it
// needs no C++ run-time and allocates no memory.
//
// A lock on a file of the folder is held meanwhile. If another process keeps it for long, nothing
// is done.
#pragma once

#include <cstddef>
#include <cstdint>

#include "counters/page.h"

namespace urnic::counters {

// Holds the lock of the folder during its life.
class FolderLock {
 public:
  explicit FolderLock(const char* folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  int error() const { return error_; }    // an errno value; EBUSY: another process keeps the lock
  int folder() const { return folder_; }  // its descriptor

 private:
  int folder_ = -1, lock_ = -1, error_ = 0;
};

struct Sum {
  std::size_t entries = 0;
  Entry entry[kMostEntries] = {};
};

// The sum over running and ended processes. Needs the lock.
Sum add_up(int folder, const DeviceName& device);
// Adds pages of ended processes to the totals and deletes them, at most kAtOnce. Needs the lock.
void merge_ended(int folder);
inline constexpr int kAtOnce = 1000;

// Writes the sums into the counter files of `tree` that differ. Each is replaced as a whole.
// Returns an errno value; ENOENT: it is no such tree.
int refresh_tree(const char* tree, const char* folder);

// False if a text does not fit.
bool set_name(DeviceName* to, const char* section, const char* port);

}  // namespace urnic::counters
