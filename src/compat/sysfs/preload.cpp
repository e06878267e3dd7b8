// libsysfsview.so: preloaded, it shows a program the files in which a kernel lists its RDMA devices
// (`urnic run --sysfs` has written them, sysfs_tree.h). Calls with a path among those get the path
// of the copy; all others go on as they are. Children of the program see the same.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>

#include "compat/next_function.h"
#include "compat/sysfs/path.h"

// Macros, or functions of other names, where the headers check arguments.
#undef open
#undef open64
#undef openat
#undef openat64
#undef realpath

namespace {

using urnic::compat::next_function;

// A path for the call behind. It has the length of its longest, and lives as long as the call.
class Led {
 public:
  explicit Led(const char* path)
      : path_(
            urnic::compat::led(path, getenv(urnic::compat::kSysfsVariable), room_, sizeof room_)) {}
  operator const char*() const { return path_; }  // NOLINT: it is one

 private:
  char room_[PATH_MAX];
  const char* path_;
};

mode_t mode_of(int flags, va_list words) {
  const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return makes ? va_arg(words, mode_t) : 0;
}

}  // namespace

// A function one of whose arguments is a `path`; behind the parameters, how the call goes on.
#define URNIC_LED(result, name, parameters, ...)     \
  extern "C" result name parameters {                \
    using F = result parameters;                     \
    static F* kept;                                  \
    const Led led(path);                             \
    return next_function(&kept, #name)(__VA_ARGS__); \
  }

// One with `flags`, behind which a mode may stand.
#define URNIC_OPENS(name, parameters, ...)                        \
  extern "C" int name parameters {                                \
    using F = int parameters;                                     \
    static F* kept;                                               \
    va_list words;                                                \
    va_start(words, flags);                                       \
    const mode_t mode = mode_of(flags, words);                    \
    va_end(words);                                                \
    const Led led(path);                                          \
    return next_function(&kept, #name)(__VA_ARGS__, flags, mode); \
  }

// ---- opened

URNIC_OPENS(open, (const char* path, int flags, ...), led)
URNIC_OPENS(open64, (const char* path, int flags, ...), led)
URNIC_OPENS(openat, (int folder, const char* path, int flags, ...), folder, led)
URNIC_OPENS(openat64, (int folder, const char* path, int flags, ...), folder, led)
URNIC_LED(int, __open_2, (const char* path, int flags), led, flags)
URNIC_LED(int, __open64_2, (const char* path, int flags), led, flags)
URNIC_LED(int, __openat_2, (int folder, const char* path, int flags), folder, led, flags)
URNIC_LED(int, __openat64_2, (int folder, const char* path, int flags), folder, led, flags)
URNIC_LED(FILE*, fopen, (const char* path, const char* mode), led, mode)
URNIC_LED(FILE*, fopen64, (const char* path, const char* mode), led, mode)
URNIC_LED(DIR*, opendir, (const char* path), led)
URNIC_LED(int, scandir,
          (const char* path, dirent*** names, int (*chosen)(const dirent*),
           int (*order)(const dirent**, const dirent**)),
          led, names, chosen, order)
URNIC_LED(int, scandir64,
          (const char* path, dirent64*** names, int (*chosen)(const dirent64*),
           int (*order)(const dirent64**, const dirent64**)),
          led, names, chosen, order)
URNIC_LED(int, chdir, (const char* path) noexcept, led)

// ---- looked at

URNIC_LED(int, stat, (const char* path, struct stat* s) noexcept, led, s)
URNIC_LED(int, stat64, (const char* path, struct stat64* s) noexcept, led, s)
URNIC_LED(int, lstat, (const char* path, struct stat* s) noexcept, led, s)
URNIC_LED(int, lstat64, (const char* path, struct stat64* s) noexcept, led, s)
URNIC_LED(int, fstatat, (int folder, const char* path, struct stat* s, int flags) noexcept, folder,
          led, s, flags)
URNIC_LED(int, fstatat64, (int folder, const char* path, struct stat64* s, int flags) noexcept,
          folder, led, s, flags)
URNIC_LED(int, statx,
          (int folder, const char* path, int flags, unsigned mask, struct statx* s) noexcept,
          folder, led, flags, mask, s)
// As programs built before glibc 2.33 call them.
URNIC_LED(int, __xstat, (int version, const char* path, struct stat* s), version, led, s)
URNIC_LED(int, __xstat64, (int version, const char* path, struct stat64* s), version, led, s)
URNIC_LED(int, __lxstat, (int version, const char* path, struct stat* s), version, led, s)
URNIC_LED(int, __lxstat64, (int version, const char* path, struct stat64* s), version, led, s)
URNIC_LED(int, __fxstatat, (int version, int folder, const char* path, struct stat* s, int flags),
          version, folder, led, s, flags)
URNIC_LED(int, __fxstatat64,
          (int version, int folder, const char* path, struct stat64* s, int flags), version, folder,
          led, s, flags)
URNIC_LED(int, access, (const char* path, int mode) noexcept, led, mode)
URNIC_LED(int, faccessat, (int folder, const char* path, int mode, int flags) noexcept, folder, led,
          mode, flags)
URNIC_LED(int, eaccess, (const char* path, int mode) noexcept, led, mode)
URNIC_LED(int, euidaccess, (const char* path, int mode) noexcept, led, mode)
URNIC_LED(ssize_t, readlink, (const char* path, char* to, size_t size) noexcept, led, to, size)
URNIC_LED(ssize_t, readlinkat, (int folder, const char* path, char* to, size_t size) noexcept,
          folder, led, to, size)
URNIC_LED(char*, realpath, (const char* path, char* to) noexcept, led, to)
URNIC_LED(char*, __realpath_chk, (const char* path, char* to, size_t size) noexcept, led, to, size)
URNIC_LED(char*, canonicalize_file_name, (const char* path) noexcept, led)
