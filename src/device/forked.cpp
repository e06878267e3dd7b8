#include "device/forked.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/private_descriptors.h"

namespace urnic::device {

void let_private_descriptors_go() {
  int nothing = eventfd(0, EFD_CLOEXEC);
  bool is_in_place = false;  // `nothing` has a number that must stay occupied
  for (int fd; (fd = private_descriptors::take()) >= 0;) {
    if (nothing >= 0) {
      dup3(nothing, fd, O_CLOEXEC);
      continue;
    }
    // No number is free except this one.
    close(fd);
    nothing = eventfd(0, EFD_CLOEXEC);
    is_in_place = nothing == fd;
  }
  if (nothing >= 0 && !is_in_place) close(nothing);
}

}  // namespace urnic::device
