#include "iwarp/rx_commit.h"

namespace urnic::iwarp {

// Data that is not, or only partly, in order, or that has a FIN.
void RxCommit::commit_any(Connection& c, StreamOffset begin, StreamOffset end, bool fin, bool psh,
                          const ddp::MessageCounts& counts, Instant now, Found* found) {
  const tcp::Receipt receipt = tcp::commit(c.tcb, begin, end, fin, psh, now);
  if (begin < end) {
    ddp::MessageCounts own;
    const ddp::MessageCounts behind = c.hole_counters.on_commit(receipt.holes, counts, &own);
    if (own.any()) deliver(c, own, found);
    if (behind.any() && !found->ends_stream()) deliver(c, behind, found);
  }
  act_on_ack(c, receipt.ack, now);
  if (!receipt.fin) return;
  if (c.takes_fpdus() && !found->ends_stream() && !c.buffer.empty()) {
    c.peer_fin = PeerFin::AfterData;  // the bytes before it are parsed first
    if (c.awaits_receive()) shorten_receive_wait(c, now);
  } else {
    found->fin = true;
  }
}

void RxCommit::deliver(Connection& c, const ddp::MessageCounts& counts, Found* found) {
  if (c.qp == nullptr || c.stage == Stage::Terminated) return;
  c.counters.sends_in += counts.sends;
  c.counters.read_requests_in += counts.read_requests;
  ByteView offending;
  const ddp::Violation v = ddp::deliver(
      *c.stream, counts, [&](const auto& done) { completions_.post(*c.qp, done); }, &offending);
  if (counts.terminates != 0 && c.stream->terminate_received) {
    found->terminate = true;
    return;
  }
  if (v != ddp::Violation::None) found->violate(v, offending);
  // After a Read Response, the next Read or a fenced request may be sent. Over our own TCP the
  // segment that carried it causes a turn at sending in any case.
  const bool frees = c.link != nullptr && counts.read_responses != 0;
  if (counts.read_requests != 0 || frees) s_.sending.push(c);
}

void RxCommit::ulp_drop(Connection& c, const tcp::Check& check, Instant now) {
  if (tcp::ack_pending(c.tcb)) transmitter_.emit_ack(c, now);
  const tcp::AckNeed need =
      tcp::refuse(c.tcb, check, true, c.context.config.immediate_dup_ack, now);
  if (need == tcp::AckNeed::Now) ++c.counters.immediate_dup_acks;
  act_on_ack(c, need, now);
}

void RxCommit::act_on_ack(Connection& c, tcp::AckNeed need, Instant now) {
  if (need != tcp::AckNeed::Now) return;  // Pending: at the end of the burst
  ++c.counters.dup_acks_out;
  transmitter_.emit_ack(c, now);
}

void RxCommit::discard_payload(Connection& c, const InHand& in, Instant now, Found* found) {
  const tcp::Check& check = in.check;
  StreamOffset at = check.new_begin, from, to;
  while (c.tcb.rcv.holes.next_missing(at, check.new_end, &from, &to)) {
    if (from != c.tcb.rcv.holes.rcv_nxt()) {
      act_on_ack(c, tcp::refuse(c.tcb, check, false, false, now), now);
      return;
    }
    commit_range(c, from, to, check.fin && to == check.end, in.seg.has(tcp::kPsh), {}, now, found);
    at = to;
  }
}

bool RxCommit::take_fpdu(Connection& c, ByteView ulpdu, Found* found) {
  ddp::Admission& a = admission_;
  ddp::Admitter(*c.stream, true).next(ulpdu, &a);
  if (a.what == ddp::Admit::NoReceive) [[unlikely]] {
    c.starved_msn = a.segment.header.msn;
    if (c.stream->config.receive_wait == Duration() ||
        c.receive_wait == ReceiveWait::Over) {
      found->violate(ddp::Violation::UntaggedNoBuffer, ulpdu);
      return false;
    }
    if (c.stage == Stage::Closing) {  // the consumer has given up what it did not receive
      c.receive_wait = ReceiveWait::Discards;
      return true;
    }
    found->opens_send_side = !c.may_send();  // an FPDU has arrived, so ours may be sent
    if (wait_for_receive(c)) return false;
    ddp::Admitter(*c.stream, true).next(ulpdu, &a);
  }
  if (a.what == ddp::Admit::Violate) {
    if (c.receive_wait == ReceiveWait::Discards &&
        a.violation == ddp::Violation::UntaggedMsnRange) {
      return true;
    }
    found->violate(a.violation, ulpdu);
    return false;
  }
  ddp::MessageCounts counts;
  const ddp::Violation gone = ddp::place(*c.stream, a, &counts);
  if (gone != ddp::Violation::None) [[unlikely]] {
    found->violate(gone, ulpdu);
    return false;
  }
  note_placed(c, a);
  if (counts.any()) deliver(c, counts, found);
  if (found->ends_stream()) return false;
  found->opens_send_side = !c.may_send();
  return true;
}

// All opcodes except Write.
void RxCommit::note_other_placed(Connection& c, const ddp::Admission& a) {
  const std::uint64_t n = a.segment.payload.size();
  switch (a.segment.header.op) {
    case ddp::Opcode::ReadResponse:
      c.counters.read_response_bytes_in += n;
      break;
    case ddp::Opcode::Send:
    case ddp::Opcode::SendInv:
    case ddp::Opcode::SendSe:
    case ddp::Opcode::SendSeInv:
    case ddp::Opcode::Immediate:
    case ddp::Opcode::ImmediateSe:
      c.counters.send_bytes_in += n;
      break;
    case ddp::Opcode::Write:
    case ddp::Opcode::ReadRequest:
    case ddp::Opcode::AtomicRequest:
    case ddp::Opcode::AtomicResponse:
    case ddp::Opcode::Terminate:
      return;
  }
  c.counters.payload_placed += n;
}

std::uint64_t RxCommit::receive_room(const Connection& c) const {
  return c.context.type == fastpath::ConnectionType::Fast
             ? s_.options.tcp.receive_buffer
             : c.buffer.room(c.tcb.rcv.holes.rcv_nxt());
}

void RxCommit::update_receive_room(Connection& c, Instant now) {
  if (c.link != nullptr) return;  // the kernel sets the window
  if (tcp::set_receive_room(c.tcb, receive_room(c), now)) transmitter_.emit_ack(c, now);
}

}  // namespace urnic::iwarp
