#include "ib/completer.h"

#include <array>
#include <cstring>

#include "ib/answer_holes.h"
#include "ib/selective.h"
#include "ib/send_progress.h"

namespace urnic::ib {

using verbs::awaits_response;
using verbs::SendWqe;
using verbs::Status;
using verbs::WrOp;

namespace {

bool in_ack_form(const OpcodeRow& row, const PacketHeader& h) {
  return row.has(kAeth) && h.aeth.syndrome.kind() == AckKind::Ack;
}

// True if it is no valid response to any request: another kind of packet, an Acknowledge longer
// than its headers (IB-124), a reserved syndrome (IB-4), or a NAK in another packet than an
// Acknowledge.
bool malformed(const ParsedPacket& p) {
  const OpcodeRow& row = p.header.row();
  if (!row.response()) return true;
  if (row.family == Family::Sack && !parse_sack(p)) return true;
  if (row.payload == PayloadRule::None && (!p.payload.empty() || p.header.bth.pad != 0)) {
    return true;
  }
  if (!row.has(kAeth)) return false;
  if (p.header.aeth.syndrome.reserved()) return true;
  return row.family != Family::Acknowledge && !in_ack_form(row, p.header);
}

// Classifies a PSN: una .. max is in the window; one before it, at most 2^23 - 1 before max, is a
// duplicate (IB-58, IB-126).
Response classify(const SendState& s, Psn p) {
  if (p - s.una.psn < s.outstanding()) return Response::Ack;
  return (s.fresh.psn - 1) - p < kPsnWindow ? Response::Duplicate : Response::Ghost;
}

// The end of an acknowledgment of everything before `end`: at the latest the first READ or atomic
// that has no response yet.
Psn acknowledged_end(const SendState& s, Psn end) {
  if (s.awaiting.count == 0) return end;
  const Psn awaited = awaited_psn(s);
  return awaited - s.una.psn < end - s.una.psn ? awaited : end;
}

Judgment bad(const SendState& s, std::uint32_t wqe, Psn p) {
  return {Response::Bad, wqe, Status::BadResponse, acknowledged_end(s, p)};
}

// ---- READ responses and atomic results

// True if a READ response may have that place in the message. First and Only begin what was
// requested, the whole READ or the rest of it; Middle and Last follow them. A part that a probe
// requested alone is an Only, or a Last if the peer counts places of the whole READ (Linux rxe).
bool place_fits(const SendState& s, Place place, Psn p, std::uint32_t k, std::uint32_t packets) {
  const Awaiting& a = s.awaiting;
  const bool last = k + 1 == packets;
  const bool begins = k == 0 || (a.is_resumed && a.resumed == p);
  const bool ends = last || (a.is_probed && a.probed == p);
  return ib::place_fits(place, k, begins, last, ends);
}

Judgment judge_read_data(const SendState& s, const ParsedPacket& packet, std::uint32_t index) {
  const Psn p = packet.header.bth.psn;
  const SendWqe& w = s.wqes.wqe(index);
  if (w.op != WrOp::Read) return bad(s, index, p);
  // It is outstanding, so it is one of those that await a response; the oldest of them is next.
  const bool next = index == s.awaiting.oldest && p == awaited_psn(s);
  const std::uint32_t k = p - s.wqes.part(index).psn;
  const Place place = packet.header.row().place;
  // While parts of READs are requested again, a response may begin and end anywhere: a response to
  // a part requested twice may be late.
  const bool fits = packet.payload.size() == s.wqes.bytes(w, k) &&
                    (!s.ahead.empty() || place_fits(s, place, p, k, s.wqes.packets(w)));
  if (!next) {
    const Response what = fits && keeps_ahead(s) ? Response::Ahead : Response::ImpliedNak;
    return {what, index, Status::Success, awaited_psn(s)};
  }
  if (!fits) return bad(s, index, p);
  return {Response::ReadData, index, Status::Success, p};
}

Judgment judge_atomic_result(const SendState& s, Psn p, std::uint32_t index) {
  if (!verbs::is_atomic(s.wqes.wqe(index).op)) return bad(s, index, p);
  if (index != s.awaiting.oldest) {
    const Response what = keeps_ahead(s) ? Response::Ahead : Response::ImpliedNak;
    return {what, index, Status::Success, awaited_psn(s)};
  }
  return {Response::AtomicResult, index, Status::Success, p};
}

// ---- Acknowledge

Judgment judge_ack(const SendState& s, Psn p, std::uint32_t index) {
  const Psn end = acknowledged_end(s, p + 1);
  // An ACK at the PSN of a READ or an atomic is an implied NAK of it as well.
  const Response what = end == p + 1 ? Response::Ack : Response::ImpliedNak;
  return {what, index, Status::Success, end};
}

Judgment judge_nak(const SendState& s, NakCode code, Psn p, std::uint32_t index) {
  Judgment j{Response::Refused, index, Status::Success, acknowledged_end(s, p)};
  switch (code) {
    case NakCode::SequenceError:
      j.what = Response::SequenceNak;
      break;
    case NakCode::OperationInProgress:
      j.what = Response::InProgress;
      break;
    case NakCode::RemoteAccess:
      j.status = Status::RemoteAccess;
      break;
    case NakCode::InvalidRequest:
      j.status = Status::RemoteInvalidRequest;
      break;
    case NakCode::RemoteOperational:
      j.status = Status::RemoteOperation;
      break;
    case NakCode::InvalidRdRequest:
      j.status = Status::RemoteInvalidRd;
      break;
  }
  return j;
}

Judgment judge_acknowledge(const SendState& s, const PacketHeader& h, std::uint32_t index) {
  const Psn p = h.bth.psn;
  switch (h.aeth.syndrome.kind()) {
    case AckKind::Ack:
      return judge_ack(s, p, index);
    case AckKind::RnrNak:
      return {Response::RnrNak, index, Status::Success, acknowledged_end(s, p)};
    default:
      return judge_nak(s, h.aeth.syndrome.code(), p, index);
  }
}

// ---- execution

// Takes MSN and credits of an AETH in ACK form. An MSN of messages not sent yet, or of long ago, is
// ignored.
bool take_msn(SendState& s, const PacketHeader& h) {
  const Msn msn = h.aeth.msn;
  if (s.ssn - msn >= kPsnWindow) return false;
  s.credits.take(msn, h.aeth.syndrome.value());
  return acknowledge_messages(s, msn);
}

// Stores a response, packet `k` of the request's responses. False if access to its destination is
// not allowed.
bool store(const SendState& s, const ParsedPacket& packet, std::uint32_t wqe, std::uint32_t k) {
  const PacketHeader& h = packet.header;
  if (h.row().family == Family::ReadResponse) {
    return s.wqes.scatter(wqe, k * s.wqes.pmtu(), packet.payload);
  }
  std::array<std::uint8_t, verbs::kAtomicBytes> bytes;
  std::memcpy(bytes.data(), &h.original, bytes.size());
  return s.wqes.scatter(wqe, 0, bytes);
}

// True if no further response is expected after the one at una, although the READ has more.
bool comes_alone(const SendState& s, const OpcodeRow& row) {
  return row.ends() && s.una.packet + 1 != s.wqes.packets(s.wqes.wqe(s.una.wqe)) &&
         !s.ahead.ends(s.una.psn);
}

void take_data(SendState& s, const ParsedPacket& packet, Instant now) {
  s.awaiting.alone = comes_alone(s, packet.header.row());
  if (!store(s, packet, s.una.wqe, s.una.packet)) {
    fail(s, s.una.wqe, Status::LocalProtection);
    return;
  }
  s.ahead.pass(s.una.psn, now);
  answered(s);
}

// A NAK, explicit or implied, causes a repetition. During an RNR wait, or once a repetition has
// begun, it adds nothing (IB-147).
void take_nak(SendState& s, std::uint64_t* counter, Instant now) {
  if (s.repeating || s.rnr.on()) return;
  ++*counter;
  repeat_by_nak(s, now);
}

// The packet shows that a response before it is missing, and that all requests before `end` have
// been accepted.
void take_implied_nak(SendState& s, Psn end, Instant now) {
  if (keeps_ahead(s) && s.ahead.open()) return note_hole(s, end, now);
  take_nak(s, &s.counters.implied_naks, now);
}

// A response past a hole. If its destination is not allowed, that is handled when its turn comes.
void take_ahead(SendState& s, const ParsedPacket& packet, std::uint32_t wqe, Instant now) {
  const Psn p = packet.header.bth.psn;
  if (!s.ahead.open()) return take_implied_nak(s, p, now);
  if (may_keep(s, p) && store(s, packet, wqe, p - s.wqes.part(wqe).psn)) kept_ahead(s, p, now);
  note_hole(s, p + 1, now);
}

void take_rnr_nak(SendState& s, const PacketHeader& h, Instant now) {
  if (s.rnr.on()) return;
  ++s.counters.rnr_naks;
  wait_for_receive(s, h.bth.psn, h.aeth.syndrome.value(), now);
}

void discard(SendState& s, Response what) {
  RequesterCounters& c = s.counters;
  ++(what == Response::Duplicate ? c.duplicates : what == Response::Ghost ? c.ghosts : c.malformed);
}

// For a response in the window: first acknowledges what it acknowledges (IB-65).
void carry_out(SendState& s, const Judgment& j, const ParsedPacket& packet, Instant now) {
  const PacketHeader& h = packet.header;
  bool progress = acknowledge(s, j.end);
  if (j.what == Response::ReadData || j.what == Response::AtomicResult) {
    take_data(s, packet, now);
    progress = true;
  }
  if (in_ack_form(h.row(), h) && take_msn(s, h)) progress = true;
  if (progress) {
    close_hole(s, now);
    made_progress(s, now);
  }
  if (s.failure.set) return;
  switch (j.what) {
    case Response::Bad:
    case Response::Refused:
      fail(s, j.wqe, j.status);
      return;
    case Response::ImpliedNak:
      take_implied_nak(s, h.bth.psn + (h.row().family == Family::Acknowledge ? 1 : 0), now);
      break;
    case Response::Ahead:
      take_ahead(s, packet, j.wqe, now);
      break;
    case Response::SequenceNak:
      take_nak(s, &s.counters.sequence_naks, now);
      break;
    case Response::RnrNak:
      take_rnr_nak(s, h, now);
      break;
    case Response::Sack:
      // A SACK beyond a READ or an atomic is an implied NAK of it as well.
      if (j.end != h.bth.psn + 1) take_implied_nak(s, h.bth.psn + 1, now);
      if (take_sack(s, *parse_sack(packet), now)) {
        take_nak(s, &s.counters.sequence_naks, now);
      }
      break;
    case Response::Ack:
      if (repeats_alone(s)) {
        judge_losses(s, now);
      } else if (progress && s.probe.shows_loss(s.una.psn)) {
        repeat_by_probe(s, now);
      }
      break;
    default:
      break;
  }
  if (progress || j.what == Response::InProgress) {
    rearm(s, now);
  } else {
    heard(s, now);
  }
}

}  // namespace

Judgment judge_response(const SendState& s, const ParsedPacket& packet) {
  if (malformed(packet)) return {};
  const Psn p = packet.header.bth.psn;
  if (packet.header.row().family == Family::Sack && p + 1 == s.una.psn) {
    return {Response::Sack, s.una.wqe, Status::Success, s.una.psn};
  }
  if (const Response c = classify(s, p); c != Response::Ack) return {c, 0, Status::Success, {}};
  const std::uint32_t index = wqe_at(s, p);
  switch (packet.header.row().family) {
    case Family::ReadResponse:
      return judge_read_data(s, packet, index);
    case Family::AtomicAcknowledge:
      return judge_atomic_result(s, p, index);
    case Family::Sack:
      return {Response::Sack, index, Status::Success, acknowledged_end(s, p + 1)};
    default:
      return judge_acknowledge(s, packet.header, index);
  }
}

Taken take_response(SendState& s, const ParsedPacket& packet, Instant now) {
  if (s.failure.set) return {Response::Ghost};
  const Judgment j = judge_response(s, packet);
  switch (j.what) {
    case Response::Malformed:
    case Response::Ghost:
      discard(s, j.what);
      break;
    case Response::Duplicate:
      discard(s, j.what);
      if (in_ack_form(packet.header.row(), packet.header) && take_msn(s, packet.header)) {
        made_progress(s, now);
        rearm(s, now);
      } else {
        heard(s, now);  // the peer is sending; probing a READ would make it begin again
      }
      break;
    default:
      carry_out(s, j, packet, now);
      break;
  }
  return {j.what};
}

}  // namespace urnic::ib
