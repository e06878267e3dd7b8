// The state of the responder half of one RC queue pair, and its verdicts on requests. Its functions
// are in judge_request.cpp (is a request acceptable?), responder.cpp (executing it), behind_gap.cpp
// (requests that arrive too early), park.cpp (requests without a receive) and answers.cpp
// (responses).
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

// The verdict on a request, in the order of the checks (IB-18..IB-31).
enum class Verdict : std::uint8_t {
  Accept,
  Duplicate,      // before the expected PSN
  OutOfSequence,  // a request before it was lost: one NAK
  // At the expected PSN. Each is reported by its NAK and, except NotReady, ends the queue pair.
  InvalidRequest,
  WrongDomain,  // XRC: the queue it names belongs to another domain
  NotReady,     // no receive is posted, or not yet: RNR NAK, the peer retries
  RemoteAccess,
  Operational,  // a local fault
  // The message is accepted, and its receive completes with an error, since the key that it should
  // invalidate stays valid. No NAK is sent; the queue pair ends after the ACK.
  KeyStays,
  // The queue pair has failed and checks no more requests.
  Ignored,
};
constexpr bool is_fatal(Verdict v) {
  return v == Verdict::InvalidRequest || v == Verdict::WrongDomain || v == Verdict::RemoteAccess ||
         v == Verdict::Operational || v == Verdict::KeyStays;
}

// The message that has arrived in part; READs and atomics have no parts.
struct IncomingMessage {
  Family family = Family::Reserved;  // Send or Write; Reserved: none
  std::uint32_t bytes = 0;           // so far
  // Write: destination of the next byte, and the length announced.
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;

  bool open() const { return family != Family::Reserved; }
};

// The only NAK that may be pending.
struct OwedNak {
  Verdict why = Verdict::Accept;  // Accept: none
  Psn refused;                    // OutOfSequence: the furthest PSN received past the gap
  std::uint8_t timer = 0;         // NotReady: RNR timer code

  bool owed() const { return why != Verdict::Accept; }
};

struct ResponderCounters {
  std::uint64_t requests = 0;            // packets accepted
  std::uint64_t duplicates = 0;          // packets
  std::uint64_t out_of_sequence = 0;     // packets
  std::uint64_t held = 0;                // of these kept until their turn
  std::uint64_t placed = 0;              // of these placed immediately (S-2)
  std::uint64_t parked = 0;              // packets that waited for a receive
  std::uint64_t dropped_duplicates = 0;  // duplicates that were too old to be answered
  std::uint64_t acks = 0, sequence_naks = 0, rnr_naks = 0, refusals = 0;  // sent
  std::uint64_t read_responses = 0;                                       // packets sent
  std::uint64_t recovery_attempts = 0;         // gaps past which something was kept
  std::uint64_t downgrades = 0, upgrades = 0;  // FAST to SLOW, and back
  std::uint64_t store_full = 0;                // downgrades for lack of room
  std::uint64_t sacks = 0;                     // sent (S-6)
  // XRC, counted in refusals: the named queue does not exist or is not that of the message; it
  // belongs to another domain.
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

  // True if SACKs report to the peer what is kept, and not only that something is missing (S-6).
  bool reports_held() const {
    return qp->peer_selective && recovery.type() == ConnectionType::Fast;
  }
  // The requester that accesses memory here.
  verbs::Requester peer() const { return {pd, qp->number}; }
  // The protection domain of the keys in receives.
  verbs::PdId receive_pd() const { return rq->shared() != nullptr ? rq->shared()->pd() : qp->pd; }

  const QpAttributes* qp;
  verbs::ReceiveQueue* rq;
  verbs::MemoryTable* memory;
  verbs::PdId pd;  // of the memory that requests access; XRC: that of the last queue named
  Psn expected;    // ePSN
  Msn msn;         // messages completed
  IncomingMessage message;
  Resources resources;
  HeldPackets held;  // past a gap
  Recovery recovery;
  // S-9: the first kept request is the expected one, and waits for a receive.
  bool parked = false;
  bool gap_unreported = false;  // a gap was found meanwhile, and no NAK was sent
  bool watch = false;  // every accepted request must be checked for the effects of the two above
  Verdict refused = Verdict::Accept;  // the reason of the last refusal; while `silent`
  OwedNak nak;
  // A NAK has been sent or is pending, and nothing was accepted since: no further one (IB-52).
  bool silent = false;
  bool ack_due = false;               // an ACK was requested
  bool sack_due = false;              // more is kept than has been reported to the peer (S-6)
  Verdict failure = Verdict::Accept;  // fatal: nothing is accepted any more
  bool ended = false;                 // its NAK has been sent
  ResponderCounters counters;
  TakenMessages messages;
};

}  // namespace urnic::ib
