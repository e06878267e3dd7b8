// The state of the requester half of one RC queue pair. Its functions are in requester.cpp
// (sending), completer.cpp (responses) and send_progress.cpp (the effects of both).
//
//   una                 next              fresh
//    | sent, unanswered  | to be repeated  | never sent yet
//
// Each of the three is a packet of a WQE. una never goes back. next falls back to una for go-back-N
// and is otherwise equal to fresh. The PSN before that of fresh is the highest ever used, the
// responses that READs expect included.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/time.h"
#include "ib/congestion.h"
#include "ib/context.h"
#include "ib/message_counters.h"
#include "ib/probe.h"
#include "ib/read_ahead.h"
#include "ib/send_credits.h"
#include "ib/send_wqes.h"
#include "ib/sent_log.h"
#include "ib/timers.h"

namespace urnic::ib {

// A device's choices for its requesters.
struct SendRules {
  std::uint32_t window = 256;    // SEND and WRITE packets unacknowledged at a time
  std::uint32_t ack_every = 32;  // in a long message, every how many packets one requests an ACK
  bool obey_credits = true;      // off: the peer's receive queue is known to advertise none
  Duration least_timeout = Duration::zero();        // shorter ACK timeouts are raised to it
  CongestionRule congestion = CongestionRule::Off;  // the rule that limits the window (S-10)
};

// A packet of a WQE; for a WQE that has not begun, its index with packet 0.
struct SendPosition {
  std::uint32_t wqe = 0;     // index in the send queue
  std::uint32_t packet = 0;  // for READs, the response
  Psn psn;
  bool operator==(const SendPosition&) const = default;
  // Stores both numbers at once: a copy loads them together, and after two separate stores that
  // load would have to wait until all earlier stores have left the core.
  static SendPosition at(std::uint32_t wqe, std::uint32_t packet, Psn psn) {
    static_assert(std::endian::native == std::endian::little);
    const std::uint64_t both = wqe | std::uint64_t{packet} << 32;
    SendPosition p;
    std::memcpy(static_cast<void*>(&p), &both, sizeof both);
    p.psn = psn;
    return p;
  }
  // Closer to the head of the queue; both must lie between its head and its tail.
  bool before(const SendPosition& o) const {
    return wqe == o.wqe ? packet < o.packet : static_cast<std::int32_t>(wqe - o.wqe) < 0;
  }
};

struct RequesterCounters {
  std::uint64_t packets = 0, repeated = 0;                  // sent in total; of these sent before
  std::uint64_t acks = 0;                                   // responses that acknowledged something
  std::uint64_t duplicates = 0, ghosts = 0, malformed = 0;  // responses discarded
  // that had an effect
  std::uint64_t timeouts = 0, sequence_naks = 0, implied_naks = 0, rnr_naks = 0;
  std::uint64_t probes = 0;        // counted in repeated (S-5)
  std::uint64_t probe_losses = 0;  // times that the response to a probe caused a repetition
  // S-6.
  std::uint64_t sacks = 0;          // accepted
  std::uint64_t alone = 0;          // counted in repeated: found lost, and sent again alone
  std::uint64_t needless = 0;       // counted in alone: they were only late
  std::uint64_t sacks_invalid = 0;  // SACKs that report packets never sent
  // S-2.
  std::uint64_t ahead = 0;    // responses past a hole that were put into memory
  std::uint64_t missing = 0;  // counted in repeated: parts of READs, and atomics, requested alone
  // Each ended the queue pair: as many retries as allowed were in vain.
  std::uint64_t retries_exhausted = 0, rnr_retries_exhausted = 0;
};

// Requests that await a response of their own: READs and atomics.
struct Awaiting {
  std::uint32_t oldest = 0;  // index of its WQE; if count > 0
  std::uint32_t count = 0;
  // The oldest READ was requested again from this PSN on: a First or Only may have this PSN.
  Psn resumed;
  bool is_resumed = false;
  // A probe requested its packet at this PSN alone: an Only or a Last may have this PSN.
  Psn probed;
  bool is_probed = false;
  // The newest response accepted was such a one, and not the last of the READ.
  bool alone = false;
};

// S-2: a response is missing, and something after it has arrived (answer_holes.h).
struct HoleWatch {
  bool any = false;
  Psn seen;                        // the peer has accepted all requests before it
  bool wanted = false;             // look for missing responses now
  Instant due = Instant::never();  // or at this time
};

// The peer had no receive for a packet. Nothing is sent before the time it asked for has passed.
struct RnrWait {
  Instant until = Instant::never();
  Psn refused;
  bool on() const { return !until.is_never(); }
};

// Why a request cannot be completed, and which one.
struct SendFailure {
  bool set = false;
  std::uint32_t wqe = 0;
  verbs::Status status = verbs::Status::Success;
};

struct SendState {
  SendState(const QpAttributes& attributes, const SendRules& r, verbs::SendQueue* sq,
            verbs::MemoryTable* memory, HeldPool* pool)
      : qp(&attributes),
        rules(r),
        wqes(sq, memory, attributes.peer(), attributes.pmtu()),
        timer(attributes.ack_timeout, r.least_timeout),
        probe(attributes.probe),
        retries(attributes.retry_count, attributes.rnr_retry),
        credits(r.obey_credits),
        log(pool, 2 * r.window + attributes.initiator_depth),
        ahead(pool),
        congestion(r.congestion, r.window),
        una{sq->started(), 0, attributes.sq_psn},
        next(una),
        fresh(una),
        expected_end(una.psn) {}

  std::uint32_t outstanding() const { return fresh.psn - una.psn; }  // PSNs
  // True if a response must come: one before expected_end has been requested.
  bool expecting() const {
    const std::uint32_t steps = expected_end - una.psn;
    return steps != 0 && steps <= outstanding();
  }

  // SEND and WRITE packets that may be unacknowledged. Packets that arrived past a hole do not hold
  // back new ones, up to twice the window (S-6).
  std::uint32_t window() const { return congestion.packets() + std::min(log.kept(), rules.window); }

  const QpAttributes* qp;
  SendRules rules;
  SendWqes wqes;
  TransportTimer timer;
  Probe probe;
  RetryCounters retries;
  SendCredits credits;
  SentLog log;  // of the packets between una and next, if the peer is urnic (S-6)
  ReadAhead ahead;
  Congestion congestion;
  HoleWatch hole;
  SendPosition una, next, fresh;
  Msn ssn;           // of the newest request begun
  Psn expected_end;  // follows the newest packet that a response must come for
  Awaiting awaiting;
  std::uint32_t in_flight = 0;  // SEND and WRITE packets unacknowledged
  std::uint32_t since_ack = 0;  // packets since the last one that requested an ACK
  // A NAK has begun this repetition. Further NAKs that ask for a repetition are ignored until there
  // is progress, or the timer shows that the repetition was lost.
  bool repeating = false;
  RnrWait rnr;
  SendFailure failure;  // nothing is sent or accepted any more
  SendFailure stuck;    // cannot be sent; fails when everything before it is answered
  RequesterCounters counters;
  SentMessages messages;
};

}  // namespace urnic::ib
