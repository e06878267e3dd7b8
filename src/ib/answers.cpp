#include "ib/answers.h"

#include <algorithm>

#include "ib/placement.h"
#include "ib/receive_credits.h"
#include "ib/responder.h"

namespace urnic::ib {
namespace {

void begin(const ResponderState& s, Operation operation, Psn psn, ResponsePacket* out) {
  out->header = {};
  out->payload = {};
  Bth& bth = out->header.bth;
  bth.opcode = Opcode(s.qp->service, operation);
  bth.pkey = s.qp->pkey;
  bth.dest_qp = s.qp->dest_qp;
  bth.psn = psn;
  out->header.aeth.msn = s.msn;
}

void put_ack(const ResponderState& s, ResponsePacket* out) {
  out->header.aeth.syndrome = Syndrome::ack(credit_code(*s.rq, s.qp->tells_credits));
}

// An ACK of everything received in order, with a bitmap of the requests kept past a gap.
void next_sack(ResponderState& s, ResponsePacket* out) {
  begin(s, Operation::Acknowledge, s.expected - 1, out);
  out->header.bth.opcode = kSackOpcode;
  put_ack(s, out);
  SackWriter writer(&out->own, static_cast<std::uint32_t>(++s.counters.sacks));
  s.held.for_each_psn([&](Psn psn) { return writer.set(psn - s.expected); });
  out->payload = writer.payload();
}

// Accepts nothing any more, so nothing waits.
void fail(ResponderState& s, Verdict why) {
  s.failure = why;
  s.parked = false;
}

// The last response of a responder that has failed has been sent.
void end(ResponderState& s) {
  s.ended = true;
  s.nak = {};
  s.ack_due = s.sack_due = false;
  ++s.counters.refusals;
}

// The memory of a READ is gone. In its first response a NAK replaces the packet and the queue pair
// ends; a response to a duplicate is just dropped. True if there is a packet to send.
bool fail_read(ResponderState& s, Resource* r, Psn psn, ResponsePacket* out) {
  if (!r->fresh) {
    s.resources.done(r);
    ++s.counters.dropped_duplicates;
    return false;
  }
  begin(s, Operation::Acknowledge, psn, out);
  out->header.aeth = {Syndrome::nak(NakCode::RemoteAccess), r->before};
  fail(s, Verdict::RemoteAccess);
  end(s);
  return true;
}

}  // namespace

void refuse_response(ResponderState& s, ResponsePacket* out) {
  const Msn msn = out->header.aeth.msn;
  begin(s, Operation::Acknowledge, out->header.bth.psn, out);
  out->header.aeth = {Syndrome::nak(NakCode::RemoteAccess), msn};
  fail(s, Verdict::RemoteAccess);
  end(s);
}

namespace {

bool next_read_response(ResponderState& s, Resource* r, ResponsePacket* out) {
  Answer& a = r->asides != 0 ? s.resources.aside_of(*r) : r->answer;
  const std::uint32_t pmtu = s.qp->pmtu(), packets = packets_of(a.bytes, pmtu), k = a.sent;
  const Psn psn = a.psn + k;
  const std::uint32_t bytes = std::min(pmtu, a.bytes - k * pmtu);
  const std::uint64_t at = a.address + std::uint64_t{k} * pmtu;
  if (bytes != 0 && verbs::check_remote_read(*s.memory, r->rkey, at, bytes,
                                             {r->pd, s.qp->number}) != verbs::AccessVerdict::Ok) {
    return fail_read(s, r, psn, out);
  }
  begin(s, read_response_opcode(k, packets), psn, out);
  put_ack(s, out);
  if (bytes != 0) out->payload = {address_in(*s.memory, r->rkey, at), bytes};
  ++s.counters.read_responses;
  if (++a.sent != packets) return true;
  if (r->asides != 0) {
    s.resources.aside_done(r);
  } else {
    if (r->fresh) {
      ++s.messages.answers;
      s.messages.answer_bytes += r->length;
    }
    s.resources.done(r);
  }
  return true;
}

void atomic_response(ResponderState& s, Resource* r, ResponsePacket* out) {
  begin(s, Operation::AtomicAcknowledge, r->psn, out);
  put_ack(s, out);
  out->header.original = r->original;
  s.resources.done(r);
}

Syndrome syndrome_of(const OwedNak& nak) {
  switch (nak.why) {
    case Verdict::OutOfSequence:
      return Syndrome::nak(NakCode::SequenceError);
    case Verdict::NotReady:
      return Syndrome::rnr_nak(nak.timer);
    case Verdict::RemoteAccess:
      return Syndrome::nak(NakCode::RemoteAccess);
    case Verdict::Operational:
      return Syndrome::nak(NakCode::RemoteOperational);
    case Verdict::WrongDomain:
      return Syndrome::nak(NakCode::InvalidRdRequest);
    default:
      return Syndrome::nak(NakCode::InvalidRequest);
  }
}

// Refused and missing requests are both at the expected PSN.
void next_nak(ResponderState& s, ResponsePacket* out) {
  const Verdict why = s.nak.why;
  begin(s, Operation::Acknowledge, s.expected, out);
  out->header.aeth.syndrome = syndrome_of(s.nak);
  s.nak = {};
  s.ack_due = false;  // everything before is acknowledged as well
  s.silent = true;
  if (is_fatal(why)) {
    end(s);
  } else {
    ++(why == Verdict::NotReady ? s.counters.rnr_naks : s.counters.sequence_naks);
  }
}

// True if a duplicate READ requests all or part of the original request.
bool inside(const Resource& r, const PacketHeader& h, std::uint32_t pmtu) {
  const Reth& reth = h.reth;
  const std::uint32_t from = h.bth.psn - r.psn;
  const std::uint64_t skipped = reth.address - r.address;
  return r.family == Family::Read && reth.rkey == r.rkey && skipped <= r.length &&
         reth.length <= r.length - skipped && packets_of(reth.length, pmtu) <= r.packets - from;
}

// True if a duplicate READ requests the same bytes at the same PSNs as its response in progress.
bool matches_answer_under_way(const Resource& r, const PacketHeader& h, std::uint32_t pmtu) {
  const Answer& a = r.answer;
  const auto ahead = static_cast<std::int64_t>(h.bth.psn - r.psn) - (a.psn - r.psn);
  return r.pending && h.reth.address - a.address == static_cast<std::uint64_t>(ahead * pmtu);
}

// If the requested part has not been sent yet, it will be sent anyway. Otherwise the response
// restarts there, and ends no earlier than it would have.
void read_again(ResponderState& s, Resource* r, const PacketHeader& h) {
  Answer again{h.bth.psn, h.reth.address, h.reth.length, 0};
  const bool knows = s.qp->peer_selective;  // the peer knows what it has
  if (matches_answer_under_way(*r, h, s.qp->pmtu())) {
    const Answer& a = r->answer;
    const std::uint64_t end = a.address + a.bytes;
    const bool within = again.address + again.bytes <= end;
    if (within && !h.bth.psn.before(a.psn + a.sent)) return;
    if (within && !knows) again.bytes = static_cast<std::uint32_t>(end - again.address);
  }
  // Missing parts that are requested together are sent one after the other.
  if (knows && r->pending) return s.resources.ask_aside(r, again);
  s.resources.ask_again(r, again, knows);
}

bool duplicate_served(ResponderState& s, const ParsedPacket& p) {
  const PacketHeader& h = p.header;
  const OpcodeRow& row = h.row();
  if (!row.known() ||
      !payload_fits(row.payload, static_cast<std::uint32_t>(p.payload.size()), s.qp->pmtu())) {
    return false;
  }
  if (row.family == Family::Send || row.family == Family::Write) {
    s.ack_due = true;
    return true;
  }
  Resource* const r = s.resources.find(h.bth.psn);
  if (r == nullptr) return false;
  if (row.family == Family::Atomic) {
    if (r->family != Family::Atomic) return false;
    s.resources.ask_again(r, r->answer);
    return true;
  }
  if (!inside(*r, h, s.qp->pmtu())) return false;
  read_again(s, r, h);
  return true;
}

}  // namespace

void refuse(ResponderState& s, Verdict why, Psn psn) {
  s.silent = true;
  s.nak = {why, psn, 0};
  s.refused = why;
  if (is_fatal(why)) fail(s, why);
}

void end_after_ack(ResponderState& s, Verdict why) {
  fail(s, why);
  s.nak = {};
  s.ack_due = true;
}

void answer_duplicate(ResponderState& s, const ParsedPacket& request) {
  ++s.counters.duplicates;
  if (!duplicate_served(s, request)) ++s.counters.dropped_duplicates;
}

bool next_answer(ResponderState& s, ResponsePacket* out) {
  if (s.ended) return false;
  while (Resource* const r = s.resources.due()) {
    if (r->family == Family::Atomic) {
      atomic_response(s, r, out);
      return true;
    }
    if (next_read_response(s, r, out)) return true;
  }
  // The missing request has arrived by now, with everything that was dropped for lack of it.
  if (s.nak.why == Verdict::OutOfSequence && s.nak.refused.before(s.expected)) s.nak = {};
  if (s.nak.owed()) {
    next_nak(s, out);
    return true;
  }
  const bool kept = s.reports_held() && !s.held.empty() && !is_fatal(s.failure);
  if (!kept) s.sack_due = false;
  if (!s.ack_due && !s.sack_due) return false;
  s.ack_due = s.sack_due = false;
  if (kept) {
    next_sack(s, out);
    return true;
  }
  begin(s, Operation::Acknowledge, s.expected - 1, out);
  put_ack(s, out);
  ++s.counters.acks;
  if (s.failure == Verdict::KeyStays) end(s);
  return true;
}

}  // namespace urnic::ib
