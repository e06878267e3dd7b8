// Peers that have connected and send nothing. If the backlog of their listener is full, or an
// address has its share of it, the oldest of them makes room (docs/decisions/silent-peers.md).
#pragma once

#include "base/time.h"
#include "iwarp/ending.h"
#include "iwarp/side_state.h"

namespace urnic::iwarp {

// TCP is established: from now on the peer is expected to send data.
void note_silent(const SideState& s, const Connection& c, Instant now);
// True if no more connections of `peer` may wait: all places are taken, or it has its share.
bool is_full_for(const Listener& l, const IpAddress& peer);
// Returns the connection of `l` that has been silent long enough to make room for one of `peer`;
// nullptr if there is none. `soon`: when there will be one, if nothing else happens. A peer that
// has its share makes room itself. Otherwise a connection of an address that has its share goes, or
// else the oldest of all.
Connection* oldest_silent(const SideState& s, Listener& l, const IpAddress& peer, Instant now,
                          Instant* soon);
// Ends that connection. Returns false if there is none.
bool make_room(const SideState& s, Ending& ending, Listener& l, const IpAddress& peer, Instant now);

}  // namespace urnic::iwarp
