#include "ib/requester.h"

#include <algorithm>
#include <cstring>

#include "ib/answer_holes.h"
#include "ib/request_operation.h"
#include "ib/selective.h"
#include "ib/send_progress.h"

namespace urnic::ib {

using verbs::awaits_response;
using verbs::SendWqe;
using verbs::Status;
using verbs::WrOp;

namespace {

bool uses_receive(WrOp op) {
  return op == WrOp::Send || op == WrOp::SendImm || op == WrOp::SendInv || op == WrOp::WriteImm;
}

// False if there is no packet for the operation (masks, a swap without compare), or for a READ or
// atomic if none may be outstanding.
bool can_express(const SendState& s, std::uint32_t index) {
  const SendWqe& w = s.wqes.wqe(index);
  if (awaits_response(w.op) && s.qp->initiator_depth == 0) return false;
  if (!verbs::is_atomic(w.op)) return true;
  const verbs::AtomicOperands& o = s.wqes.queue().operands(index).atomic;
  if (w.op == WrOp::FetchAdd) return o.boundaries << 1 == 0;  // no carry leaves bit 63 anyway
  return w.op == WrOp::CmpSwap && ~o.data_mask == 0 && ~o.compare_mask == 0;
}

// ---- one packet

void set_extension(const SendState& s, const SendPosition& at, PacketHeader* h) {
  const SendWqe& w = s.wqes.wqe(at.wqe);
  const OpcodeRow& row = h->row();
  if (row.has(kXrcEth)) h->srq = w.remote_srq;
  if (row.has(kReth)) {
    // For a READ that is partly answered, only the missing rest (IB-64).
    const std::uint32_t skip = w.op == WrOp::Read ? at.packet * s.wqes.pmtu() : 0;
    h->reth = {w.remote_address + skip, w.key, w.length - skip};
  }
  if (row.has(kAtomicEth)) {
    const verbs::AtomicOperands& o = s.wqes.queue().operands(at.wqe).atomic;
    h->atomic = {w.remote_address, w.key, o.data, o.compare};
  }
  if (row.has(kImmDt)) {
    h->immediate = static_cast<std::uint32_t>(s.wqes.queue().operands(at.wqe).immediate);
  }
  if (row.has(kIeth)) h->inv_rkey = w.key;
}

// The packet at a position, new or repeated, without AckReq. False if its memory is gone.
bool build(const SendState& s, const SendPosition& at, RequestPacket* out) {
  const SendWqe& w = s.wqes.wqe(at.wqe);
  const std::uint32_t packets = s.wqes.packets(w);
  PacketHeader& h = out->header;
  h = PacketHeader{};
  h.bth.opcode = Opcode(s.qp->service, operation_of(w.op, at.packet, packets));
  h.bth.pkey = s.qp->pkey;
  h.bth.dest_qp = s.qp->dest_qp;
  h.bth.psn = at.psn;
  h.bth.solicited = (w.flags & verbs::kSolicited) != 0 && h.row().completes_receive();
  if (h.row().headers != 0) set_extension(s, at, &h);
  out->count = 0;
  out->length = awaits_response(w.op) ? 0 : s.wqes.bytes(w, at.packet);
  return s.wqes.gather(at.wqe, at.packet * s.wqes.pmtu(), out->length, out->pieces.data(),
                       &out->count);
}

// The position after the request packet at `at`; a READ is a single request packet.
SendPosition behind(const SendState& s, const SendPosition& at) {
  const SendWqe& w = s.wqes.wqe(at.wqe);
  const std::uint32_t packets = s.wqes.packets(w);
  const std::uint32_t step = w.op == WrOp::Read ? packets - at.packet : 1;
  const bool last = at.packet + step == packets;
  return SendPosition::at(last ? at.wqe + 1 : at.wqe, last ? 0 : at.packet + step, at.psn + step);
}

// True if a packet that ends at `end` requests an ACK (IB-15): each last packet of a message; some
// packets of long messages, so that the window moves on; and a packet that none may follow now.
bool asks(const SendState& s, const PacketHeader& h, const SendPosition& end) {
  const OpcodeRow& row = h.row();
  if (row.ends() || s.since_ack + 1 >= ack_every(s)) return true;
  if (end.psn == s.fresh.psn) return true;  // the last repeated one
  return s.in_flight >= s.window();
}

// The packet is sent, in order.
void sent(SendState& s, PacketHeader* h, const SendPosition& end, bool ask, bool again,
          Instant now) {
  h->bth.ack_request = ask;
  // A READ waits at the peer for those before it, so its round trip is not that of the path.
  const bool untold = again || h->row().family == Family::Read;
  s.congestion.left(h->bth.psn, ask, untold, s.outstanding() >= s.window(), now);
  ++s.counters.packets;
  s.since_ack = ask ? 0 : s.since_ack + 1;
  if (s.qp->peer_selective) s.log.append(h->bth.psn, end.psn, now);
  s.next = end;
  if (ask) expect_answer(s, end.psn, now);
}

// ---- repetition

// Packets to be repeated may have been acknowledged meanwhile, and local operations have no packet.
void catch_up(SendState& s) {
  if (s.next.before(s.una)) s.next = s.una;
  while (s.next.wqe != s.fresh.wqe && verbs::is_local(s.wqes.wqe(s.next.wqe).op)) ++s.next.wqe;
}

// A READ requested from there on may be answered with a First or Only there.
void resume_read(SendState& s, const SendPosition& at) {
  if (s.wqes.wqe(at.wqe).op != WrOp::Read || at.packet == 0) return;
  s.awaiting.resumed = at.psn;
  s.awaiting.is_resumed = true;
}

// If the peer has begun to answer a READ, the probe requests a single packet: a peer that serves
// requests one after the other, each to its end, would otherwise resend all of the rest for each
// probe. If the peer may never have seen the READ, the probe requests all of it: a part would be a
// request of its own, and count as a message.
void request_one_packet(SendState& s, PacketHeader* h) {
  const SendWqe& w = s.wqes.wqe(s.una.wqe);
  if (w.op != WrOp::Read || s.una.packet == 0) return;
  h->reth.length = s.wqes.bytes(w, s.una.packet);
  s.awaiting.probed = s.una.psn;
  s.awaiting.is_probed = true;
}

// Sends the oldest unacknowledged packet again as the probe (S-5). No position moves, and retry
// counter and transport timer are not touched. There is no probe if that packet is the next one to
// be repeated, or if its memory is gone, which the transport timer handles. If nothing followed the
// single packet that a probe had requested, the packets in flight are lost and are repeated.
bool probe_packet(SendState& s, Instant now, RequestPacket* out) {
  if (s.awaiting.alone && s.next != s.una) {
    repeat_by_probe(s, now);
    return false;
  }
  if (s.una == s.fresh || s.next == s.una || !build(s, s.una, out)) {
    s.probe.skip();
    return false;
  }
  resume_read(s, s.una);
  request_one_packet(s, &out->header);
  out->header.bth.ack_request = true;
  ++s.counters.packets;
  ++s.counters.repeated;
  ++s.counters.probes;
  s.probe.left(s.una.psn, s.next.psn, now);
  s.log.again(s.una.psn, now);
  return true;
}

// Sends only the lost packet again (S-6). Each requests an ACK, which shows the next loss.
bool lost_packet(SendState& s, Instant now, RequestPacket* out) {
  const SendPosition at = lost_position(s);
  if (at != s.una && s.in_flight - s.log.lost() >= s.window() && s.congestion.closed())
    return false;
  if (s.stuck.set && s.stuck.wqe == at.wqe) return false;
  if (!build(s, at, out)) {
    mark_stuck(s, at.wqe, Status::LocalProtection);
    return false;
  }
  resume_read(s, at);
  out->header.bth.ack_request = true;
  ++s.counters.packets;
  ++s.counters.repeated;
  ++s.counters.alone;
  s.log.again(at.psn, now);
  s.congestion.repeated();
  expect_answer(s, behind(s, at).psn, now);
  return true;
}

// Requests only the missing part of a response (S-2).
bool request_missing_part(SendState& s, Instant now, RequestPacket* out) {
  MissingPart part;
  if (!next_missing(s, now, &part)) return false;
  if (!build(s, part.at, out)) {
    mark_stuck(s, part.at.wqe, Status::LocalProtection);
    return false;
  }
  Reth& reth = out->header.reth;
  if (s.wqes.wqe(part.at.wqe).op == WrOp::Read) {
    reth.length = std::min(reth.length, part.packets * s.wqes.pmtu());
  }
  out->header.bth.ack_request = true;
  ++s.counters.packets;
  ++s.counters.repeated;
  ++s.counters.missing;
  expect_answer(s, behind(s, part.at).psn, now);
  return true;
}

// Sends next, which lies before fresh, again if the window allows it.
bool repeat_packet(SendState& s, Instant now, RequestPacket* out) {
  if (s.next.psn - s.una.psn >= s.window() && s.congestion.closed()) return false;
  const SendPosition at = s.next, end = behind(s, at);
  if (s.stuck.set && s.stuck.wqe == at.wqe) return false;
  if (!build(s, at, out)) {
    mark_stuck(s, at.wqe, Status::LocalProtection);
    return false;
  }
  resume_read(s, at);
  ++s.counters.repeated;
  sent(s, &out->header, end, asks(s, out->header, end), true, now);
  if (!s.log.empty()) s.log.again(at.psn, now);  // a response may answer the copy sent before
  return true;
}

// ---- new

// Begins the WQE at fresh; it belongs to the requester from here on.
void begin(SendState& s) {
  s.wqes.part(s.fresh.wqe) = {s.fresh.psn, s.ssn};
  s.wqes.queue().start();
}

// Executes a local operation when it is its turn. An invalidation waits until nothing before it can
// be repeated or filled again. False if it is not done yet.
bool execute_local_in_turn(SendState& s) {
  const std::uint32_t index = s.fresh.wqe;
  if (s.wqes.wqe(index).op == WrOp::LocalInv && s.una.wqe != index) return false;
  if (const Status status = s.wqes.execute_local(index); status != Status::Success) {
    mark_stuck(s, index, status);
    return false;
  }
  begin(s);
  s.wqes.wqe(index).done = true;
  if (s.next == s.fresh) ++s.next.wqe;
  ++s.fresh.wqe;
  settle(s);
  check_stuck(s);
  return true;
}

// True if one more PSN, or all those of a READ, may be outstanding (IB-9), and one more packet or
// request.
bool room_for(const SendState& s, const SendWqe& w) {
  if (!awaits_response(w.op)) {
    return s.in_flight < s.window() && s.outstanding() < kPsnWindow;
  }
  const std::uint32_t packets = s.wqes.packets(w), outstanding = s.outstanding();
  // If the network has signaled congestion, the responses to a READ count as in flight, too. One
  // READ alone may be longer than any window (S-10).
  const bool narrow = s.congestion.closed() && s.congestion.counters().cuts != 0;
  if (narrow && outstanding != 0 && outstanding + packets > s.window()) return false;
  return s.awaiting.count < s.qp->initiator_depth && packets <= kPsnWindow - outstanding;
}

// Finds a new WQE at fresh whose first packet may be sent. Executes local operations before it.
bool find_message(SendState& s) {
  const verbs::SendQueue& sq = s.wqes.queue();
  while (!sq.all_started() && !s.stuck.set) {
    const SendWqe& w = s.wqes.wqe(s.fresh.wqe);
    if ((w.flags & verbs::kFence) != 0 && s.awaiting.count != 0) return false;
    if (verbs::is_local(w.op)) {
      if (!execute_local_in_turn(s)) return false;
      continue;
    }
    if (!can_express(s, s.fresh.wqe)) {
      mark_stuck(s, s.fresh.wqe, Status::LocalOperation);
      return false;
    }
    if (!s.wqes.may_touch(s.fresh.wqe)) {
      mark_stuck(s, s.fresh.wqe, Status::LocalProtection);
      return false;
    }
    return room_for(s, w);
  }
  return false;
}

void begin_message(SendState& s) {
  const SendWqe& w = s.wqes.wqe(s.fresh.wqe);
  ++s.ssn;
  begin(s);
  s.messages.begins(w);
  if (!uses_receive(w.op)) s.credits.left_without_receive();
  if (awaits_response(w.op) && s.awaiting.count++ == 0) s.awaiting.oldest = s.fresh.wqe;
}

// True if a message beyond the LSN pauses: a Send after its first packet, a WRITE with Immediate
// after its last (IB-84, IB-85).
bool pauses_at_lsn(const SendState& s, const SendWqe& w, const OpcodeRow& row) {
  if (!uses_receive(w.op) || s.credits.covers(s.ssn)) return false;
  return w.op == WrOp::WriteImm ? row.ends() : row.begins();
}

// Sends the packet at fresh.
bool new_packet(SendState& s, bool may_begin, Instant now, RequestPacket* out) {
  if (s.credits.holds()) return false;
  if (s.fresh.packet == 0) {
    if (!may_begin || !find_message(s)) return false;
  } else if (s.stuck.set || !room_for(s, s.wqes.wqe(s.fresh.wqe))) {
    return false;
  }
  const SendPosition at = s.fresh;
  if (!build(s, at, out)) {
    mark_stuck(s, at.wqe, Status::LocalProtection);
    return false;
  }
  if (at.packet == 0) begin_message(s);
  const SendWqe& w = s.wqes.wqe(at.wqe);
  if (!awaits_response(w.op)) ++s.in_flight;
  const SendPosition end = behind(s, at);
  const bool stop = pauses_at_lsn(s, w, out->header.row());
  if (stop) s.credits.hold(s.ssn, end.psn);
  const bool ask = stop || asks(s, out->header, end);
  s.fresh = end;
  if (ask) s.probe.measure(at.psn, now);
  sent(s, &out->header, end, ask, false, now);
  return true;
}

}  // namespace

std::uint8_t* RequestPacket::copy_payload(std::uint8_t* to) const {
  for (std::uint32_t i = 0; i < count; ++i) {
    std::memcpy(to, pieces[i].data(), pieces[i].size());
    to += pieces[i].size();
  }
  return to;
}

void Requester::lose_packet(const RequestPacket& packet) {
  mark_stuck(s_, wqe_at(s_, packet.header.bth.psn), Status::LocalProtection);
}

void Requester::attributes_changed() {
  s_.timer = TransportTimer(s_.qp->ack_timeout, s_.rules.least_timeout);
  s_.retries = RetryCounters(s_.qp->retry_count, s_.qp->rnr_retry);
  s_.probe = Probe(s_.qp->probe);
}

void Requester::notified(Instant now) {
  s_.congestion.notified(s_.fresh.psn, s_.outstanding() != 0, now);
}

void Requester::slow_down(Instant now) {
  if (s_.outstanding() != 0) s_.congestion.marked(s_.fresh.psn, now);
}

bool Requester::next_packet(Instant now, bool may_begin, RequestPacket* out) {
  if (failed() || s_.rnr.on()) return false;
  catch_up(s_);
  if (s_.probe.wanted() && probe_packet(s_, now, out)) return true;
  if (s_.hole.wanted && request_missing_part(s_, now, out)) return true;
  if (s_.log.any_lost()) return lost_packet(s_, now, out);
  if (s_.next != s_.fresh) return repeat_packet(s_, now, out);
  return new_packet(s_, may_begin, now, out);
}

void Requester::on_time(Instant now) {
  if (s_.rnr.until <= now && s_.rnr.on()) repeat_after_wait(s_, now);
  if (s_.timer.expired(now)) repeat_by_timeout(s_, now);
  holes_due(s_, now);
  if (s_.log.due() <= now && !s_.log.due().is_never()) judge_losses(s_, now);
  s_.probe.on_time(now);
}

void Requester::stop() {
  fail(s_, s_.una.wqe, Status::Flushed);
}

bool Requester::flush_one(verbs::Completion* c) {
  const SendFailure& f = s_.failure;
  const bool it = f.set && f.wqe == s_.wqes.queue().head();
  return s_.wqes.next_flushed(it ? f.status : Status::Flushed, c);
}

}  // namespace urnic::ib
