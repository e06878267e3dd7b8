// Listeners that a child of a fork has from its parent. While the parent lives they are the
// parent's. When it has ended, as that of a daemon does, the child listens in its place: a listener
// of a kernel's device is a descriptor, and goes on in the child.
#pragma once

#include <cstdint>

namespace urnic::dropin {

struct CmId;

// `id` listens from now on: a child of a fork gets it.
void remember_listener(CmId* id, int backlog);
// `id` goes, or listens no more.
void forget_listener(CmId* id);
// In a child, of what it has from its parent: true when the child does not listen in the parent's
// place, and now never will. False when `id` is the child's own.
bool let_inherited_go(CmId* id);
// The program of a child binds a port itself at which the child listens in its parent's place:
// those listeners go. Whether there were any.
bool inherited_gives_way(std::uint16_t port);

}  // namespace urnic::dropin
