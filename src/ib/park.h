// A request that finds no receive (S-9): while the queue pair is FAST it waits in the store, and
// what follows it, instead of drawing an RNR NAK. The peer knows nothing of it but that the answer
// is late; its transport timer runs, so the owner bounds the time. Whoever has a shared receive
// queue is not asked to wait: nobody would tell it of a receive.
#pragma once

#include <algorithm>

#include "ib/packet.h"
#include "ib/responder_state.h"

namespace urnic::ib {

// The expected request has been judged NotReady. False: it is to be refused now.
bool park(ResponderState&, const ParsedPacket& request);

// No further waiting: the RNR NAK is owed, and the request comes again. What follows it stays.
void stop_waiting(ResponderState&);

// More has come than may wait.
inline bool waits_too_many(const ResponderState& s) {
  const LossRules& rules = s.qp->loss;
  return s.parked && s.held.size() >= std::min(rules.rnr_park, rules.store_packets);
}

// Call it when everything that had its turn is done: reports a gap that was found while the peer
// could not be told of it.
void report_deferred_gap(ResponderState&);

}  // namespace urnic::ib
