// Descriptors that are of one process alone: sockets, devices, locks. A child of a fork has them as
// well, and would keep an address, a port or a connection of its parent for as long as it lives.
#pragma once

namespace urnic::private_descriptors {

// `fd` is one from now on; numbers that are none, and those above 2^20, are ignored. Any thread.
void add(int fd);
// Before `fd` is closed, or becomes somebody else's.
void remove(int fd);
// In a child, as pthread_atfork's handler: each of them is let go. Its number stays taken, by a
// descriptor that refers to nothing, so that what an object of the parent's closes later is no file
// of the child's.
void let_go_in_child();

}  // namespace urnic::private_descriptors
