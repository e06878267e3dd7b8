// Modify QP with the attributes of the public API: converts them to a QpChange (modify.h), and
// turns refusals into error texts.
//
// Called under the ownership of the engine.
#pragma once

#include "net/interface.h"
#include "roce/connection_moves.h"
#include "roce/modify.h"
#include "urnic/qp_attributes.h"
#include "urnic/status.h"
#include "verbs/queue_pair.h"

namespace urnic::roce {

// The change that the attributes describe. Errors: invalid_argument (an invalid value, or not an
// address), unreachable (no local address has a route to the peer's address).
Result<QpChange> change_of(verbs::QpState from, verbs::QpState to, const QpAttributes&,
                           const net::Interface&);
// The error for a refused change `asked`. `mtu`: the IP MTU of the route to its peer.
Error refusal(Modified, const verbs::QueuePair&, const QpChange& asked, std::uint32_t mtu);
// Converts an address vector. Errors: as change_of().
Result<ib::AddressVector> vector_of(const QpPath&, const net::Interface&);
// The attributes that the changes of a queue pair have set so far, as far as its service has them.
QpAttributes attributes_of(const verbs::QueuePair&);
// The same for a connection whose program moves the queue pair itself. `known`: the peer's values
// have arrived.
QpAttributes attributes_of(const ConnectionTerms& terms, bool known);

}  // namespace urnic::roce
