// A request that finds no receive (S-9): while the queue pair is FAST, it and the requests after it
// wait in the store, and no RNR NAK is sent. The peer only sees a late response; its transport
// timer runs, so the owner limits the time. With a shared receive queue nothing waits, since the
// queue pair would not learn of a new receive.
#pragma once

#include <algorithm>

#include "ib/packet.h"
#include "ib/responder_state.h"

namespace urnic::ib {

// The expected request has been judged NotReady. False: it has to be refused now.
bool park(ResponderState&, const ParsedPacket& request);

// Ends the wait: the RNR NAK becomes due, and the peer repeats the request. The requests after it
// stay in the store.
void stop_waiting(ResponderState&);

// True if no further packet may wait.
inline bool waits_too_many(const ResponderState& s) {
  const LossRules& rules = s.qp->loss;
  return s.parked && s.held.size() >= std::min(rules.rnr_park, rules.store_packets);
}

// To be called when everything in order is done: reports a gap that was found while no NAK could be
// sent.
void report_deferred_gap(ResponderState&);

}  // namespace urnic::ib
