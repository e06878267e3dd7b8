#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "cli/command.h"
#include "cli/runtime.h"

namespace {

// If a standard descriptor is closed, opens it on something unusable in that direction. Otherwise
// the next file or socket would take its number and receive the messages.
void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    [[maybe_unused]] const int taken = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  const int status = urnic::cli::run_cli(argc, argv);
  // A full disk or a closed pipe is only detected by this flush.
  errno = 0;
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (written || status != 0) return status;
  const int why = errno;
  urnic::cli::complain("", std::string("cannot write standard output") +
                               (why != 0 ? std::string(": ") + std::strerror(why) : ""));
  return urnic::cli::kExitFailed;
}
