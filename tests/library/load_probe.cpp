// Loads the given library between two marks that load_test.cpp finds among the system calls.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

#include "library/load_mark.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  syscall(SYS_prctl, urnic::test::kMark, 0, 0, 0, 0);
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  if (dlclose(library) != 0) return 4;
  syscall(SYS_prctl, urnic::test::kMark, 0, 0, 0, 0);
  return 0;
}
