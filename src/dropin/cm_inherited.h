// Listeners that a child of a fork inherits from its parent. While the parent lives they belong to
// the parent. When it has ended, as the parent of a daemon does, the child listens in its place.
// With a kernel's device a listener is a descriptor, and also continues in the child.
#pragma once

#include <cstdint>

namespace urnic::dropin {

struct CmId;

// `id` listens from now on: a child of a fork inherits it.
void remember_listener(CmId* id, int backlog);
// `id` is destroyed, or does not listen any more.
void forget_listener(CmId* id);
// For an inherited id of a child: returns true if the child does not listen in the parent's place;
// then it never will. False when `id` is the child's own.
bool let_inherited_go(CmId* id);
// The program of a child binds a port at which the child listens in its parent's place: those
// listeners are removed. Returns true if there were any.
bool inherited_gives_way(std::uint16_t port);

}  // namespace urnic::dropin
