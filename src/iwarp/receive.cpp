// Processes one segment in the steps of receiving, in the order of the picture in
// docs/architecture.md: checksum and CRC, TCP check, ACK side, InLogic, admit, place, commit,
// deliver; then acts on their results. Each step is a separate function (D2).
#include "ddp_rdma/plain_write.h"
#include "iwarp/side.h"
#include "iwarp/silent_peers.h"
#include "mpa/fpdu.h"
#include "tcp/predict.h"

namespace urnic::iwarp {
namespace {

// A connection that can never leave SLOW has its CRC checked once: here if the reassembly buffer is
// empty, so that a segment probably begins with an FPDU, otherwise at extraction.
bool wants_validation(const Connection& c) {
  return c.stage >= Stage::Full && c.stage <= Stage::Closing && c.context.config.crc &&
         (c.context.type == fastpath::ConnectionType::Fast ||
          c.context.config.initiated_as == fastpath::ConnectionType::Fast || c.buffer.empty());
}

}  // namespace

void Side::stage(const port::Frame& frame, net::FrameHead& head, Arrived* a) {
  const std::size_t l4 = head.net.l4_offset;
  if (l4 >= head.size) return;
  std::size_t tcp_header = 0;
  auto seg = tcp::parse_segment(
      {head.bytes + l4, std::min<std::size_t>(head.size - l4, head.net.l4_len)}, &tcp_header);
  if (!seg) {
    ++state_.counters.dropped;
    return;
  }
  a->seg = *seg;
  a->seg.ecn = head.net.ecn;
  a->usable = finish_staging(frame, head, l4, head.net.l4_len, tcp_header, head.net.pseudo_sum, a);
  if (!a->usable) return;
  a->connection = state_.connections.find(flow_of(head, a->seg));
  if (a->connection != nullptr) {
    prefetch(*a->connection);
    // Frames of the loopback path are not remembered: they would make the same frames from the wire
    // trusted.
    if (head.looped) return;
    state_.connections.remember(head.bytes, head.net, *a->connection);
  }
}

inline fastpath::Validation* Receiver::validate(const Connection& c, const tcp::Segment& seg) {
  if (!wants_validation(c)) return nullptr;
  if (c.framing.marked()) [[unlikely]] {
    validate_framed(c, seg);
  } else {
    fastpath::validate(seg.payload, scratch_.validation);
  }
  return &scratch_.validation;
}

void Side::process(net::FrameHead& head, Arrived& a, Instant now) {
  Connection* c = a.connection;
  // An earlier frame of the burst may have ended the connection, or opened one.
  if (c == nullptr || c->is_over()) [[unlikely]] {
    if (!head.classified) head.classify();
    c = a.connection = state_.connections.find(flow_of(head, a.seg));
  }
  std::uint32_t payload_sum = 0;
  fastpath::Validation* validation = nullptr;
  if (!a.seg.payload.empty()) {
    if (c != nullptr) validation = receiver_.validate(*c, a.seg);
    if (validation != nullptr) {
      payload_sum = validation->sum;
    } else if (a.verify) {
      payload_sum = inet_sum(a.seg.payload);
    }
  }
  if (a.verify && inet_checksum(static_cast<std::uint64_t>(a.header_sum) + payload_sum) != 0) {
    ++state_.counters.bad_checksum;  // TCP itself discards it: no ACK, no other effect
    return;
  }
  if (c == nullptr) {
    // The answer to a cookie is the first segment of the connection it opens.
    c = a.connection = opening_.take_unmatched(head, a.seg, now);
    if (c == nullptr) return;
  }
  process_connection(*c, head, a, validation, now);
}

// Sends TCP's own reply to the segment. Returns false if nothing else is to be done.
bool Side::answers(Connection& c, const tcp::Check& check, net::FrameHead& head, const Arrived& a,
                   Instant now) {
  const tcp::Answer own = tcp::answer(c.tcb, check, a.seg, state_.counters.tcp, now);
  switch (own.kind) {
    case tcp::Answer::Kind::Process:
      if (!c.backlog.is_half_open() || !is_full_for(*c.backlog.listener(), c.key.remote))
        return true;
      if (make_room(state_, ending_, *c.backlog.listener(), c.key.remote, now)) return true;
      // It stays half open: our SYN-ACK and the peer's ACK are resent.
      ++state_.counters.tcp.dropped_backlog;
      return false;
    case tcp::Answer::Kind::Nothing:
      ++state_.counters.dropped;
      return false;
    case tcp::Answer::Kind::Send:
      transmitter_.send_control(c, own.plan, now);
      return false;
    case tcp::Answer::Kind::Rst:
      if (!head.classified) head.classify();
      if (transmitter_.send_stateless(head, own.reset)) ++state_.counters.rst_sent;
      if (tcp::after_reset_sent(c.tcb)) state_.sending.push(c);
      return false;
    case tcp::Answer::Kind::Ended:
      events_.take_reset(c, now);
      return false;
  }
  return false;
}

inline bool Receiver::cut_through_plain(Connection& c, const InHand& in) {
  if (c.stage != Stage::Full || in.validation == nullptr || !c.may_send()) return false;
  if (c.framing.marked()) return false;
  if (!fastpath::plainly_fast(c.context, in.check.arrival, *in.validation)) return false;
  if (in.validation->frames.size() != 1 || !tcp::commits_predicted(c.tcb)) return false;
  const ByteView fpdu = in.seg.payload;
  const std::uint32_t ulpdu = load_be16(fpdu.data());
  // The validation unit has read this length before; memory shared with a peer may have changed.
  if (mpa::fpdu_size(ulpdu) != fpdu.size()) return false;
  ddp::PlainWrite write;
  if (!ddp::admit_plain_write(*c.stream, fpdu.subspan(mpa::kLengthField, ulpdu), &write)) {
    return false;
  }
  if (!ddp::place_plain_write(write))
    return false;  // the next step will find the memory gone as
                   // well
  tcp::commit_predicted(c.tcb, in.check.begin, in.check.end);
  ConnectionCounters& n = c.counters;
  ++n.reasons[static_cast<std::size_t>(fastpath::Reason::Aligned)];
  ++n.fpdus_in[static_cast<std::size_t>(ddp::Opcode::Write)];
  n.bytes_fast += fpdu.size();
  n.bytes_copied += write.payload.size();
  n.write_bytes_in += write.payload.size();
  n.payload_placed += write.payload.size();
  return true;
}

inline bool Receiver::reassemble_plain(Connection& c, const InHand& in, Instant now) {
  if (c.context.config.initiated_as != fastpath::ConnectionType::Slow || in.validation == nullptr) {
    return false;
  }
  if (c.stage != Stage::Full || !c.may_send() || c.framing.marked()) return false;
  if (!in.validation->passed() || in.validation->frames.size() != 1) return false;
  if (c.residue || c.awaits_receive() || c.in_drain_queue || !c.buffer.empty()) return false;
  if (c.buffer.read_position() != in.check.begin || !tcp::commits_predicted(c.tcb)) return false;
  const ByteView fpdu = in.seg.payload;
  const std::uint32_t ulpdu = load_be16(fpdu.data());
  if (mpa::fpdu_size(ulpdu) != fpdu.size()) return false;
  ddp::PlainWrite write;
  if (!ddp::admit_plain_write(*c.stream, fpdu.subspan(mpa::kLengthField, ulpdu), &write)) {
    return false;
  }
  std::uint8_t* const kept = c.buffer.pass(fpdu);
  if (kept == nullptr) return false;
  write.payload = {kept + (write.payload.data() - fpdu.data()), write.payload.size()};
  if (!ddp::place_plain_write(write)) {
    c.buffer.passed(kept, in.check.begin);
    return false;
  }
  c.buffer.passed(kept, in.check.end);
  c.extractor.checked(in.check.end);
  tcp::commit_predicted(c.tcb, in.check.begin, in.check.end);
  ConnectionCounters& n = c.counters;
  ++n.reasons[static_cast<std::size_t>(fastpath::Reason::Slow)];
  ++n.fpdus_in[static_cast<std::size_t>(ddp::Opcode::Write)];
  n.bytes_slow += fpdu.size();
  n.bytes_copied += fpdu.size() + write.payload.size();
  n.write_bytes_in += write.payload.size();
  n.payload_placed += write.payload.size();
  rx_commit_.update_receive_room(c, now);
  return true;
}

[[gnu::always_inline]] inline void Side::process_connection(Connection& c, net::FrameHead& head,
                                                            const Arrived& a,
                                                            fastpath::Validation* validation,
                                                            Instant now) {
  ++c.counters.segments_in;
  InHand in{a.seg, {}, validation};
  tcp::Check& check = in.check;
  const bool predicted = tcp::check_predicted(c.tcb, a.seg, &check);
  if (!predicted) [[unlikely]] {
    check = tcp::check(c.tcb, a.seg, now);
    if (!answers(c, check, head, a, now)) return;
  }
  state_.touched.push(c);
  tcp::AckResult ack;
  if (predicted && tcp::take_ack_predicted(c.tcb, a.seg, now)) [[likely]] {
    if (receiver_.cut_through_plain(c, in)) return;
    if (receiver_.reassemble_plain(c, in, now)) return;
  } else {
    ack = tcp::take_ack(c.tcb, a.seg, check, now);
    c.counters.dup_acks_in += ack.duplicate;
    if (ack.ack_first) [[unlikely]]
      transmitter_.emit_ack(c, now);
  }
  if (ack.established && !opening_.tcp_established(c, now)) [[unlikely]]
    return;
  if (ack.una_advanced && c.stream != nullptr) {
    complete_acked(completions_, c, ack.una);
    if (now >=
        c.confirm_next_hop) {  // forward progress: the neighbour is reachable (RFC 4861 7.3.1)
      c.confirm_next_hop = now + Duration::s(1);
      state_.wire.interface().confirm(c.next_hop, now);
    }
  }
  Found found;
  if (check.arrival != tcp::Arrival::None) receiver_.take_payload(c, in, now, &found);
  // TIME-WAIT concerns only TCP: the connection has ended.
  found.closed =
      ack.closed || c.tcb.state == tcp::State::Closed || c.tcb.state == tcp::State::TimeWait;
  if (found.any() || c.stage == Stage::Startup) [[unlikely]]
    events_.settle(c, found, now);
}

void Receiver::take_payload(Connection& c, const InHand& in, Instant now, Found* found) {
  const tcp::Check& check = in.check;
  const bool taken = check.arrival == tcp::Arrival::InOrder ||
                     check.arrival == tcp::Arrival::OutOfOrder ||
                     check.arrival == tcp::Arrival::Overlap;
  // A segment that needs an ACK of its own comes after the pending ACK (E-7, R-63).
  const bool own_ack = check.arrival != tcp::Arrival::InOrder || c.tcb.rcv.holes.size() != 0;
  if (own_ack && tcp::ack_pending(c.tcb)) transmitter_.emit_ack(c, now);
  if (!taken) {
    if (check.arrival == tcp::Arrival::Duplicate && check.fin && !c.tcb.rcv.fin_taken &&
        check.end == c.tcb.rcv.holes.rcv_nxt()) {  // everything but the FIN is a duplicate
      slow_.take_fin(c, check.end, now, found);
      return;
    }
    ++s_.counters.dropped;
    rx_commit_.act_on_ack(c, tcp::refuse(c.tcb, check, false, false, now), now);
    return;
  }
  if (in.seg.payload.empty()) {  // only a FIN
    if (check.arrival == tcp::Arrival::InOrder && check.fin) {
      slow_.take_fin(c, check.begin, now, found);
    } else {
      rx_commit_.act_on_ack(c, tcp::refuse(c.tcb, check, false, false, now), now);
    }
    return;
  }
  switch (c.stage) {
    case Stage::Opening:
    case Stage::Startup:  // E-1: MPA frames are not FPDUs; InLogic is not called
      slow_.store(c, in, now, found);
      break;
    case Stage::Full:
    case Stage::Closing:
      in_logic(c, in, now, found);
      break;
    case Stage::Leaving:
    case Stage::Terminated:
    case Stage::Lingering:
      rx_commit_.discard_payload(c, in, now, found);
      break;
  }
}

}  // namespace urnic::iwarp
