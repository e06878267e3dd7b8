// Modify QP of the public API: attributes of the program as those of RoCE's side, and refusals in
// words.
#pragma once

#include "engine/engine.h"
#include "roce/modify.h"
#include "urnic/qp_attributes.h"
#include "urnic/status.h"
#include "verbs/queue_pair.h"

namespace urnic::detail {

// What `engine` is to be asked. Errors: invalid_argument (a value that cannot be, or no address),
// unreachable (no local address has a route to the peer's).
Result<roce::QpChange> change_of(verbs::QpState from, verbs::QpState to, const QpAttributes&,
                                 const engine::Engine& engine);
// Moves it. Under the ownership of its engine, with posts kept away.
Result<void> modify_roce(engine::Engine&, verbs::QueuePair&, verbs::QpState to, const QpAttributes&,
                         Instant now);
// What its moves have set so far, of what its service has. Under the ownership of its engine.
QpAttributes attributes_of(const verbs::QueuePair& of_roce);
// The same of a connection whose queue pair its program moves. `known`: the peer has said its part.
QpAttributes attributes_of(const engine::RoceTerms& terms, bool known);
// An address handle of RoCE's side (never 0). Errors: as change_of() says of a path; no_memory.
// Under the ownership of its engine.
Result<std::uint32_t> create_handle(engine::Engine&, const QpPath&, Instant now);
// What a move that the state does not allow is answered with.
Error no_such_move(verbs::QpState from, verbs::QpState to);

}  // namespace urnic::detail
