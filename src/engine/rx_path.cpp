// The receive path, in the order of the picture in docs/architecture.md: burst, TCP check, ACK
// side, validation, InLogic, admit, place, commit, deliver. Each step is a function of its own
// (D2).
#include <algorithm>
#include <cstring>

#include "base/inet_checksum.h"
#include "ddp_rdma/plain_write.h"
#include "engine/engine.h"
#include "mpa/fpdu.h"
#include "tcp/predict.h"

namespace urnic::engine {
namespace {

constexpr std::size_t kHeaderCopy = net::kHeadSpan;
// Holds tagged Ethernet, IPv6 and TCP with timestamps; a copy of constant length is a few moves.
constexpr std::size_t kShortHead = 96;
static_assert(kShortHead >= net::FlowMatch::kSpan && kShortHead <= kHeaderCopy);

// The payload of the frame behind the one at work: its lines come while that one is checked and
// placed. Of a long payload the beginning, the rest is a stream that the processor sees coming.
[[gnu::always_inline]] inline void prefetch_payload(ByteView payload) {
  constexpr std::size_t kLine = 64, kMost = 1024;
  const std::size_t n = std::min(payload.size(), kMost);
  for (std::size_t i = 0; i < n; i += 4 * kLine) {  // a line or two too many does no harm
    const std::uint8_t* const p = payload.data() + i;
    __builtin_prefetch(p);
    __builtin_prefetch(p + kLine);
    __builtin_prefetch(p + 2 * kLine);
    __builtin_prefetch(p + 3 * kLine);
  }
}

}  // namespace

bool Engine::receive_burst(Instant now) {
  const unsigned n = port_->rx_burst(queue_, rx_frames_, port::kBurst);
  if (n == 0) return false;
  // Copy every head first, then parse them all and fetch the contexts they need, then work (D3):
  // the lines of one frame come while those of the others do, and nothing is read back right after
  // it was written.
  for (unsigned i = 0; i < n; ++i) copy_head(rx_frames_[i], &staged_[i]);
  for (unsigned i = 0; i < n; ++i) stage_frame(rx_frames_[i], &staged_[i], now);
  for (unsigned i = 0; i < n; ++i) {
    if (i + 1 < n && staged_[i + 1].usable) prefetch_payload(staged_[i + 1].seg.payload);
    if (staged_[i].usable) process(staged_[i], now);
  }
  port_->rx_release(queue_, rx_frames_, n);
  counters_.rx_frames += n;
  return true;
}

// Headers are copied out before they are believed: the frame may lie in memory a peer can still
// write (E-19).
inline void Engine::copy_head(const port::Frame& frame, Staged* s) {
  s->frame_octets = port::frame_len(frame);
  if (frame.len[0] >= kShortHead) [[likely]] {
    std::memcpy(s->header, frame.data[0], kShortHead);
    s->head_octets = kShortHead;
  } else {
    std::memcpy(s->header, frame.data[0], frame.len[0]);
    s->head_octets = static_cast<std::uint16_t>(frame.len[0]);
  }
}

// `s` has the head.
inline void Engine::stage_frame(const port::Frame& frame, Staged* s, Instant now) {
  s->usable = false;
  counters_.rx_bytes += s->frame_octets;
  net::FlowMatch::Match m;
  std::size_t tcp_header = 0;
  if (recent_.connection != nullptr &&
      recent_.match.match(s->header, s->head_octets, s->frame_octets, &m) &&
      tcp::parse_plain_segment(
          {s->header + m.l4_offset, std::min<std::size_t>(s->head_octets - m.l4_offset, m.l4_len)},
          &s->seg, &tcp_header)) [[likely]] {
    s->classified = false;
    s->connection = recent_.connection;
    s->seg.ecn = m.ecn;
    s->usable = finish_staging(frame, m.l4_offset, m.l4_len, tcp_header, m.pseudo_sum, s);
    return;
  }
  stage_unknown(frame, s, now);
}

void Engine::receive_one(const port::Frame& frame, Instant now) {
  Staged& s = staged_[0];
  s.looped = true;
  copy_head(frame, &s);
  stage_frame(frame, &s, now);
  if (s.usable) process(s, now);
  s.looped = false;
}

// A frame that does not look like the last one.
void Engine::stage_unknown(const port::Frame& frame, Staged* s, Instant now) {
  s->connection = nullptr;
  s->head_octets = static_cast<std::uint16_t>(std::min<std::size_t>(frame.len[0], kHeaderCopy));
  std::memcpy(s->header, frame.data[0], s->head_octets);
  classify_staged(*s);
  if (s->net.kind != net::FrameKind::Tcp) {
    if (s->net.kind == net::FrameKind::Drop) {
      interface_.counters().drop(s->net.reason);
    } else {
      input_control(frame, s->net, now);
    }
    return;
  }
  if (!interface_.accepts(s->net)) {
    interface_.counters().drop(net::DropReason::NotForUs);
    return;
  }
  // E-46: nobody on the wire has our address, or one that no host may have.
  if (!s->looped && !interface_.may_send(s->net.src)) {
    interface_.counters().drop(net::DropReason::Source);
    return;
  }
  const std::size_t l4 = s->net.l4_offset;
  if (l4 >= s->head_octets) return;
  std::size_t tcp_header = 0;
  auto seg = tcp::parse_segment(
      {s->header + l4, std::min<std::size_t>(s->head_octets - l4, s->net.l4_len)}, &tcp_header);
  if (!seg) {
    ++counters_.rx_tcp_dropped;
    return;
  }
  s->seg = *seg;
  s->seg.ecn = s->net.ecn;
  s->usable = finish_staging(frame, l4, s->net.l4_len, tcp_header, s->net.pseudo_sum, s);
  if (!s->usable) return;
  s->connection = connections_.find(s->flow());
  if (s->connection != nullptr) {
    __builtin_prefetch(s->connection);
    __builtin_prefetch(reinterpret_cast<const char*>(s->connection) + 64);
    // What the loop carries is not remembered: it would vouch for the same from the wire.
    if (s->looped) return;
    recent_.connection = recent_.match.learn(s->header, s->net) ? s->connection : nullptr;
  }
}

// The payload is contiguous: behind the headers in span 0, or span 1 (port_abi.h).
inline bool Engine::finish_staging(const port::Frame& frame, std::size_t l4, std::size_t l4_len,
                                   std::size_t tcp_header, std::uint32_t pseudo_sum, Staged* s) {
  const std::size_t length = l4_len - tcp_header;
  if (frame.len[1] == 0) [[likely]] {
    s->seg.payload = {frame.data[0] + l4 + tcp_header, length};
  } else {
    if (l4 + tcp_header != frame.len[0] || length > frame.len[1]) return false;
    s->seg.payload = {frame.data[1], length};
  }
  s->verify = frame.csum == URNIC_CSUM_UNKNOWN;
  if (s->verify) s->header_sum = pseudo_sum + inet_sum_words(s->header + l4, tcp_header);
  return true;
}

void Engine::classify_staged(Staged& s) {
  s.net = net::classify({s.header, s.head_octets}, s.frame_octets);
  s.classified = true;
}

// ARP, ND, ICMP: rare, so the whole frame is copied out of memory a peer may write (E-19).
void Engine::input_control(const port::Frame& frame, const net::Classified& c, Instant now) {
  control_frame_.resize(port::frame_len(frame));
  std::memcpy(control_frame_.data(), frame.data[0], frame.len[0]);
  if (frame.len[1] != 0) {
    std::memcpy(control_frame_.data() + frame.len[0], frame.data[1], frame.len[1]);
  }
  interface_.input(c, control_frame_, now);
}

// A connection that can never leave SLOW has its CRC checked once: here while nothing waits in the
// reassembly buffer, so that a segment is likely to begin with an FPDU, at extraction otherwise.
inline bool Engine::wants_validation(const Connection& c) {
  return c.stage >= Stage::Full && c.stage <= Stage::Closing && c.context.config.crc &&
         (c.context.type == fastpath::ConnectionType::Fast ||
          c.context.config.initiated_as == fastpath::ConnectionType::Fast || c.buffer.empty());
}

void Engine::process(Staged& s, Instant now) {
  Connection* c = s.connection;
  // An earlier frame of the burst may have ended the connection, or have opened one.
  if (c == nullptr || c->is_over()) [[unlikely]] {
    if (!s.classified) classify_staged(s);
    c = s.connection = connections_.find(s.flow());
  }
  // Checksum and CRC from one pass, before the connection type is looked at.
  std::uint32_t payload_sum = 0;
  fastpath::Validation* validation = nullptr;
  if (!s.seg.payload.empty()) {
    if (c != nullptr && wants_validation(*c)) {
      validation = &scratch_.validation;
      if (c->framing.marked()) [[unlikely]] {
        validate_framed(*c, s.seg);
      } else {
        fastpath::validate(s.seg.payload, *validation);
      }
      payload_sum = validation->sum;
    } else if (s.verify) {
      payload_sum = inet_sum(s.seg.payload);
    }
  }
  if (s.verify && inet_checksum(static_cast<std::uint64_t>(s.header_sum) + payload_sum) != 0) {
    ++counters_.rx_bad_tcp_checksum;  // TCP's own discard: no ACK, no trace
    return;
  }
  if (c == nullptr) {
    // A cookie's answer is the first segment of the connection it opens.
    c = s.connection = on_unmatched(s, now);
    if (c == nullptr) return;
  }
  process_connection(*c, s, validation, now);
}

// What TCP itself says to the segment. False when that is all.
bool Engine::answers(Connection& c, const tcp::Check& check, Staged& s, Instant now) {
  const tcp::Answer own = tcp::answer(c.tcb, check, s.seg, counters_.tcp, now);
  switch (own.kind) {
    case tcp::Answer::Kind::Process:
      if (!c.half_open || !c.listener->backlog.full()) return true;
      // It stays half open: our SYN-ACK and the peer's ACK are sent again.
      ++counters_.tcp.dropped_backlog;
      return false;
    case tcp::Answer::Kind::Nothing:
      ++counters_.rx_tcp_dropped;
      return false;
    case tcp::Answer::Kind::Send:
      if (c.routed || route(c, now)) send_segment(c, own.plan, now);
      return false;
    case tcp::Answer::Kind::Rst:
      if (!s.classified) classify_staged(s);
      if (send_stateless(s, own.reset)) ++counters_.rst_sent;
      if (tcp::after_reset_sent(c.tcb)) enqueue_tx(c);
      return false;
    case tcp::Answer::Kind::Ended:
      tcp::take_reset(c.tcb, now);
      if (refuses_revision2(c)) {  // E-35: some peers reset instead of closing
        retry_as_revision1(c, now);
        return false;
      }
      fail_connection(c, c.stage == Stage::Opening ? Errc::refused : Errc::reset,
                      c.stage == Stage::Opening
                          ? "connection refused by the peer (nobody listens on that port)"
                          : "connection reset by the peer",
                      now);
      return false;
  }
  return false;
}

inline void Engine::process_connection(Connection& c, Staged& s, fastpath::Validation* validation,
                                       Instant now) {
  ++c.counters.segments_in;
  InHand in{s.seg, {}, validation};
  tcp::Check& check = in.check;
  const bool predicted = tcp::check_predicted(c.tcb, s.seg, &check);
  if (!predicted) [[unlikely]] {
    check = tcp::check(c.tcb, s.seg, now);
    if (!answers(c, check, s, now)) return;
  }
  touched_.push(c);
  tcp::AckResult ack;
  if (predicted && tcp::take_ack_predicted(c.tcb, s.seg, now)) [[likely]] {
    if (cut_through_plain(c, in)) return;
  } else {
    ack = tcp::take_ack(c.tcb, s.seg, check, now);
    c.counters.dup_acks_in += ack.duplicate;
    if (ack.ack_first) [[unlikely]]
      emit_ack(c, now);
  }
  if (ack.established) on_tcp_established(c, now);
  if (ack.una_advanced && c.stream != nullptr) {
    c.stream->sender.acked(ack.una, [&](const verbs::Completion& done) {
      if (c.qp != nullptr) post_completion(*c.qp, done);
    });
    if (now >=
        c.confirm_next_hop) {  // forward progress: the neighbour is reachable (RFC 4861 7.3.1)
      c.confirm_next_hop = now + Duration::s(1);
      interface_.confirm(c.next_hop, now);
    }
  }
  if (check.arrival != tcp::Arrival::None) take_payload(c, in, now);
  // TIME-WAIT is TCP's affair alone: the connection is over.
  const bool over =
      ack.closed || c.tcb.state == tcp::State::Closed || c.tcb.state == tcp::State::TimeWait;
  // What came before the FIN is delivered first.
  if (!c.is_over() && over && !c.in_drain_queue) on_closed(c, now);
}

// The commonest segment in one piece: the next one of a FAST connection (T3, T7; S159), one FPDU, a
// Write that may be placed. Its check is check_predicted()'s. False, with nothing changed, for any
// other: the steps below decide.
inline bool Engine::cut_through_plain(Connection& c, const InHand& in) {
  if (c.stage != Stage::Full || in.validation == nullptr || !c.first_fpdu_seen) return false;
  if (c.framing.marked()) return false;
  if (!fastpath::plainly_fast(c.context, in.check.arrival, *in.validation)) return false;
  if (in.validation->frames.size() != 1 || !tcp::commits_predicted(c.tcb)) return false;
  const ByteView fpdu = in.seg.payload;
  const std::uint32_t ulpdu = load_be16(fpdu.data());
  // The length was believed by the validation unit; memory shared with a peer may have changed.
  if (mpa::fpdu_size(ulpdu) != fpdu.size()) return false;
  ddp::PlainWrite write;
  if (!ddp::admit_plain_write(*c.stream, fpdu.subspan(mpa::kLengthField, ulpdu), &write)) {
    return false;
  }
  ddp::place_plain_write(write);
  tcp::commit_predicted(c.tcb, in.check.begin, in.check.end);
  iwarp::ConnectionCounters& n = c.counters;
  ++n.reasons[static_cast<std::size_t>(fastpath::Reason::Aligned)];
  ++n.fpdus_in[static_cast<std::size_t>(ddp::Opcode::Write)];
  n.bytes_fast += fpdu.size();
  n.bytes_copied += write.payload.size();
  n.write_bytes_in += write.payload.size();
  n.payload_placed += write.payload.size();
  return true;
}

inline void Engine::take_payload(Connection& c, const InHand& in, Instant now) {
  const tcp::Check& check = in.check;
  const bool taken = check.arrival == tcp::Arrival::InOrder ||
                     check.arrival == tcp::Arrival::OutOfOrder ||
                     check.arrival == tcp::Arrival::Overlap;
  // Whatever draws an ACK of its own comes after what was owed (E-7, R-63).
  const bool own_ack = check.arrival != tcp::Arrival::InOrder || c.tcb.rcv.holes.size() != 0;
  if (own_ack && tcp::ack_owed(c.tcb)) emit_ack(c, now);
  if (!taken) {
    if (check.arrival == tcp::Arrival::Duplicate && check.fin && !c.tcb.rcv.fin_taken &&
        check.end == c.tcb.rcv.holes.rcv_nxt()) {  // all of it but the FIN came before
      commit_range(c, check.end, check.end, true, false, {}, now);
      return;
    }
    ++counters_.rx_tcp_dropped;
    act_on_ack(c, tcp::refuse(c.tcb, check, false, false, now), now);
    return;
  }
  if (in.seg.payload.empty()) {  // a FIN alone
    if (check.arrival == tcp::Arrival::InOrder && check.fin) {
      commit_range(c, check.begin, check.begin, true, false, {}, now);
    } else {
      act_on_ack(c, tcp::refuse(c.tcb, check, false, false, now), now);
    }
    return;
  }
  switch (c.stage) {
    case Stage::Opening:
    case Stage::Startup:  // E-1: MPA frames are not FPDUs; InLogic is not asked
      store(c, in, now);
      if (!c.is_over() && c.stage == Stage::Startup) run_startup(c, now);
      break;
    case Stage::Full:
    case Stage::Closing:
      in_logic(c, in, now);
      break;
    case Stage::Terminated:
    case Stage::Lingering:
      discard_payload(c, in, now);
      break;
  }
}

}  // namespace urnic::engine
