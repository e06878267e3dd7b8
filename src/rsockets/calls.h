// Functions for librspreload besides the rsocket calls, and a helper shared by the call files.
#pragma once

#include <memory>

#include "dropin/exported.h"
#include "rsockets/table.h"

// Returns 0: not an rsocket; 1: an rsocket; 2: an rsocket of the process this one was forked from.
URNIC_EXPORTED int urnic_rs_kind(int fd);
// Registers `to`, which the kernel's dup created, as another number of rsocket `fd`. Returns 0 or
// -1.
URNIC_EXPORTED int urnic_rs_dup(int fd, int to);

// FIONBIO, FIONREAD, FIOCLEX and FIONCLEX of an rsocket.
URNIC_EXPORTED int urnic_rs_ioctl(int fd, unsigned long request, void* argument);

URNIC_EXPORTED int urnic_repoll_create(int flags);
struct epoll_event;
URNIC_EXPORTED int urnic_repoll_ctl(int epfd, int op, int fd, epoll_event* event);
URNIC_EXPORTED int urnic_repoll_wait(int epfd, epoll_event* events, int most, int timeout);

namespace urnic::rsockets {

// The program's rsocket with this number; null with errno.
std::shared_ptr<Socket> lookup(int fd);

}  // namespace urnic::rsockets
