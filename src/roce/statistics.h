// Counters of the InfiniBand transport of one engine. Plain numbers; monotonic.
#pragma once

#include <cstdint>

#include "ib/check.h"
#include "ib/responder_state.h"
#include "ib/send_state.h"

namespace urnic::roce {

struct Statistics {
  std::uint64_t received = 0, sent = 0;  // datagrams to our port; packets that left
  std::uint64_t unroutable = 0;          // packets lost here: nobody answers on the way
  ib::DropCounters drops;                // of what was received
  // Of all queue pairs, those that have gone included.
  ib::RequesterCounters requesters;
  ib::ResponderCounters responders;
};

inline void add(ib::RequesterCounters* to, const ib::RequesterCounters& c) {
  to->packets += c.packets;
  to->repeated += c.repeated;
  to->acks += c.acks;
  to->duplicates += c.duplicates;
  to->ghosts += c.ghosts;
  to->malformed += c.malformed;
  to->timeouts += c.timeouts;
  to->sequence_naks += c.sequence_naks;
  to->implied_naks += c.implied_naks;
  to->rnr_naks += c.rnr_naks;
  to->probes += c.probes;
  to->probe_losses += c.probe_losses;
}
inline void add(ib::ResponderCounters* to, const ib::ResponderCounters& c) {
  to->requests += c.requests;
  to->duplicates += c.duplicates;
  to->out_of_sequence += c.out_of_sequence;
  to->dropped_duplicates += c.dropped_duplicates;
  to->acks += c.acks;
  to->sequence_naks += c.sequence_naks;
  to->rnr_naks += c.rnr_naks;
  to->refusals += c.refusals;
  to->read_responses += c.read_responses;
}

}  // namespace urnic::roce
