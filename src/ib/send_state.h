// The state of the requester half of one RC queue pair. Its functions are in requester.cpp (what
// leaves), completer.cpp (what comes back) and send_progress.cpp (what either does to it).
//
//   una                 next              fresh
//    | sent, unanswered  | to be repeated  | never sent yet
//
// All three lie at a packet of a WQE. una never goes back; next falls back to it for go-back-N and
// is otherwise at fresh; the PSN before that of fresh is the highest ever used, the responses that
// READs expect included.
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

// What a device chooses for its requesters.
struct SendRules {
  std::uint32_t window = 256;    // SEND and WRITE packets unacknowledged at a time
  std::uint32_t ack_every = 32;  // of a long message, every so manieth packet asks for an ACK
  bool obey_credits = true;      // off: the peer's receive queue is known to tell none
  Duration least_timeout = Duration::zero();        // shorter ACK timeouts are lengthened to it
  CongestionRule congestion = CongestionRule::Off;  // what closes the window (S-10)
};

// A packet of a WQE; the index of a WQE not yet begun with packet 0.
struct SendPosition {
  std::uint32_t wqe = 0;     // index in the send queue
  std::uint32_t packet = 0;  // of READs, the response
  Psn psn;
  bool operator==(const SendPosition&) const = default;
  // With both numbers in one store: who copies them loads both at once, and would wait for every
  // store before these to leave the core if they were two.
  static SendPosition at(std::uint32_t wqe, std::uint32_t packet, Psn psn) {
    static_assert(std::endian::native == std::endian::little);
    const std::uint64_t both = wqe | std::uint64_t{packet} << 32;
    SendPosition p;
    std::memcpy(static_cast<void*>(&p), &both, sizeof both);
    p.psn = psn;
    return p;
  }
  // Further to the head of the queue; both lie between its head and its tail.
  bool before(const SendPosition& o) const {
    return wqe == o.wqe ? packet < o.packet : static_cast<std::int32_t>(wqe - o.wqe) < 0;
  }
};

struct RequesterCounters {
  std::uint64_t packets = 0, repeated = 0;                  // sent in all; of these sent before
  std::uint64_t acks = 0;                                   // responses that acknowledged something
  std::uint64_t duplicates = 0, ghosts = 0, malformed = 0;  // responses discarded
  std::uint64_t timeouts = 0, sequence_naks = 0, implied_naks = 0, rnr_naks = 0;  // acted upon
  std::uint64_t probes = 0;        // of those repeated (S-5)
  std::uint64_t probe_losses = 0;  // repetitions that the answer to a probe called for
  // S-6.
  std::uint64_t sacks = 0;          // taken
  std::uint64_t alone = 0;          // of those repeated: found lost, and sent again alone
  std::uint64_t needless = 0;       // of these: they had only been late
  std::uint64_t sacks_invalid = 0;  // SACKs of packets that have never left
  // S-2.
  std::uint64_t ahead = 0;    // answers behind a hole that were put into memory
  std::uint64_t missing = 0;  // of those repeated: parts of READs, and atomics, asked for alone
};

// Requests that await a response of their own: READs and atomics.
struct Awaiting {
  std::uint32_t oldest = 0;  // index of its WQE; count > 0
  std::uint32_t count = 0;
  // The oldest READ was asked again from this PSN on, which a First or Only may now carry.
  Psn resumed;
  bool is_resumed = false;
  // Its packet at this PSN was asked for alone, by a probe: an Only, or a Last, may carry it.
  Psn probed;
  bool is_probed = false;
  // The newest that was taken did, and was not the last of the READ.
  bool alone = false;
};

// S-2: an answer is missing, and something behind it has come (answer_holes.h).
struct HoleWatch {
  bool any = false;
  Psn seen;                        // the peer has taken all requests before it
  bool wanted = false;             // what is missing is looked for
  Instant due = Instant::never();  // or then
};

// The peer had no receive for a packet. Nothing leaves before the time it named has passed.
struct RnrWait {
  Instant until = Instant::never();
  Psn refused;
  bool on() const { return !until.is_never(); }
};

// Why a request cannot be completed, and which.
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
  // Whether a response must come: one before expected_end has been asked for.
  bool expecting() const {
    const std::uint32_t steps = expected_end - una.psn;
    return steps != 0 && steps <= outstanding();
  }

  // SEND and WRITE packets that may be unacknowledged: what is behind a hole and has come does not
  // hold back new ones, up to twice the window (S-6).
  std::uint32_t window() const { return congestion.packets() + std::min(log.kept(), rules.window); }

  const QpAttributes* qp;
  SendRules rules;
  SendWqes wqes;
  TransportTimer timer;
  Probe probe;
  RetryCounters retries;
  SendCredits credits;
  SentLog log;  // of what lies between una and next, where the peer is urnic (S-6)
  ReadAhead ahead;
  Congestion congestion;
  HoleWatch hole;
  SendPosition una, next, fresh;
  Msn ssn;           // of the newest request begun
  Psn expected_end;  // behind the newest packet that a response must come for
  Awaiting awaiting;
  std::uint32_t in_flight = 0;  // SEND and WRITE packets unacknowledged
  std::uint32_t since_ack = 0;  // packets since the last that asked for an ACK
  // A NAK has begun this repetition. Another of its kind adds nothing before it made progress or
  // the timer says that it was lost.
  bool repeating = false;
  RnrWait rnr;
  SendFailure failure;  // nothing leaves or is taken any more
  SendFailure stuck;    // cannot leave; fails when all before it is answered
  RequesterCounters counters;
  SentMessages messages;
};

}  // namespace urnic::ib
