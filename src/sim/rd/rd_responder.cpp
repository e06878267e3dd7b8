// How an EE context handles requests. For its responses see rd_answers.cpp.
#include "sim/rd/rd_responder.h"

#include "ib/judge_request.h"
#include "ib/placement.h"
#include "ib/receive_end.h"
#include "sim/rd/resync.h"

namespace urnic::sim {
namespace {

using verbs::Completion;
using verbs::Status;

// At most one READ or atomic is in progress, because at most one message is.
constexpr std::uint8_t kDepth = 1;
constexpr std::uint8_t kShortestRnr = 1;  // code: 10 us

ib::QpAttributes attributes_of(const EeAttributes& ee) {
  ib::QpAttributes a;
  a.service = ib::ServiceType::Rd;
  a.path_mtu = ee.path_mtu;
  a.rq_psn = ee.rq_psn;
  a.responder_depth = kDepth;
  return a;
}

ib::NakCode code_of(ib::Verdict v) {
  switch (v) {
    case ib::Verdict::RemoteAccess:
      return ib::NakCode::RemoteAccess;
    case ib::Verdict::Operational:
      return ib::NakCode::RemoteOperational;
    default:
      return ib::NakCode::InvalidRequest;
  }
}

bool awaits_data(const ib::OpcodeRow& row) {
  return row.family == ib::Family::Read || row.family == ib::Family::Atomic;
}

}  // namespace

RdResponder::RdResponder(const EeAttributes& ee, verbs::MemoryTable* memory)
    : ee_(&ee), now_(attributes_of(ee)), s_(now_, nullptr, memory, nullptr) {}

// ---- in order of PSNs

RdReceived RdResponder::take(const ib::ParsedPacket& request, RdQueuePair* to, Completion* c) {
  const ib::PacketHeader& h = request.header;
  if (h.row().family == ib::Family::Resync) return resync(h, c);
  switch (region(h.bth.psn, s_.expected)) {
    case ib::PsnRegion::Duplicate:
      return duplicate(request);
    case ib::PsnRegion::Invalid:
      return behind_gap(h);
    case ib::PsnRegion::Expected:
      break;
  }
  return expected_request(request, to, c);
}

// Accepts a RESYNC for any queue pairs and at any place in a message (o9-38.a2).
RdReceived RdResponder::resync(const ib::PacketHeader& h, Completion* c) {
  RdReceived r{RdVerdict::Resync};
  resync_from_ = h.deth.source_qp;
  resync_due_ = true;
  resync_psn_ = h.bth.psn;
  if (judge_resync(h.bth.psn, s_.expected) == ResyncIs::Again) {
    ++counters_.duplicates;
    return r;
  }
  ++counters_.resyncs;
  if (s_.message.open()) {
    ++counters_.aborted;
    if (s_.message.family == ib::Family::Send && to_ != nullptr) {  // partly used receive
      ib::fail_receive(s_.rq, Status::Flushed, c);
      r.completed = true;
      r.whose = to_;
    }
  }
  close_message();
  while (ib::Resource* const pending = s_.resources.due()) s_.resources.done(pending);
  s_.expected = expected_behind(h.bth.psn);
  s_.nak = {};
  s_.silent = s_.ack_due = false;
  refusal_ = {};
  refusal_due_ = false;
  pair_ = {};  // no part of the message is answered any more
  return r;
}

RdReceived RdResponder::duplicate(const ib::ParsedPacket& request) {
  const ib::PacketHeader& h = request.header;
  const auto n = static_cast<std::uint32_t>(request.payload.size());
  bool answered =
      of_pair(h) && h.row().known() && ib::payload_fits(h.row().payload, n, ee_->pmtu());
  if (answered && awaits_data(h.row())) {
    answered = read_again(h);
  } else if (answered) {
    s_.ack_due = true;
  }
  if (!answered) {
    ++counters_.ignored;
    return {RdVerdict::Ignored};
  }
  ++counters_.duplicates;
  return {RdVerdict::Duplicate};
}

// Repeats all or part of the answer to a READ; an atomic is answered with its first result.
bool RdResponder::read_again(const ib::PacketHeader& h) {
  ib::Resource* const r = s_.resources.find(h.bth.psn);
  if (r == nullptr || r->family != h.row().family) return false;
  if (r->family == ib::Family::Atomic) {
    s_.resources.ask_again(r, r->answer);
    return true;
  }
  const ib::Reth& reth = h.reth;
  const std::uint64_t skipped = reth.address - r->address;
  const bool inside = reth.rkey == r->rkey && skipped <= r->length &&
                      reth.length <= r->length - skipped &&
                      ib::packets_of(reth.length, ee_->pmtu()) <= r->packets - (h.bth.psn - r->psn);
  if (inside) s_.resources.ask_again(r, {h.bth.psn, reth.address, reth.length, 0});
  return inside;
}

// Sends one NAK for a gap, and none after a refusal, because a RESYNC must follow.
RdReceived RdResponder::behind_gap(const ib::PacketHeader& h) {
  ++counters_.out_of_sequence;
  if (!s_.silent && !refusal_.set) {
    s_.silent = true;
    s_.nak = {ib::Verdict::OutOfSequence, h.bth.psn, 0};
    nak_to_ = h.deth.source_qp;
  }
  return {RdVerdict::OutOfSequence};
}

// ---- at the expected PSN

// Selects the queue pair that the next checks refer to.
void RdResponder::serve(RdQueuePair* to, const ib::PacketHeader& h) {
  to_ = to;
  const bool serves_data = to->attributes.responder_depth != 0;
  now_ = to->attributes;
  now_.path_mtu = ee_->path_mtu;
  constexpr unsigned kData = verbs::kRemoteRead | verbs::kRemoteAtomic;
  if (!serves_data) now_.access &= static_cast<std::uint8_t>(~kData);
  s_.rq = to->rq;
  s_.pd = now_.pd;
  pair_ = {true, h.deth.source_qp, h.bth.dest_qp};
}

// Receives are used in order: while a message over another EE context uses the oldest one, no
// receive is available here.
bool RdResponder::receive_in_use(const ib::OpcodeRow& row) const {
  if (to_->receives_from == nullptr || to_->receives_from == this) return false;
  return row.family == ib::Family::Send ? row.begins() : row.completes_receive();
}

RdReceived RdResponder::not_ready(const ib::PacketHeader& h, std::uint8_t timer) {
  s_.silent = true;
  s_.nak = {ib::Verdict::NotReady, h.bth.psn, timer};
  nak_to_ = h.deth.source_qp;
  return {RdVerdict::NotReady};
}

void RdResponder::close_message() {
  if (to_ != nullptr && to_->receives_from == this) to_->receives_from = nullptr;
  s_.message = {};
}

RdReceived RdResponder::refuse(const ib::PacketHeader& h, ib::NakCode code) {
  refusal_ = {true, h.bth.psn, code};
  refusal_due_ = true;
  s_.nak = {};
  nak_to_ = h.deth.source_qp;
  ++counters_.refused;
  counters_.invalid_rd += code == ib::NakCode::InvalidRdRequest ? 1 : 0;
  return {RdVerdict::Refused};
}

RdReceived RdResponder::expected_request(const ib::ParsedPacket& request, RdQueuePair* to,
                                         Completion* c) {
  const ib::PacketHeader& h = request.header;
  if (!h.row().begins() && h.row().known() && !of_pair(h)) {  // o9-38.a1
    ++counters_.ignored;
    return {RdVerdict::Ignored};
  }
  if (refusal_.set) return refuse(h, refusal_.code);
  if (!takes_rd(to, ee_->rdd, h.deth.qkey)) return refuse(h, ib::NakCode::InvalidRdRequest);
  if (!s_.message.open()) serve(to, h);
  if (receive_in_use(h.row())) return not_ready(h, kShortestRnr);
  const ib::RequestJudgment j = ib::judge_request(s_, request);
  if (j.verdict == ib::Verdict::Accept) return accept(request, j.target, c);
  if (j.verdict == ib::Verdict::NotReady) return not_ready(h, j.rnr_timer);
  return refuse_as(h, j, c);
}

RdReceived RdResponder::refuse_as(const ib::PacketHeader& h, const ib::RequestJudgment& j,
                                  Completion* c) {
  RdReceived r = refuse(h, code_of(j.verdict));
  if (j.receive == Status::Success) return r;
  ib::fail_receive(s_.rq, j.receive, c);
  close_message();
  r.completed = r.fails = true;
  r.whose = to_;
  return r;
}

// Handles a READ or an atomic: executes it now, or later as it is answered. False if its memory is
// no longer valid.
bool RdResponder::accept_data(const ib::PacketHeader& h, std::uint8_t* target) {
  ib::Resource one;
  one.family = h.row().family;
  one.psn = h.bth.psn;
  one.before = s_.msn;
  if (one.family == ib::Family::Read) {
    one.packets = ib::packets_of(h.reth.length, ee_->pmtu());
    one.address = h.reth.address;
    one.rkey = h.reth.rkey;
    one.length = h.reth.length;
  } else if (!carry_out_atomic(target, h, &one.original)) {
    return false;
  }
  ++s_.msn;
  s_.resources.add(one);
  s_.expected += one.packets;
  s_.ack_due = false;
  return true;
}

// False if the memory is no longer valid.
bool RdResponder::place_part(const ib::ParsedPacket& request, std::uint8_t* target) {
  const ib::PacketHeader& h = request.header;
  const bool send = h.row().family == ib::Family::Send;
  if (h.row().begins()) {
    if (send) {
      s_.rq->claim(s_.rq->head());
      to_->receives_from = this;
    }
    s_.message = {h.row().family, 0, h.reth.address, h.reth.rkey, h.reth.length};
  }
  if (request.payload.empty()) return true;
  const bool placed = send
                          ? ib::place_in_receive(*s_.memory, s_.rq->sges(s_.rq->head()),
                                                 s_.receive_pd(), s_.message.bytes, request.payload)
                          : ib::place(target, request.payload);
  s_.message.bytes += static_cast<std::uint32_t>(request.payload.size());
  s_.message.address += request.payload.size();
  return placed;
}

RdReceived RdResponder::accept(const ib::ParsedPacket& request, std::uint8_t* target,
                               Completion* c) {
  const ib::PacketHeader& h = request.header;
  const ib::OpcodeRow& row = h.row();
  RdReceived r{RdVerdict::Accept, false, false, to_};
  ++counters_.requests;
  s_.silent = false;
  s_.nak = {};
  if (awaits_data(row)) {
    return accept_data(h, target) ? r : refuse(h, ib::NakCode::RemoteAccess);
  }
  if (!place_part(request, target)) {
    const bool send = row.family == ib::Family::Send;
    return refuse_as(h,
                     send ? ib::RequestJudgment{ib::Verdict::Operational, Status::LocalProtection}
                          : ib::RequestJudgment{ib::Verdict::RemoteAccess},
                     c);
  }
  ++s_.expected;
  s_.ack_due = s_.ack_due || h.bth.ack_request;
  if (row.completes_receive()) {
    ib::complete_receive(s_.rq, h, s_.message.bytes, c);
    r.completed = true;
  }
  if (row.ends()) {
    close_message();
    ++s_.msn;
  }
  return r;
}

// Takes no more of this queue pair's message before a RESYNC, and answers none of its READs.
void RdResponder::forget(const RdQueuePair* qp) {
  if (to_ != qp) return;
  const bool within = s_.message.open();
  close_message();
  to_ = nullptr;
  while (ib::Resource* const pending = s_.resources.due()) s_.resources.done(pending);
  s_.ack_due = false;
  if (within) {
    refusal_ = {true, s_.expected, ib::NakCode::InvalidRdRequest};
  } else {
    pair_ = {};
  }
}

}  // namespace urnic::sim
