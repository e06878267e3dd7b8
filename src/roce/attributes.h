// Modify QP with the attributes of the public API: as values of a move (modify.h), and refusals in
// words.
//
// Under the ownership of the engine.
#pragma once

#include "net/interface.h"
#include "roce/connection_moves.h"
#include "roce/modify.h"
#include "urnic/qp_attributes.h"
#include "urnic/status.h"
#include "verbs/queue_pair.h"

namespace urnic::roce {

// The move that the attributes ask for. Errors: invalid_argument (a value that cannot be, or no
// address), unreachable (no local address has a route to the peer's).
Result<QpChange> change_of(verbs::QpState from, verbs::QpState to, const QpAttributes&,
                           const net::Interface&);
// Why `asked` was refused. `mtu`: of IP.
Error refusal(Modified, const verbs::QueuePair&, const QpChange& asked, std::uint32_t mtu);
// An address vector. Errors: as change_of().
Result<ib::AddressVector> vector_of(const QpPath&, const net::Interface&);
// What the moves of a queue pair have set so far, of what its service has.
QpAttributes attributes_of(const verbs::QueuePair&);
// The same of a connection whose queue pair its program moves. `known`: the peer has said its part.
QpAttributes attributes_of(const ConnectionTerms& terms, bool known);

}  // namespace urnic::roce
