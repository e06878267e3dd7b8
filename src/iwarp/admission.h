// What the gate of a listener says to those who want a connection: counted, and noted for a log,
// when it is no.
#pragma once

#include <optional>

#include "base/gate.h"
#include "iwarp/side_state.h"

namespace urnic::iwarp {

// Whether somebody who has asked could have a connection now (AC-2, AC-3); he has no place yet.
bool may_ask(SideState& s, const Listener& l, const FlowKey& key, Instant now);
// A place for who has finished TCP's handshake (AC-4); nullopt: there is none for him.
std::optional<Admission> admit(SideState& s, const Listener& l, const FlowKey& key, Instant now);

}  // namespace urnic::iwarp
