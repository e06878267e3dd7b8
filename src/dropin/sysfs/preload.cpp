// libsysfsview.so: preloaded, it shows a program the files in which a kernel lists its RDMA devices
// (`urnic run --sysfs` has written them, sysfs_tree.h). In calls with one of those paths, the path
// is replaced by that of the copy; all other calls are unchanged. Children of the program inherit
// this.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>

#include "counters/files.h"
#include "dropin/next_function.h"
#include "dropin/sysfs/path.h"

// These are macros, or functions of other names, where the headers check arguments.
#undef open
#undef open64
#undef openat
#undef openat64
#undef realpath
#undef glob
#undef nftw
#undef fts_open

namespace {

using urnic::dropin::next_function;

const char* root() {
  return getenv(urnic::dropin::kSysfsVariable);
}

// The folder of relative paths in a call with the descriptor `folder`. False if it is unknown.
bool base_of(int folder, char* out, size_t size) {
  const int before = errno;
  ssize_t n;
  if (folder == AT_FDCWD) {
    n = syscall(SYS_getcwd, out, size) > 0 ? static_cast<ssize_t>(strlen(out)) : -1;
  } else {
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", folder);
    n = syscall(SYS_readlinkat, AT_FDCWD, name, out, size - 1);
    if (n >= 0) out[n] = 0;
  }
  errno = before;
  return n > 0 && out[0] == '/';
}

// Brings the counters up to date, at most every kLifespanMs: whatever a program does with a shown
// path, it may read a counter next, by a relative path that is not looked at. Their pages are in
// the folder of the tree.
void refresh_counters() {
  static std::atomic<int64_t> next{0};
  static std::atomic<bool> said{false};
  const int before = errno;
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  const int64_t now = int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1000000;
  int64_t due = next.load();
  if (now >= due && next.compare_exchange_strong(due, now + urnic::counters::kLifespanMs)) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", root());
    char* const slash = strrchr(folder, '/');
    if (slash != nullptr) *slash = 0;
    const int e = urnic::counters::refresh_tree(root(), folder);
    if (e != 0 && e != EBUSY && !said.exchange(true)) {
      dprintf(STDERR_FILENO, "urnic: cannot update the counters in %s: %s\n", root(), strerror(e));
    }
  }
  errno = before;
}

