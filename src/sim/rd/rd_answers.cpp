// The packets that an EE context sends back: first responses to a READ or atomic, then the response
// to a RESYNC, then the NAK or ACK that covers everything before. There are no credits (o9-72):
// those bits are 0.
#include <algorithm>

#include "ib/placement.h"
#include "sim/rd/rd_responder.h"

namespace urnic::sim {
void RdResponder::begin(ib::Operation o, ib::Psn psn, std::uint32_t to,
                        ib::ResponsePacket* out) const {
  out->header = {};
  out->payload = {};
  ib::Bth& bth = out->header.bth;
  bth.opcode = ib::Opcode(ib::ServiceType::Rd, o);
  bth.pkey = ee_->pkey;
  bth.dest_qp = to;
  bth.psn = psn;
  out->header.ee_context = ee_->dest_ee;
  out->header.aeth = {ib::Syndrome::ack(0), s_.msn};
}

// If the memory is no longer valid, a first response is replaced by a NAK, and a response to a
// duplicate just ends. Returns true if there is a packet.
bool RdResponder::read_response(ib::Resource* r, ib::ResponsePacket* out) {
  ib::Answer& a = r->answer;
  const std::uint32_t pmtu = ee_->pmtu(), packets = ib::packets_of(a.bytes, pmtu), k = a.sent;
  const std::uint32_t bytes = std::min(pmtu, a.bytes - k * pmtu);
  const std::uint64_t at = a.address + std::uint64_t{k} * pmtu;
  if (bytes != 0 && verbs::check_remote_read(*s_.memory, r->rkey, at, bytes, now_.peer()) !=
                        verbs::AccessVerdict::Ok) {
    const bool fresh = r->fresh;
    s_.resources.done(r);
    if (!fresh) return false;
    begin(ib::Operation::Acknowledge, a.psn + k, pair_.source, out);
    out->header.aeth = {ib::Syndrome::nak(ib::NakCode::RemoteAccess), r->before};
    ++counters_.fatal_naks;
    return true;
  }
  begin(ib::read_response_opcode(k, packets), a.psn + k, pair_.source, out);
  if (bytes != 0) out->payload = {ib::address_in(*s_.memory, r->rkey, at), bytes};
  ++counters_.read_responses;
  if (++a.sent == packets) s_.resources.done(r);
  return true;
}

void RdResponder::nak(ib::ResponsePacket* out) {
  begin(ib::Operation::Acknowledge, s_.expected, nak_to_, out);
  s_.ack_due = false;
  if (refusal_due_) {
    refusal_due_ = false;
    out->header.aeth.syndrome = ib::Syndrome::nak(refusal_.code);
    ++counters_.fatal_naks;
    return;
  }
  const bool rnr = s_.nak.why == ib::Verdict::NotReady;
  out->header.aeth.syndrome =
      rnr ? ib::Syndrome::rnr_nak(s_.nak.timer) : ib::Syndrome::nak(ib::NakCode::SequenceError);
  s_.nak = {};
  ++(rnr ? counters_.rnr_naks : counters_.sequence_naks);
}

bool RdResponder::next_response(ib::ResponsePacket* out) {
  while (ib::Resource* const r = s_.resources.due()) {
    if (r->family == ib::Family::Atomic) {
      begin(ib::Operation::AtomicAcknowledge, r->psn, pair_.source, out);
      out->header.original = r->original;
      s_.resources.done(r);
      return true;
    }
    if (read_response(r, out)) return true;
  }
  if (resync_due_) {
    resync_due_ = false;
    begin(ib::Operation::Acknowledge, resync_psn_, resync_from_, out);
    return true;
  }
  // The missing packet has arrived meanwhile.
  if (s_.nak.why == ib::Verdict::OutOfSequence && s_.nak.refused.before(s_.expected)) s_.nak = {};
  if (refusal_due_ || s_.nak.owed()) {
    nak(out);
    return true;
  }
  if (!s_.ack_due) return false;
  s_.ack_due = false;
  begin(ib::Operation::Acknowledge, s_.expected - 1, pair_.source, out);
  ++counters_.acks;
  return true;
}

}  // namespace urnic::sim
