// Descriptors that are of one process alone: sockets, devices, locks. A child of a fork has them as
// well, and would keep an address, a port or a connection of its parent for as long as it lives: it
// lets them go (device/forked.h).
#pragma once

namespace urnic::private_descriptors {

// `fd` is one from now on; numbers that are none, and those from 2^20 on, are ignored. Any thread.
void add(int fd);
// Before `fd` is closed, or becomes somebody else's.
void remove(int fd);
// The lowest of them, which is none any more; -1 when there are none.
int take();

}  // namespace urnic::private_descriptors
