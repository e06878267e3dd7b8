// Counters of the InfiniBand transport of one engine. Plain numbers; monotonic.
#pragma once

#include <cstdint>

#include "ib/check.h"
#include "ib/responder_state.h"
#include "ib/send_state.h"

namespace urnic::roce {

// UC and UD.
struct UnreliableCounters {
  std::uint64_t sent = 0;      // packets handed out, including those lost here
  std::uint64_t too_long = 0;  // UD requests too long to be sent at all (IB-100)
  std::uint64_t taken = 0;     // packets
  std::uint64_t out_of_sequence = 0, refused = 0;  // packets dropped by the half
  std::uint64_t lost_messages = 0;                 // UC messages that began and never ended
};

// S-10.
struct CongestionCounters {
  std::uint64_t marked = 0, cnps_sent = 0;  // packets that arrived marked; CNPs sent
  ib::CongestionCounters own;               // of the requester
};

// Whole messages, for any service.
struct MessageCounters {
  ib::SentMessages sent;
  ib::TakenMessages taken;
};

struct Context;
MessageCounters messages_of(const Context&);
// For that queue pair; all zero with RC.
UnreliableCounters counters_of(const Context&);
CongestionCounters congestion_of(const Context&);

struct Statistics {
  std::uint64_t received = 0, sent = 0;  // datagrams to our port; packets sent
  std::uint64_t unroutable = 0;          // packets lost here: the next hop is unreachable
  // S-7. Refused: another version, or not from the peer.
  std::uint64_t hellos_sent = 0, hellos_received = 0, hellos_refused = 0;
  ib::DropCounters drops;  // of received packets
  // For all queue pairs, destroyed ones included.
  ib::RequesterCounters requesters;
  ib::ResponderCounters responders;
  UnreliableCounters unreliable;
  CongestionCounters congestion;
  MessageCounters messages;
};

// Adds what the queue pair's halves have counted.
void add(Statistics*, const Context&);
inline void add(UnreliableCounters* to, const UnreliableCounters& c) {
  to->sent += c.sent;
  to->too_long += c.too_long;
  to->taken += c.taken;
  to->out_of_sequence += c.out_of_sequence;
  to->refused += c.refused;
  to->lost_messages += c.lost_messages;
}

inline void add(MessageCounters* to, const MessageCounters& c) {
  to->sent += c.sent;
  to->taken += c.taken;
}
inline void add(CongestionCounters* to, const CongestionCounters& c) {
  to->marked += c.marked;
  to->cnps_sent += c.cnps_sent;
  to->own.cnps += c.own.cnps;
  to->own.cnps_ignored += c.own.cnps_ignored;
  to->own.cuts += c.own.cuts;
}

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
  to->sacks += c.sacks;
  to->alone += c.alone;
  to->needless += c.needless;
  to->sacks_invalid += c.sacks_invalid;
  to->ahead += c.ahead;
  to->missing += c.missing;
  to->retries_exhausted += c.retries_exhausted;
  to->rnr_retries_exhausted += c.rnr_retries_exhausted;
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
  to->held += c.held;
  to->placed += c.placed;
  to->parked += c.parked;
  to->recovery_attempts += c.recovery_attempts;
  to->downgrades += c.downgrades;
  to->upgrades += c.upgrades;
  to->store_full += c.store_full;
  to->sacks += c.sacks;
  to->unknown_queues += c.unknown_queues;
  to->wrong_domains += c.wrong_domains;
}

}  // namespace urnic::roce
