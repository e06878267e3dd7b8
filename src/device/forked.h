// What a child of a fork does with what its parent's devices have.
#pragma once

namespace urnic::device {

// In the child, as pthread_atfork's handler: each private descriptor is let go. Its number stays
// taken, by a descriptor that refers to nothing, so that what an object of the parent's closes
// later is no file of the child's.
void let_private_descriptors_go();

}  // namespace urnic::device
