// What librspreload needs besides the calls of rsockets, and what the files of calls share.
#pragma once

#include <memory>

#include "dropin/exported.h"
#include "rsockets/table.h"

// 0: no rsocket; 1: an rsocket; 2: one of the process this one was forked from.
URNIC_EXPORTED int urnic_rs_kind(int fd);
// `to` is, by the kernel's dup, another number for `fd`. 0 or -1.
URNIC_EXPORTED int urnic_rs_dup(int fd, int to);

// FIONBIO, FIONREAD and FIOCLEX, FIONCLEX of an rsocket.
URNIC_EXPORTED int urnic_rs_ioctl(int fd, unsigned long request, void* argument);

URNIC_EXPORTED int urnic_repoll_create(int flags);
struct epoll_event;
URNIC_EXPORTED int urnic_repoll_ctl(int epfd, int op, int fd, epoll_event* event);
URNIC_EXPORTED int urnic_repoll_wait(int epfd, epoll_event* events, int most, int timeout);

namespace urnic::rsockets {

// The program's rsocket by this number; null with errno.
std::shared_ptr<Socket> lookup(int fd);

}  // namespace urnic::rsockets
