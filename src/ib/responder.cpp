#include "ib/responder.h"

#include "ib/answers.h"
#include "ib/judge_request.h"
#include "ib/placement.h"
#include "ib/receive_end.h"

namespace urnic::ib {
namespace {

using verbs::Completion;
using verbs::Status;

// ---- what is refused

void refuse(ResponderState& s, Verdict why, Psn psn) {
  s.silent = true;
  s.nak = {why, psn, 0};
  if (is_fatal(why)) s.failure = why;
}

// Something is missing. One NAK tells so; what follows adds nothing but how much was dropped.
void note_gap(ResponderState& s, Psn psn) {
  ++s.counters.out_of_sequence;
  if (!s.silent) {
    refuse(s, Verdict::OutOfSequence, psn);
  } else if (s.nak.why == Verdict::OutOfSequence && s.nak.refused.before(psn)) {
    s.nak.refused = psn;
  }
}

// ---- what is accepted

void begin_message(ResponderState& s, const PacketHeader& h) {
  if (h.row().family == Family::Send) s.rq->claim(s.rq->head());  // first: it may find no memory
  s.message = {h.row().family, 0, h.reth.address, h.reth.rkey, h.reth.length};
}

// A packet of a SEND or WRITE. False, and nothing is complete, when the key it invalidates is none
// that it may.
bool place_message(ResponderState& s, const ParsedPacket& p, std::uint8_t* target) {
  const PacketHeader& h = p.header;
  if (h.row().begins()) begin_message(s, h);
  if (!p.payload.empty()) {
    if (h.row().family == Family::Send) {
      place_in_receive(*s.memory, s.rq->sges(s.rq->head()), s.receive_pd(), s.message.octets,
                       p.payload);
    } else {
      place(target, p.payload);
    }
    s.message.octets += static_cast<std::uint32_t>(p.payload.size());
    s.message.address += p.payload.size();
  }
  return !h.row().has(kIeth) ||
         s.memory->invalidate(h.inv_rkey, s.qp->peer()) == verbs::MemoryTable::Invalidate::Ok;
}

void accept_read(ResponderState& s, const PacketHeader& h) {
  Resource r;
  r.family = Family::Read;
  r.psn = h.bth.psn;
  r.packets = packets_of(h.reth.length, s.qp->pmtu());
  r.address = h.reth.address;
  r.rkey = h.reth.rkey;
  r.length = h.reth.length;
  r.before = s.msn;
  s.resources.add(r);
  s.expected += r.packets;
}

void accept_atomic(ResponderState& s, const PacketHeader& h, std::uint8_t* target) {
  Resource r;
  r.family = Family::Atomic;
  r.psn = h.bth.psn;
  r.before = s.msn;
  r.original = h.bth.opcode.operation() == Operation::FetchAdd
                   ? fetch_add(target, h.atomic.swap_or_add)
                   : compare_swap(target, h.atomic.compare, h.atomic.swap_or_add);
  s.resources.add(r);
  ++s.expected;
}

// Whatever was owed for want of this request is not owed any more. An ACK that is due covers it;
// the answer of a READ or atomic covers everything before.
void commit(ResponderState& s, const PacketHeader& h) {
  const OpcodeRow& row = h.row();
  ++s.counters.requests;
  s.silent = false;
  if (s.nak.why == Verdict::NotReady) s.nak = {};
  if (row.ends()) {
    s.message = {};
    ++s.msn;
  }
  if (row.family == Family::Read || row.family == Family::Atomic) {
    s.ack_due = false;
  } else {
    ++s.expected;
    s.ack_due = s.ack_due || h.bth.ack_request;
  }
}

Received accept(ResponderState& s, const ParsedPacket& p, std::uint8_t* target, Completion* c) {
  const PacketHeader& h = p.header;
  Received received;
  switch (h.row().family) {
    case Family::Read:
      accept_read(s, h);
      break;
    case Family::Atomic:
      accept_atomic(s, h, target);
      break;
    default:
      if (!place_message(s, p, target)) {
        refuse(s, Verdict::RemoteAccess, h.bth.psn);
        return {Verdict::RemoteAccess};
      }
      if (h.row().completes_receive()) {
        complete_receive(s.rq, h, s.message.octets, c);
        received.completed = true;
      }
      break;
  }
  commit(s, h);
  return received;
}

}  // namespace

Received Responder::take(const ParsedPacket& request, Completion* completion) {
  const RequestJudgment j = judge_request(s_, request);
  switch (j.verdict) {
    case Verdict::Accept:
      return accept(s_, request, j.target, completion);
    case Verdict::Duplicate:
      answer_duplicate(s_, request);
      return {j.verdict};
    case Verdict::OutOfSequence:
      note_gap(s_, request.header.bth.psn);
      return {j.verdict};
    case Verdict::Ignored:
      return {j.verdict};
    default:
      break;
  }
  refuse(s_, j.verdict, request.header.bth.psn);
  s_.nak.timer = j.rnr_timer;
  if (j.receive == Status::Success) return {j.verdict};
  fail_receive(s_.rq, j.receive, completion);
  return {j.verdict, true};
}

bool Responder::next_response(ResponsePacket* out) {
  return next_answer(s_, out);
}

}  // namespace urnic::ib
