// Descriptors that must belong to one process only: sockets, devices, locks. A child inherits them
// at fork and would keep an address, a port or a connection of its parent while it lives, so the
// child closes them (device/forked.h).
#pragma once

namespace urnic::private_descriptors {

// Registers `fd`. Invalid numbers, and those from 2^20 on, are ignored. Any thread.
void add(int fd);
// Call it before `fd` is closed or given to another owner.
void remove(int fd);
// Removes the lowest registered descriptor and returns it; -1 if there are none.
int take();

}  // namespace urnic::private_descriptors
