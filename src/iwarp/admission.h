// The decision of a listener's gate about new connections. Refusals are counted and noted for the
// log.
#pragma once

#include <optional>

#include "base/gate.h"
#include "iwarp/side_state.h"

namespace urnic::iwarp {

// True if a peer that requests a connection could get one now (AC-2, AC-3). Does not give it a
// place.
bool may_ask(SideState& s, const Listener& l, const FlowKey& key, Instant now);
// Gives a place to a peer that has completed the TCP handshake (AC-4); nullopt if there is none for
// it.
std::optional<Admission> admit(SideState& s, const Listener& l, const FlowKey& key, Instant now);

}  // namespace urnic::iwarp
