// Peers that have connected and say nothing: when the backlog of their listener is full, or an
// address has its share of it, the oldest of them gives way (docs/decisions/silent-peers.md).
#pragma once

#include "base/time.h"
#include "iwarp/ending.h"
#include "iwarp/side_state.h"

namespace urnic::iwarp {

// Its TCP is established: from now on its peer is expected to say something.
void note_silent(const SideState& s, const Connection& c, Instant now);
// Whether no more connections of `peer` may wait: all places are taken, or it has its share.
bool is_full_for(const Listener& l, const IpAddress& peer);
// The connection of `l` that has been silent for long enough to go for one of `peer`, nullptr
// without one; `soon`: when there will be one, if nothing else happens. A peer that has its share
// makes room itself; else one of an address that has its share goes, or the oldest of all.
Connection* oldest_silent(const SideState& s, Listener& l, const IpAddress& peer, Instant now,
                          Instant* soon);
// It goes. False when there is none.
bool make_room(const SideState& s, Ending& ending, Listener& l, const IpAddress& peer, Instant now);

}  // namespace urnic::iwarp
