// Handles the descriptors of the parent's devices in a forked child.
#pragma once

namespace urnic::device {

// The child's handler of pthread_atfork: it releases each private descriptor. The number stays
// occupied by a descriptor that refers to nothing, so that when an object of the parent's closes it
// later, no file of the child is closed.
void let_private_descriptors_go();

}  // namespace urnic::device