// The path to pass to the next function. It has room for the longest path, and exists during the
// call.
class Led {
 public:
  explicit Led(const char* path, int folder = AT_FDCWD) : path_(path) {
    if (path == nullptr || root() == nullptr) return;
    // Most paths do not contain it; paths below a folder of the copy lead there by themselves.
    if (strstr(path, urnic::dropin::kInEach) == nullptr) return;
    char base[PATH_MAX];
    const bool has_base = path[0] != '/' && base_of(folder, base, sizeof base);
    path_ = urnic::dropin::led(path, has_base ? base : nullptr, root(), room_, sizeof room_);
    if (path_ != path) refresh_counters();
  }
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

// Defines a function with an argument `path` that is relative to the descriptor `from`; the
// arguments of the next function follow the parameters.
#define URNIC_LED_FROM(from, result, name, parameters, ...) \
  extern "C" result name parameters {                       \
    using F = result parameters;                            \
    static F* kept;                                         \
    const Led led(path, from);                              \
    return next_function(&kept, #name)(__VA_ARGS__);        \
  }
#define URNIC_LED(result, name, parameters, ...) \
  URNIC_LED_FROM(AT_FDCWD, result, name, parameters, __VA_ARGS__)

// Defines a function with `flags`, which a mode may follow.
#define URNIC_OPENS(from, name, parameters, ...)                  \
  extern "C" int name parameters {                                \
    using F = int parameters;                                     \
    static F* kept;                                               \
    va_list words;                                                \
    va_start(words, flags);                                       \
    const mode_t mode = mode_of(flags, words);                    \
    va_end(words);                                                \
    const Led led(path, from);                                    \
    return next_function(&kept, #name)(__VA_ARGS__, flags, mode); \
  }

// ---- functions that open

URNIC_OPENS(AT_FDCWD, open, (const char* path, int flags, ...), led)
URNIC_OPENS(AT_FDCWD, open64, (const char* path, int flags, ...), led)
URNIC_OPENS(folder, openat, (int folder, const char* path, int flags, ...), folder, led)
URNIC_OPENS(folder, openat64, (int folder, const char* path, int flags, ...), folder, led)
URNIC_LED(int, __open_2, (const char* path, int flags), led, flags)
URNIC_LED(int, __open64_2, (const char* path, int flags), led, flags)
URNIC_LED_FROM(folder, int, __openat_2, (int folder, const char* path, int flags), folder, led,
               flags)
URNIC_LED_FROM(folder, int, __openat64_2, (int folder, const char* path, int flags), folder, led,
               flags)
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

// ---- functions that look up

URNIC_LED(int, stat, (const char* path, struct stat* s) noexcept, led, s)
URNIC_LED(int, stat64, (const char* path, struct stat64* s) noexcept, led, s)
URNIC_LED(int, lstat, (const char* path, struct stat* s) noexcept, led, s)
URNIC_LED(int, lstat64, (const char* path, struct stat64* s) noexcept, led, s)
URNIC_LED_FROM(folder, int, fstatat,
               (int folder, const char* path, struct stat* s, int flags) noexcept, folder, led, s,
               flags)
URNIC_LED_FROM(folder, int, fstatat64,
               (int folder, const char* path, struct stat64* s, int flags) noexcept, folder, led, s,
               flags)
URNIC_LED_FROM(folder, int, statx,
               (int folder, const char* path, int flags, unsigned mask, struct statx* s) noexcept,
               folder, led, flags, mask, s)
// The forms that programs built before glibc 2.33 call.
URNIC_LED(int, __xstat, (int version, const char* path, struct stat* s), version, led, s)
URNIC_LED(int, __xstat64, (int version, const char* path, struct stat64* s), version, led, s)
URNIC_LED(int, __lxstat, (int version, const char* path, struct stat* s), version, led, s)
URNIC_LED(int, __lxstat64, (int version, const char* path, struct stat64* s), version, led, s)
URNIC_LED_FROM(folder, int, __fxstatat,
               (int version, int folder, const char* path, struct stat* s, int flags), version,
               folder, led, s, flags)
URNIC_LED_FROM(folder, int, __fxstatat64,
               (int version, int folder, const char* path, struct stat64* s, int flags), version,
               folder, led, s, flags)
URNIC_LED(int, access, (const char* path, int mode) noexcept, led, mode)
URNIC_LED_FROM(folder, int, faccessat, (int folder, const char* path, int mode, int flags) noexcept,
               folder, led, mode, flags)
URNIC_LED(int, eaccess, (const char* path, int mode) noexcept, led, mode)
URNIC_LED(int, euidaccess, (const char* path, int mode) noexcept, led, mode)
URNIC_LED(ssize_t, readlink, (const char* path, char* to, size_t size) noexcept, led, to, size)
URNIC_LED_FROM(folder, ssize_t, readlinkat,
               (int folder, const char* path, char* to, size_t size) noexcept, folder, led, to,
               size)
URNIC_LED(char*, realpath, (const char* path, char* to) noexcept, led, to)
URNIC_LED(char*, __realpath_chk, (const char* path, char* to, size_t size) noexcept, led, to, size)
URNIC_LED(char*, canonicalize_file_name, (const char* path) noexcept, led)

// ---- functions that walk: they report the paths that the program knows

namespace {

// In place, because paths only become shorter.
void show(glob_t* g, size_t from) {
  for (size_t i = from; i < g->gl_pathc; ++i) {
    char* const path = g->gl_pathv[g->gl_offs + i];
    const char* const shown = urnic::dropin::shown_as(path, root());
    memmove(path, shown, strlen(shown) + 1);
  }
}

// glob() and its variants.
template <class F, class Errors, class Glob>
int led_glob(F** kept, const char* name, const char* path, int flags, Errors errors, Glob* g) {
  const bool appends = (flags & GLOB_APPEND) != 0;
  const size_t before = appends ? g->gl_pathc : 0;
  if ((flags & GLOB_DOOFFS) == 0 && !appends) g->gl_offs = 0;
  const Led led(path);
  const int e = next_function(kept, name)(led, flags, errors, g);
  if (e == 0) show(reinterpret_cast<glob_t*>(g), before);
  return e;
}

// The program's function for the walk in progress on this thread.
template <class Visit>
thread_local Visit* visit = nullptr;

template <class Stat>
int show_visited(const char* path, const Stat* s, int type, FTW* at) {
  using Visit = int(const char*, const Stat*, int, FTW*);
  const char* const shown = urnic::dropin::shown_as(path, root());
  FTW here = *at;
  here.base -= static_cast<int>(shown - path);
  return visit<Visit>(shown, s, type, &here);
}

template <class F, class Stat>
int led_walk(F** kept, const char* name, const char* path,
             int (*own)(const char*, const Stat*, int, FTW*), int descriptors, int flags) {
  using Visit = int(const char*, const Stat*, int, FTW*);
  const Led led(path);
  Visit* const outer = visit<Visit>;  // a visit may start another walk
  visit<Visit> = own;
  const int e = next_function(kept, name)(led, show_visited<Stat>, descriptors, flags);
  visit<Visit> = outer;
  return e;
}

// The results have the paths of the copy.
template <class F, class Order>
FTS* led_open(F** kept, const char* name, char* const* roots, int flags, Order order) {
  constexpr size_t kRoots = 16;
  size_t n = 0;
  while (roots[n] != nullptr) ++n;
  if (n > kRoots) return next_function(kept, name)(roots, flags, order);
  char room[kRoots][PATH_MAX];
  char* led[kRoots + 1] = {};
  for (size_t i = 0; i < n; ++i) {
    const Led one(roots[i]);
    led[i] = one == roots[i] ? roots[i] : strcpy(room[i], one);
  }
  return next_function(kept, name)(led, flags, order);
}

}  // namespace

extern "C" int glob(const char* path, int flags, int (*errors)(const char*, int), glob_t* g) {
  using F = int(const char*, int, int (*)(const char*, int), glob_t*);
  static F* kept;
  return led_glob(&kept, "glob", path, flags, errors, g);
}
extern "C" int glob64(const char* path, int flags, int (*errors)(const char*, int), glob64_t* g) {
  using F = int(const char*, int, int (*)(const char*, int), glob64_t*);
  static F* kept;
  return led_glob(&kept, "glob64", path, flags, errors, g);
}
extern "C" int nftw(const char* path, __nftw_func_t own, int descriptors, int flags) {
  using F = int(const char*, __nftw_func_t, int, int);
  static F* kept;
  return led_walk<F, struct stat>(&kept, "nftw", path, own, descriptors, flags);
}
extern "C" int nftw64(const char* path, __nftw64_func_t own, int descriptors, int flags) {
  using F = int(const char*, __nftw64_func_t, int, int);
  static F* kept;
  return led_walk<F, struct stat64>(&kept, "nftw64", path, own, descriptors, flags);
}
extern "C" FTS* fts_open(char* const* roots, int flags,
                         int (*order)(const FTSENT**, const FTSENT**)) {
  using F = FTS*(char* const*, int, int (*)(const FTSENT**, const FTSENT**));
  static F* kept;
  return led_open(&kept, "fts_open", roots, flags, order);
}
