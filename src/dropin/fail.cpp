// The results of unsupported functions: every name that has no function of its own in symbols.txt
// jumps here. None of them reports success.
#include <errno.h>

#include <cstdint>

#include "dropin/exported.h"

URNIC_EXPORTED std::intptr_t urnic_fail_errno();
URNIC_EXPORTED std::intptr_t urnic_fail_minus();
URNIC_EXPORTED void* urnic_fail_null();
URNIC_EXPORTED void urnic_fail_nothing();
URNIC_EXPORTED std::intptr_t urnic_fail_old_errno();
URNIC_EXPORTED std::intptr_t urnic_fail_old_minus();
URNIC_EXPORTED void* urnic_fail_old_null();
URNIC_EXPORTED void urnic_fail_old_nothing();

std::intptr_t urnic_fail_errno() {
  errno = EOPNOTSUPP;
  return EOPNOTSUPP;
}

std::intptr_t urnic_fail_minus() {
  errno = EOPNOTSUPP;
  return -1;
}

void* urnic_fail_null() {
  errno = EOPNOTSUPP;
  return nullptr;
}

void urnic_fail_nothing() {}

std::intptr_t urnic_fail_old_errno() {
  errno = ENOSYS;
  return ENOSYS;
}

std::intptr_t urnic_fail_old_minus() {
  errno = ENOSYS;
  return -1;
}

void* urnic_fail_old_null() {
  errno = ENOSYS;
  return nullptr;
}

void urnic_fail_old_nothing() {}
