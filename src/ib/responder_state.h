// The state of the responder half of one RC queue pair, and what it says of a request. Its
// functions are in judge_request.cpp (is it to be taken?), responder.cpp (what becomes of it),
// behind_gap.cpp (of what comes too early), park.cpp (of what finds no receive) and answers.cpp
// (what goes back).
#pragma once

#include <cstdint>

#include "ib/context.h"
#include "ib/held_packets.h"
#include "ib/message_counters.h"
#include "ib/packet.h"
#include "ib/recovery.h"
#include "ib/resources.h"
#include "verbs/memory.h"
#include "verbs/receive_queue.h"

namespace urnic::ib {

// What is found of a request, in the order it is looked for (IB-18..IB-31).
enum class Verdict : std::uint8_t {
  Accept,
  Duplicate,      // before the expected PSN
  OutOfSequence,  // something before it was lost: NAK, once
  // At the expected PSN. Each is told by its NAK and, all but NotReady, ends the queue pair.
  InvalidRequest,
  WrongDomain,  // XRC: the queue it names is of another domain
  NotReady,     // no receive is posted, or not yet: RNR NAK, the peer comes again
  RemoteAccess,
  Operational,  // a fault of our own
  // The message is taken, and its receive completes with an error: the key that it was to
  // invalidate stays. No NAK says so; the queue pair ends behind the ACK.
  KeyStays,
  // Nothing is looked at any more: the queue pair has failed.
  Ignored,
};
constexpr bool is_fatal(Verdict v) {
  return v == Verdict::InvalidRequest || v == Verdict::WrongDomain || v == Verdict::RemoteAccess ||
         v == Verdict::Operational || v == Verdict::KeyStays;
}

// The message of which a part has come; of READs and atomics there are no parts.
struct IncomingMessage {
  Family family = Family::Reserved;  // Send or Write; Reserved: none
  std::uint32_t bytes = 0;           // so far
  // Write: where the next byte goes, and all that was announced.
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;

  bool open() const { return family != Family::Reserved; }
};

// The one NAK that may be outstanding.
struct OwedNak {
  Verdict why = Verdict::Accept;  // Accept: none
  Psn refused;                    // OutOfSequence: the furthest that came behind the gap
  std::uint8_t timer = 0;         // NotReady: RNR timer code

  bool owed() const { return why != Verdict::Accept; }
};

struct ResponderCounters {
  std::uint64_t requests = 0;            // packets accepted
  std::uint64_t duplicates = 0;          // packets
  std::uint64_t out_of_sequence = 0;     // packets
  std::uint64_t held = 0;                // of these kept until their turn
  std::uint64_t placed = 0;              // of these in their place at once (S-2)
  std::uint64_t parked = 0;              // packets that waited for a receive
  std::uint64_t dropped_duplicates = 0;  // of the duplicates not answered: too late
  std::uint64_t acks = 0, sequence_naks = 0, rnr_naks = 0, refusals = 0;  // sent
  std::uint64_t read_responses = 0;                                       // packets sent
  std::uint64_t recovery_attempts = 0;         // gaps behind which something was kept
  std::uint64_t downgrades = 0, upgrades = 0;  // FAST to SLOW, and back
  std::uint64_t store_full = 0;                // of the downgrades: for want of room
  std::uint64_t sacks = 0;                     // sent (S-6)
  // XRC, of the refusals: a queue that is not there, or not the one of the message; one of another
  // domain.
  std::uint64_t unknown_queues = 0, wrong_domains = 0;
};

struct ResponderState {
  ResponderState(const QpAttributes& attributes, verbs::ReceiveQueue* receives,
                 verbs::MemoryTable* table, HeldPool* pool)
      : qp(&attributes),
        rq(receives),
        memory(table),
        pd(attributes.pd),
        expected(attributes.rq_psn),
        resources(attributes.responder_depth),
        held(pool, attributes.loss.store_packets, attributes.pmtu()),
        recovery(attributes.loss) {}

  // SACKs report to the peer what is kept, not only that something is missing (S-6).
  bool reports_held() const {
    return qp->peer_selective && recovery.type() == ConnectionType::Fast;
  }
  // Who asks for memory here.
  verbs::Requester peer() const { return {pd, qp->number}; }
  // Whose keys the receives name.
  verbs::PdId receive_pd() const { return rq->shared() != nullptr ? rq->shared()->pd() : qp->pd; }

  const QpAttributes* qp;
  verbs::ReceiveQueue* rq;
  verbs::MemoryTable* memory;
  verbs::PdId pd;  // whose memory requests reach; XRC: that of the queue the last one has named
  Psn expected;    // ePSN
  Msn msn;         // messages completed
  IncomingMessage message;
  Resources resources;
  HeldPackets held;  // behind a gap
  Recovery recovery;
  // S-9: the first of those kept is the expected one, and waits for a receive.
  bool parked = false;
  bool gap_unsaid = false;            // a gap showed meanwhile, and drew no NAK
  bool watch = false;                 // what is taken concerns one of these two
  Verdict refused = Verdict::Accept;  // why, the last time; while `silent`
  OwedNak nak;
  // A NAK has been sent, or is owed, and nothing was accepted since: no further one (IB-52).
  bool silent = false;
  bool ack_due = false;               // somebody asked
  bool sack_due = false;              // more is kept than the peer has been told (S-6)
  Verdict failure = Verdict::Accept;  // fatal: nothing is taken any more
  bool ended = false;                 // and its NAK has left
  ResponderCounters counters;
  TakenMessages messages;
};

}  // namespace urnic::ib
