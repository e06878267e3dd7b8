// Peers that have connected and say nothing: when the backlog of their listener is full, the oldest
// of them gives way (docs/decisions/silent-peers.md).
#pragma once

#include "base/time.h"
#include "iwarp/ending.h"
#include "iwarp/side_state.h"

namespace urnic::iwarp {

// Its TCP is established: from now on its peer is expected to say something.
void note_silent(const SideState& s, const Connection& c, Instant now);
// The connection of `l` that has been silent for long enough to go, nullptr without one; `soon`:
// when there will be one, if nothing else happens.
Connection* oldest_silent(const SideState& s, Listener& l, Instant now, Instant* soon);
// It goes. False when there is none.
bool make_room(const SideState& s, Ending& ending, Listener& l, Instant now);

}  // namespace urnic::iwarp
