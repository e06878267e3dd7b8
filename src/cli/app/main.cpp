#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "cli/command.h"
#include "cli/runtime.h"

int main(int argc, char** argv) {
  const int status = urnic::cli::run_cli(argc, argv);
  // What a full disk or a closed pipe did not take is known only now.
  errno = 0;
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (written || status != 0) return status;
  const int why = errno;
  urnic::cli::complain("", std::string("standard output could not be written") +
                               (why != 0 ? std::string(": ") + std::strerror(why) : ""));
  return urnic::cli::kExitFailed;
}
