#include "ib/responder.h"

#include "ib/answers.h"
#include "ib/behind_gap.h"
#include "ib/judge_request.h"
#include "ib/park.h"
#include "ib/place_early.h"
#include "ib/placement.h"
#include "ib/receive_end.h"
#include "ib/xrc.h"

namespace urnic::ib {
namespace {

using verbs::Completion;
using verbs::Status;

// ---- accepted requests

void begin_message(ResponderState& s, const PacketHeader& h) {
  if (h.row().family == Family::Send) s.rq->claim(s.rq->head());  // before any change: it may throw
  s.message = {h.row().family, 0, h.reth.address, h.reth.rkey, h.reth.length};
}

// Places a packet of a SEND or WRITE. Nothing completes unless Accept is returned: the memory may
// be gone.
Verdict place_message(ResponderState& s, const ParsedPacket& p, std::uint8_t* target) {
  const PacketHeader& h = p.header;
  if (h.row().begins()) begin_message(s, h);
  if (!p.payload.empty()) {
    if (h.row().family == Family::Send) {
      forget_under_receive(s, p);
      if (!place_in_receive(*s.memory, s.rq->sges(s.rq->head()), s.receive_pd(), s.message.bytes,
                            p.payload)) {
        return Verdict::Operational;
      }
    } else if (target != p.payload.data()) {  // otherwise it is already there
      forget_under(s, h.bth.psn, target, p.payload.size());
      if (!place(target, p.payload)) return Verdict::RemoteAccess;
    }
    s.message.bytes += static_cast<std::uint32_t>(p.payload.size());
    s.message.address += p.payload.size();
  }
  return Verdict::Accept;
}

// A SEND is complete; its key is invalidated before its receive completes. False: the key stays
// valid.
bool invalidates(ResponderState& s, const PacketHeader& h) {
  return !h.row().has(kIeth) ||
         s.memory->invalidate(h.inv_rkey, s.peer()) == verbs::MemoryTable::Invalidate::Ok;
}

void accept_read(ResponderState& s, const PacketHeader& h) {
  Resource r;
  r.family = Family::Read;
  r.psn = h.bth.psn;
  r.packets = packets_of(h.reth.length, s.qp->pmtu());
  r.address = h.reth.address;
  r.rkey = h.reth.rkey;
  r.length = h.reth.length;
  r.pd = s.pd;
  r.before = s.msn;
  s.resources.add(r);
  s.expected += r.packets;
}

Verdict accept_atomic(ResponderState& s, const PacketHeader& h, std::uint8_t* target) {
  Resource r;
  r.family = Family::Atomic;
  r.psn = h.bth.psn;
  r.before = s.msn;
  if (!carry_out_atomic(target, h, &r.original)) return Verdict::RemoteAccess;
  s.resources.add(r);
  ++s.expected;
  return Verdict::Accept;
}

void count_message(ResponderState& s, Family family) {
  TakenMessages& n = s.messages;
  if (family == Family::Send) {
    ++n.sends;
    n.send_bytes += s.message.bytes;
  } else if (family == Family::Write) {
    n.write_bytes += s.message.bytes;
  } else {
    ++n.reads;
  }
}

// Cancels a NAK that was due for lack of this request. An ACK that is due covers the request; the
// response of a READ or atomic covers everything before it.
void commit(ResponderState& s, const PacketHeader& h) {
  const OpcodeRow& row = h.row();
  ++s.counters.requests;
  s.silent = s.parked = false;
  if (s.nak.why == Verdict::NotReady) s.nak = {};
  if (row.ends()) {
    count_message(s, row.family);
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

// The memory of a packet is gone since it was judged: the status of its receive, if it has one.
Status status_of_receive(Verdict why, const OpcodeRow& row) {
  if (why == Verdict::Operational) return Status::LocalProtection;
  return row.completes_receive() && row.begins() ? Status::LocalAccess : Status::Success;
}

Received accept(ResponderState& s, const ParsedPacket& p, std::uint8_t* target, Completion* c) {
  const PacketHeader& h = p.header;
  Received received;
  switch (h.row().family) {
    case Family::Read:
      accept_read(s, h);
      break;
    case Family::Atomic:
      received.verdict = accept_atomic(s, h, target);
      break;
    default:
      received.verdict = place_message(s, p, target);
      break;
  }
  if (received.verdict != Verdict::Accept) [[unlikely]] {
    refuse(s, received.verdict, h.bth.psn);
    const Status status = status_of_receive(received.verdict, h.row());
    received.completed = status != Status::Success;
    if (received.completed) fail_receive(s.rq, status, c);
    return received;
  }
  if (!invalidates(s, h)) [[unlikely]] {
    received = {Verdict::KeyStays, true};
    fail_receive(s.rq, Status::RemoteInvalidRequest, c);
    commit(s, h);
    end_after_ack(s, Verdict::KeyStays);
    return received;
  }
  if (h.row().completes_receive()) {
    complete_receive(s.rq, h, s.message.bytes, c);
    ++s.messages.receives;
    received.completed = true;
  }
  commit(s, h);
  return received;
}

// `placed`: its payload is only at its destination. If the destination has changed since, the peer
// has to repeat the packet.
Received carry_out(ResponderState& s, const ParsedPacket& request, Completion* completion,
                   bool placed = false) {
  const bool xrc = s.qp->service == ServiceType::Xrc;
  const RequestJudgment j = xrc ? judge_xrc_request(s, request) : judge_request(s, request);
  switch (j.verdict) {
    case Verdict::Accept:
      if (placed && j.target != request.payload.data()) return {Verdict::OutOfSequence};
      if (request.header.row().awaits_answer() && !s.resources.open()) return {Verdict::Ignored};
      return accept(s, request, j.target, completion);
    case Verdict::Duplicate:
      answer_duplicate(s, request);
      return {j.verdict};
    case Verdict::OutOfSequence:
      take_behind_gap(s, request);
      return {j.verdict};
    case Verdict::Ignored:
      return {j.verdict};
    case Verdict::NotReady:
      if (park(s, request)) return {j.verdict};
      break;
    default:
      break;
  }
  refuse(s, j.verdict, request.header.bth.psn);
  s.nak.timer = j.rnr_timer;
  if (j.receive == Status::Success) return {j.verdict};
  fail_receive(s.rq, j.receive, completion);
  return {j.verdict, true};
}

}  // namespace

Received Responder::take(const ParsedPacket& request, Completion* completion) {
  Received r = carry_out(s_, request, completion);
  if (s_.watch) [[unlikely]] {
    look_at_recovery(s_, r.verdict);
    r.more = held_has_turn(s_);
  }
  return r;
}

// The packets that the peer repeats now are duplicates; an ACK reports at once how far it has got,
// even if it was not requested.
Received Responder::take_held(Completion* completion) {
  const ParsedPacket request = s_.held.first();
  Received r = carry_out(s_, request, completion, s_.held.first_placed());
  if (s_.parked) return r;  // it finds no receive, and stays in the store
  s_.held.remove_first();
  const Family family = request.header.row().family;
  if (r.verdict == Verdict::Accept && (family == Family::Send || family == Family::Write)) {
    s_.ack_due = true;
  }
  look_at_recovery(s_, r.verdict);
  r.more = held_has_turn(s_);
  if (!r.more) report_deferred_gap(s_);
  return r;
}

bool Responder::receive_posted() {
  if (!s_.parked || !s_.rq->has(s_.rq->head())) return false;
  s_.parked = false;
  return true;
}

void Responder::stop_waiting() {
  ib::stop_waiting(s_);
  look_at_recovery(s_, Verdict::NotReady);
}

void Responder::lose_response(ResponsePacket* response) {
  refuse_response(s_, response);
}

bool Responder::next_response(ResponsePacket* out) {
  return next_answer(s_, out);
}

}  // namespace urnic::ib
