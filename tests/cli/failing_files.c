/* Preloaded into a program (LD_PRELOAD): pread, pwrite and fsync of regular files fail with EIO
   from call number $FAIL_FROM on, but only calls of the kind $FAIL_KIND (r, w or s). For
   failing_files_test.sh. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>

static int fails(int fd, char kind) {
  static int calls;
  const char* wanted = getenv("FAIL_KIND");
  const char* from = getenv("FAIL_FROM");
  struct stat st;
  if (wanted == NULL || from == NULL || wanted[0] != kind) return 0;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return 0;
  if (++calls < atoi(from)) return 0;
  errno = EIO;
  return 1;
}

#define PASS(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pread64(int fd, void* to, size_t n, off64_t at);
ssize_t pwrite64(int fd, const void* from, size_t n, off64_t at);
int fsync(int fd);

ssize_t pread64(int fd, void* to, size_t n, off64_t at) {
  return fails(fd, 'r') ? -1 : PASS(pread64)(fd, to, n, at);
}
ssize_t pread(int fd, void* to, size_t n, off_t at) {
  return pread64(fd, to, n, at);
}
ssize_t pwrite64(int fd, const void* from, size_t n, off64_t at) {
  return fails(fd, 'w') ? -1 : PASS(pwrite64)(fd, from, n, at);
}
ssize_t pwrite(int fd, const void* from, size_t n, off_t at) {
  return pwrite64(fd, from, n, at);
}
int fsync(int fd) {
  return fails(fd, 's') ? -1 : PASS(fsync)(fd);
}
