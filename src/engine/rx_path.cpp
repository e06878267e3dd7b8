// The receive path, in the order of the picture in docs/architecture.md: burst, TCP check, ACK
// side, validation, InLogic, admit, place, commit, deliver. Each step is a function of its own
// (D2).
#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/inet_checksum.h"
#include "base/mutant.h"
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

// OutLogic's arbiter: octets one SLOW connection may have parsed before the others have their
// turn, and octets of all of them in one poll. FAST segments are placed as they come, at most a
// burst in a poll, which carries about as much.
constexpr std::uint64_t kDrainTurn = 64u << 10;
constexpr std::uint64_t kDrainRound = 256u << 10;

bool ends_a_send(const ddp::Admission* admissions, std::size_t count) {
  return std::any_of(admissions, admissions + count, [](const ddp::Admission& a) {
    const ddp::SegmentHeader& h = a.segment.header;
    return h.op >= ddp::Opcode::Send && h.op <= ddp::Opcode::SendSeInv && h.last;
  });
}

// The next run of octets in [begin, end) that has not been received. False when there is none.
bool next_missing(const tcp::HoleList& holes, StreamOffset begin, StreamOffset end,
                  StreamOffset* from, StreamOffset* to) {
  begin = std::max(begin, holes.rcv_nxt());
  for (std::size_t i = 0; i < holes.size() && begin < end; ++i) {
    const tcp::Hole& h = holes[i];
    if (begin < h.block) {
      *from = begin;
      *to = std::min(end, h.block);
      return true;
    }
    begin = std::max(begin, h.block_end);
  }
  *from = begin;
  *to = end;
  return begin < end;
}

// The hazard of Fig 5, for those who leave its rule out on purpose: where TCP believes to have what
// was placed while FAST, the reassembly buffer holds something else.
void put_garbage_behind_holes(Connection& c) {
  constexpr std::uint8_t kGarbage = 0xdb;
  std::uint8_t garbage[1024];
  std::memset(garbage, kGarbage, sizeof garbage);
  const tcp::HoleList& holes = c.tcb.rcv.holes;
  for (std::size_t i = 0; i < holes.size(); ++i) {
    for (StreamOffset at = holes[i].block; at < holes[i].block_end;) {
      const std::uint64_t n = std::min<std::uint64_t>(sizeof garbage, holes[i].block_end - at);
      if (!c.buffer.store(at, {garbage, n}, false)) return;
      at += n;
    }
  }
}

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
  copy_head(frame, &s);
  stage_frame(frame, &s, now);
  if (s.usable) process(s, now);
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
  const std::size_t l4 = s->net.l4_offset;
  if (l4 >= s->head_octets) return;
  std::size_t tcp_header = 0;
  auto seg = tcp::parse_segment(
      {s->header + l4, std::min<std::size_t>(s->head_octets - l4, s->net.l4_len)}, &tcp_header);
  if (!seg) {
    ++counters_.rx_bad_ip;
    return;
  }
  s->seg = *seg;
  s->seg.ecn = s->net.ecn;
  s->usable = finish_staging(frame, l4, s->net.l4_len, tcp_header, s->net.pseudo_sum, s);
  if (!s->usable) return;
  const FlowKey key{s->net.dst, s->net.src, s->seg.dst_port, s->seg.src_port};
  if (const std::uint32_t* slot = flows_.find(key)) {
    s->connection = slots_[mutant(Mutant::FirstContextTaken) ? 0 : *slot].get();
    __builtin_prefetch(s->connection);
    __builtin_prefetch(reinterpret_cast<const char*>(s->connection) + 64);
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
  // An earlier frame of the burst may have ended the connection.
  if (c != nullptr && c->id == 0) c = s.connection = nullptr;
  // Checksum and CRC from one pass, before the connection type is looked at.
  std::uint32_t payload_sum = 0;
  validated_ = false;
  if (!s.seg.payload.empty()) {
    if (c != nullptr && wants_validation(*c)) {
      if (c->framing.marked()) [[unlikely]] {
        validate_framed(*c, s);
      } else {
        fastpath::validate(s.seg.payload, validation_);
      }
      payload_sum = validation_.sum;
      validated_ = true;
    } else if (s.verify) {
      payload_sum = inet_sum(s.seg.payload);
    }
  }
  if (s.verify && inet_checksum(static_cast<std::uint64_t>(s.header_sum) + payload_sum) != 0) {
    ++counters_.rx_bad_tcp_checksum;  // TCP's own discard: no ACK, no trace
    if (mutant(Mutant::BadChecksumDrawsAck) && c != nullptr) emit_ack(*c, now);
    return;
  }
  if (c == nullptr) {
    if (mutant(Mutant::UnknownJudgedByCrc) && !s.seg.payload.empty()) {
      fastpath::validate(s.seg.payload, validation_);
      if (!validation_.passed()) return;
    }
    if (mutant(Mutant::AnyContextTaken) && recent_.connection != nullptr) {
      s.connection = recent_.connection;
      return process(s, now);
    }
    if (!s.classified) classify_staged(s);
    // A context prepared earlier in this burst (SYN then data) is found here.
    const FlowKey key{s.net.dst, s.net.src, s.seg.dst_port, s.seg.src_port};
    if (const std::uint32_t* slot = flows_.find(key)) {
      s.connection = slots_[*slot].get();
      return process(s, now);
    }
    on_unmatched(s, now);
    return;
  }
  process_connection(*c, s, now);
}

inline void Engine::process_connection(Connection& c, Staged& s, Instant now) {
  ++c.counters.segments_in;
  tcp::Check check;
  const bool predicted = tcp::check_predicted(c.tcb, s.seg, &check);
  if (!predicted) [[unlikely]]
    check = tcp::check(c.tcb, s.seg, now);
  switch (check.action) {
    case tcp::Action::Discard:
      ++counters_.rx_tcp_dropped;
      return;
    case tcp::Action::Ack:
      emit_ack(c, now);
      return;
    case tcp::Action::ChallengeAck:
      if (challenge_.allow(now)) emit_ack(c, now);
      return;
    case tcp::Action::Rst:
      if (!s.classified) classify_staged(s);
      send_rst(s, now);
      return;
    case tcp::Action::Reset:
      tcp::take_reset(c.tcb, now);
      if (refuses_revision2(c)) {  // E-35: some peers reset instead of closing
        retry_as_revision1(c, now);
        on_closed(c, now);
        return;
      }
      lose(c, c.stage == Stage::Opening ? Errc::refused : Errc::reset,
           c.stage == Stage::Opening
               ? "connection refused by the peer (nobody listens on that port)"
               : "connection reset by the peer",
           now);
      return;
    case tcp::Action::Process:
      break;
  }
  const ConnectionId id = c.id;
  if (!c.touched) {
    c.touched = true;
    touched_.push_back(id & 0xffffff);
  }
  tcp::AckResult ack;
  if (predicted && tcp::take_ack_predicted(c.tcb, s.seg, now)) [[likely]] {
    if (cut_through_plain(c, s, check)) return;
  } else if (!mutant(Mutant::AckOfDropIgnored) || c.stage != Stage::Full || s.seg.payload.empty() ||
             validation_.passed()) {
    ack = tcp::take_ack(c.tcb, s.seg, check, now);
    if (ack.ack_first) [[unlikely]]
      emit_ack(c, now);
  }
  if (ack.established) on_tcp_established(c, now);
  if (ack.una_advanced && c.stream != nullptr) {
    c.stream->sender.acked(ack.una, [&](const ddp::Completion& done) {
      if (c.qp != nullptr) post_completion(*c.qp, done);
    });
    if (now >=
        c.confirm_next_hop) {  // forward progress: the neighbour is reachable (RFC 4861 7.3.1)
      c.confirm_next_hop = now + Duration::s(1);
      interface_.confirm(c.next_hop, now);
    }
  }
  if (check.arrival != tcp::Arrival::None) take_payload(c, s, check, now);
  if (mutant(Mutant::AckPerSegment) && c.id == id && tcp::ack_owed(c.tcb)) emit_ack(c, now);
  // TIME-WAIT is TCP's affair alone: for the queue pair the connection is over.
  const bool over = ack.closed || c.tcb.state == tcp::State::Closed ||
                    (c.tcb.state == tcp::State::TimeWait && c.qp != nullptr);
  // What came before the FIN is delivered first.
  if (c.id == id && over && !c.in_drain_queue) on_closed(c, now);
}

// The commonest segment in one piece: the next one of a FAST connection (T3, T7; S159), one FPDU, a
// Write that may be placed. `check` is check_predicted()'s. False, with nothing changed, for any
// other: the steps below decide.
inline bool Engine::cut_through_plain(Connection& c, const Staged& s, const tcp::Check& check) {
  if (any_mutant()) return false;  // they live in the steps
  if (c.stage != Stage::Full || !validated_ || !c.first_fpdu_seen) return false;
  if (c.framing.marked()) return false;
  if (!fastpath::plainly_fast(c.context, check.arrival, validation_)) return false;
  if (validation_.frames.size() != 1 || !tcp::commits_predicted(c.tcb)) return false;
  const ByteView fpdu = s.seg.payload;
  const std::uint32_t ulpdu = load_be16(fpdu.data());
  // The length was believed by the validation unit; memory shared with a peer may have changed.
  if (mpa::fpdu_size(ulpdu) != fpdu.size()) return false;
  ddp::PlainWrite write;
  if (!ddp::admit_plain_write(*c.stream, fpdu.subspan(mpa::kLengthField, ulpdu), &write)) {
    return false;
  }
  ddp::place_plain_write(write);
  tcp::commit_predicted(c.tcb, check.begin, check.end);
  ConnectionCounters& n = c.counters;
  ++n.reasons[static_cast<std::size_t>(fastpath::Reason::Aligned)];
  n.bytes_fast += fpdu.size();
  n.bytes_copied += write.payload.size();
  n.write_bytes_in += write.payload.size();
  n.payload_placed += write.payload.size();
  return true;
}

inline void Engine::take_payload(Connection& c, const Staged& s, const tcp::Check& check,
                                 Instant now) {
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
    if (mutant(Mutant::DuplicatePlaced) && validation_.passed()) {
      ddp::MessageCounts ends;
      for (const fastpath::FrameResult& f : validation_.frames) {
        const ByteView fpdu = s.seg.payload.subspan(f.offset, f.length);
        ddp::place(*c.stream, ddp::Admitter(*c.stream, false).next(mpa::ulpdu_of(fpdu)), &ends);
      }
    }
    if (mutant(Mutant::HoleLimitIsUlpDrop)) return ulp_drop(c, check, now);
    act_on_ack(c, tcp::refuse(c.tcb, check, false, false, now), now);
    return;
  }
  if (s.seg.payload.empty()) {  // a FIN alone
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
      if (mutant(Mutant::AskedAtStartup)) {
        fastpath::validate(s.seg.payload, validation_);
        return in_logic(c, s, check, now);
      }
      store(c, s, check, now);
      if (c.id != 0 && c.stage == Stage::Startup) run_startup(c, now);
      break;
    case Stage::Full:
    case Stage::Closing:
      in_logic(c, s, check, now);
      break;
    case Stage::Terminated:
    case Stage::Lingering:
      discard_payload(c, s, check, now);
      break;
  }
}

inline void Engine::in_logic(Connection& c, const Staged& s, const tcp::Check& check, Instant now) {
  using fastpath::Outcome;
  using fastpath::Reason;
  const bool can_be_fast =
      c.context.config.crc && c.context.config.initiated_as == fastpath::ConnectionType::Fast;
  if (can_be_fast && c.framing.marked()) [[unlikely]]
    judge_markers(c, s);
  if (can_be_fast && !mutant(Mutant::AlignedIsStored) &&
      fastpath::plainly_fast(c.context, check.arrival, validation_)) [[likely]] {
    ++c.counters.reasons[static_cast<std::size_t>(Reason::Aligned)];
    const FastResult result = cut_through_run(c, s, 0, validation_.frames.size(), check, now);
    if (result != FastResult::Taken) not_taken(c, result, check, now);
    return;
  }
  fastpath::SegmentFacts facts;
  facts.arrival = check.arrival;
  facts.sn = s.seg.seq;
  facts.at_rcv_nxt = check.begin == c.tcb.rcv.holes.rcv_nxt();
  facts.reassembly_empty = c.buffer.empty() && !c.residue;
  facts.validation = &validation_;
  facts.payload = static_cast<std::uint32_t>(s.seg.payload.size());
  if (can_be_fast && c.framing.marked() && !validation_.passed()) {
    facts.header = header_case(c, s, check);
  }
  facts.now = now;
  if (check.arrival == tcp::Arrival::Overlap && validation_.all_valid) {
    facts.seam_on_boundary = true;
    for (const fastpath::FrameResult& f : validation_.frames) {
      const StreamOffset b = check.begin + f.offset, e = b + f.length;
      if (c.tcb.rcv.holes.any_new(b, e) && !c.tcb.rcv.holes.all_new(b, e))
        facts.seam_on_boundary = false;
    }
  }
  if (!can_be_fast) {  // permanently SLOW: nothing to decide (T1)
    ++c.counters.reasons[static_cast<std::size_t>(Reason::Slow)];
    store(c, s, check, now);
    return;
  }
  const fastpath::Verdict verdict = fastpath::decide(c.context, facts);
  ++c.counters.reasons[static_cast<std::size_t>(verdict.reason)];
  switch (verdict.outcome) {
    case Outcome::Fast:
      if (mutant(Mutant::AlignedIsStored)) {
        c.buffer.reset(c.tcb.rcv.holes.rcv_nxt());
        store(c, s, check, now);
        break;
      }
      if (const FastResult r = cut_through(c, s, check, now); r != FastResult::Taken) {
        not_taken(c, r, check, now);
        break;
      }
      fastpath::apply(c.context, verdict, facts);
      if (verdict.upgraded) ++c.counters.upgrades;
      break;
    case Outcome::Drop:
      fastpath::apply(c.context, verdict, facts);
      if (verdict.counts) ++c.counters.recovery_attempts;
      if (mutant(Mutant::GoodPrefixTaken) && validation_.frames.size() > 1) {
        cut_through_run(c, s, 0, validation_.frames.size() - 1, check, now);
      }
      if (facts.at_rcv_nxt ? mutant(Mutant::DropIsAcknowledged) : mutant(Mutant::DropIsSacked)) {
        commit_range(c, check.new_begin, check.new_end, false, false, {}, now);
      }
      ulp_drop(c, check, now);
      break;
    case Outcome::Downgrade:  // Fig 5: holes first, then the segment
      fastpath::apply(c.context, verdict, facts);
      ++c.counters.downgrades;
      if (mutant(Mutant::HolesClearedLate)) {
        c.buffer.reset(c.tcb.rcv.holes.rcv_nxt());
        store(c, s, check, now);
      }
      if (!options_.defects.keep_holes_at_downgrade && !mutant(Mutant::HolesSurviveDowngrade)) {
        tcp::forget_out_of_order(c.tcb);
        c.hole_counters.discard();
        if (c.stream != nullptr) c.stream->forget_out_of_order();
      }
      if (mutant(Mutant::DowngradeSendsDuplicateAck)) emit_ack(c, now);
      c.buffer.reset(c.tcb.rcv.holes.rcv_nxt());
      if (options_.defects.keep_holes_at_downgrade) put_garbage_behind_holes(c);
      store(c, s, check, now);
      break;
    case Outcome::Store:
      fastpath::apply(c.context, verdict, facts);
      if (mutant(Mutant::SlowIsCutThrough) && verdict.aligned && facts.reassembly_empty) {
        cut_through(c, s, check, now);
        break;
      }
      store(c, s, check, now);
      break;
  }
}

// The segment was decided FAST, but what it carries cannot be taken now.
void Engine::not_taken(Connection& c, FastResult why, const tcp::Check& check, Instant now) {
  if (why == FastResult::NoReceive) {  // section 10, R-113..R-115: not a recovery attempt
    if (mutant(Mutant::EmptyQueueCounts)) ++c.context.recovery_attempts;
    if (mutant(Mutant::EmptyQueueTerminates)) {
      return raise_terminate(c, ddp::Violation::UntaggedNoBuffer, {}, now);
    }
    note_starved(c, check.begin, now);
  }
  ulp_drop(c, check, now);  // a violation out of order waits until it is in order (E-6)
}

// The Send `starved_msn` was not taken for want of a receive, in a segment at `at`.
void Engine::note_starved(Connection& c, StreamOffset at, Instant now) {
  ++c.counters.empty_rq_drops;
  c.starved_at = at;
  if (c.qp == nullptr) return;
  ddp::SharedReceiveQueue* shared = c.stream->rq.shared();
  if (shared != nullptr && !c.qp->starved) shared->starved.push_back(c.id);
  // E-17; perhaps the receive was posted just before we said that it is missing.
  c.qp->starved = true;
  if (shared != nullptr) shared->wanted = true;
  if (c.stream->rq.has(c.starved_msn)) receive_posted(*c.qp, now);
}

Engine::FastResult Engine::cut_through(Connection& c, const Staged& s, const tcp::Check& check,
                                       Instant now) {
  const std::size_t n = validation_.frames.size();
  if (check.arrival != tcp::Arrival::Overlap) return cut_through_run(c, s, 0, n, check, now);
  // Only the new frames, run by run.
  FastResult result = FastResult::Refused;
  for (std::size_t i = 0; i < n;) {
    const auto is_new = [&](std::size_t k) {
      const StreamOffset b = check.begin + validation_.frames[k].offset;
      return c.tcb.rcv.holes.any_new(b, b + validation_.frames[k].length) ||
             mutant(Mutant::OverlapPlacedWhole);
    };
    if (!is_new(i)) {
      ++i;
      continue;
    }
    std::size_t last = i + 1;
    while (last < n && is_new(last)) ++last;
    const FastResult r = cut_through_run(c, s, i, last, check, now);
    if (r != FastResult::Taken) return result == FastResult::Taken ? result : r;
    if (c.id == 0 || c.stage == Stage::Terminated) return r;
    result = r;
    i = last;
  }
  return result;
}

// Admit every FPDU, then place all, then commit, then deliver (E-5).
inline Engine::FastResult Engine::cut_through_run(Connection& c, const Staged& s, std::size_t first,
                                                  std::size_t last, const tcp::Check& check,
                                                  Instant now) {
  const ByteView payload = s.seg.payload;
  const auto& frames = validation_.frames;
  const StreamOffset begin = check.begin + frames[first].offset;
  StreamOffset end = check.begin + frames[last - 1].offset + frames[last - 1].length;
  const bool in_order = begin == c.tcb.rcv.holes.rcv_nxt();
  // With one hole too many the range is TCP's to refuse; check() saw only the whole segment.
  if (c.tcb.rcv.holes.exceeds_limit(begin, end)) return FastResult::Refused;

  ddp::Admitter admitter(*c.stream, in_order);
  if (admissions_.size() < last - first) admissions_.resize(last - first);  // rare: it only grows
  std::size_t admitted = 0;
  ddp::Violation violation = ddp::Violation::None;
  bool starved = false;
  ByteView offending;
  for (std::size_t i = first; i < last; ++i) {
    const std::uint8_t* fpdu = payload.data() + frames[i].offset;
    ByteView ulpdu;
    if (c.framing.marked()) [[unlikely]] {
      if (!strip_markers(c, s, frames[i], &ulpdu)) return FastResult::Refused;
    } else {
      const std::uint32_t length = load_be16(fpdu);
      // The length was believed by the validation unit; memory shared with a peer may have changed.
      if (mpa::fpdu_size(length) != frames[i].length) return FastResult::Refused;
      ulpdu = {fpdu + mpa::kLengthField, length};
    }
    ddp::Admission& a = admissions_[admitted];
    admitter.next(ulpdu, &a);
    if (a.what == ddp::Admit::Place) [[likely]] {
      ++admitted;
      ddp::MessageCounts early;
      if (mutant(Mutant::PlacedAsAdmitted)) ddp::place(*c.stream, a, &early);
      continue;
    }
    if (a.what == ddp::Admit::NoReceive) {
      c.starved_msn = a.segment.header.msn;
      // Whole or not at all (E-5), unless it is here again: then the consumer may be waiting for a
      // Send that is in front of this one before it posts the next receive.
      const bool again = in_order && c.qp != nullptr && c.qp->starved && c.starved_at == begin;
      if (!again || !ends_a_send(admissions_.data(), admitted)) return FastResult::NoReceive;
      starved = true;
      end = check.begin + frames[i].offset;
      break;
    }
    if (!in_order && !mutant(Mutant::ViolationAtOnce)) return FastResult::Refused;
    violation = a.violation;
    offending = ulpdu;
    end = check.begin + frames[i].offset;  // what came before it is good and is delivered
    break;
  }
  ddp::MessageCounts counts;
  for (std::size_t i = 0; i < admitted; ++i) {
    ddp::place(*c.stream, admissions_[i], &counts);
    note_placed(c, admissions_[i]);
  }
  const std::uint64_t octets = end - begin;
  c.counters.bytes_fast += octets;
  const bool whole = violation == ddp::Violation::None && !starved && last == frames.size();
  if (starved) note_starved(c, end, now);
  const ConnectionId id = c.id;
  if (octets != 0) {
    commit_range(c, begin, end, whole && check.fin, whole && s.seg.has(tcp::kPsh), counts, now);
  }
  if (c.id != id) return FastResult::Taken;
  if (admitted != 0 && !c.first_fpdu_seen) first_fpdu(c, now);
  if (violation != ddp::Violation::None && c.stage != Stage::Terminated) {
    raise_terminate(c, violation, offending, now);
  }
  // A dead stream's octets are acknowledged and forgotten, so that both sides can close at once.
  if (c.id == id && c.stage == Stage::Terminated) discard_payload(c, s, check, now);
  return FastResult::Taken;
}

inline void Engine::note_placed(Connection& c, const ddp::Admission& a) {
  const std::uint64_t n = a.segment.payload.size();
  c.counters.bytes_copied += n;
  if (a.segment.header.op == ddp::Opcode::Write) [[likely]] {
    c.counters.write_bytes_in += n;
    c.counters.payload_placed += n;
    return;
  }
  switch (a.segment.header.op) {
    case ddp::Opcode::Write:
      return;
    case ddp::Opcode::ReadResponse:
      c.counters.read_response_bytes_in += n;
      break;
    case ddp::Opcode::Send:
    case ddp::Opcode::SendInv:
    case ddp::Opcode::SendSe:
    case ddp::Opcode::SendSeInv:
      c.counters.send_bytes_in += n;
      break;
    case ddp::Opcode::ReadRequest:
    case ddp::Opcode::Terminate:
      return;
  }
  c.counters.payload_placed += n;
}

// SLOW: into the reassembly buffer, TCP regards it as received (S3). What the validation unit has
// found good is not checked again when it is extracted.
void Engine::store(Connection& c, const Staged& s, const tcp::Check& check, Instant now) {
  const bool slow_data = c.stage != Stage::Opening && c.stage != Stage::Startup;
  StreamOffset at = check.new_begin, from, to;
  bool stored = false;
  if (validated_ && check.arrival == tcp::Arrival::InOrder && c.buffer.empty() &&
      c.buffer.read_position() == check.begin) {
    c.extractor.checked(check.begin + validation_.valid_octets());
  }
  const ConnectionId id = c.id;
  while (at < check.new_end && next_missing(c.tcb.rcv.holes, at, check.new_end, &from, &to)) {
    const bool in_order = from == c.tcb.rcv.holes.rcv_nxt();
    const ByteView bytes = s.seg.payload.subspan(from - check.begin, to - from);
    if (c.tcb.rcv.holes.exceeds_limit(from, to) || !c.buffer.store(from, bytes, in_order)) {
      // Out-of-order data is refused first when memory is short (E-11).
      if (!stored) act_on_ack(c, tcp::refuse(c.tcb, check, false, false, now), now);
      break;
    }
    stored = true;
    if (slow_data) {
      c.counters.bytes_copied += bytes.size();
      c.counters.bytes_slow += bytes.size();
    }
    commit_range(c, from, to, check.fin && to == check.end, s.seg.has(tcp::kPsh) && to == check.end,
                 {}, now);
    if (c.id != id) return;
    at = to;
  }
  const std::uint64_t turn = mutant(Mutant::NoTurns) ? ~std::uint64_t{0} : kDrainTurn;
  if (slow_data && !c.in_drain_queue) drain_reassembly(c, turn, now);
  c.extractor.checked(StreamOffset(0));
}

// Whole FPDUs out of the in-order octets, placed and delivered one by one.
std::uint64_t Engine::drain_reassembly(Connection& c, std::uint64_t budget, Instant now) {
  const ConnectionId id = c.id;
  std::uint64_t parsed = 0;
  while (c.id == id && c.stage != Stage::Terminated) {
    if (c.buffer.empty()) {
      // what TCP calls received is stored here or has been read.
      assert(c.buffer.read_position() == c.tcb.rcv.holes.rcv_nxt());
      c.extractor.run_dry();
      break;
    }
    if (parsed >= budget && c.buffer.read_position() < c.tcb.rcv.holes.rcv_nxt()) {
      c.in_drain_queue = true;
      drain_queue_.push_back(id & 0xffffff);
      return parsed;
    }
    ByteView ulpdu;
    std::uint32_t length = 0;
    const auto got = c.extractor.next(c.buffer, c.tcb.rcv.holes.rcv_nxt(), &ulpdu, &length);
    if (got == reassembly::Extracted::NeedMore) break;
    if (got ==
        reassembly::Extracted::BadCrc) {  // already acknowledged: TCP cannot repair it
      raise_terminate(c, ddp::Violation::MpaCrc, {}, now);
      break;
    }
    if (got == reassembly::Extracted::BadMarker) {  // RFC 5044, 8
      raise_terminate(c, ddp::Violation::MpaMarker, {}, now);
      break;
    }
    const StreamOffset behind = c.buffer.read_position() + length;
    if (!take_fpdu(c, ulpdu, now)) break;
    c.buffer.consume(behind);
    parsed += length;
  }
  if (c.id == id) finish_drain(c, now);
  return parsed;
}

// No whole FPDU is left.
void Engine::finish_drain(Connection& c, Instant now) {
  const ConnectionId id = c.id;
  if (c.stage == Stage::Terminated) {
    c.buffer.reset(c.tcb.rcv.holes.rcv_nxt());
  } else {
    if (c.residue && c.buffer.empty()) {  // E-1: start-up residue is gone, as initiated from here
      c.residue = false;
      c.context.type = c.context.config.initiated_as;
    }
    update_receive_room(c, now);
  }
  if (!c.fin_waits || c.id != id) return;
  c.fin_waits = false;
  on_fin(c, now);
}

// SLOW connections that have more than one turn's worth, one after the other.
void Engine::drain_round(Instant now) {
  std::uint64_t left = kDrainRound;
  while (left != 0 && !drain_queue_.empty()) {
    const std::uint32_t slot = drain_queue_[0];
    drain_queue_.pop_front();
    Connection* c = slots_[slot].get();
    if (c == nullptr || !c->in_drain_queue) continue;
    c->in_drain_queue = false;
    if (c->id == 0 || c->stream == nullptr || c->stage < Stage::Full || c->stage > Stage::Closing) {
      continue;
    }
    const ConnectionId id = c->id;
    left -= std::min(left, drain_reassembly(*c, std::min(left, kDrainTurn), now));
    if (c->id != id) continue;
    if (!c->touched) {
      c->touched = true;
      touched_.push_back(slot);
    }
    const bool over = c->tcb.state == tcp::State::Closed ||
                      (c->tcb.state == tcp::State::TimeWait && c->qp != nullptr);
    if (over && !c->in_drain_queue) on_closed(*c, now);
  }
}

// One FPDU of the in-order stream: placed and delivered. False when that was the end.
bool Engine::take_fpdu(Connection& c, ByteView ulpdu, Instant now) {
  const ConnectionId id = c.id;
  ddp::Admission& a = admissions_[0];
  ddp::Admitter(*c.stream, true).next(ulpdu, &a);
  if (mutant(Mutant::SlowWaitsForReceive) && a.what == ddp::Admit::NoReceive) return false;
  if (a.what == ddp::Admit::NoReceive) {  // the conventional rule
    raise_terminate(c, ddp::Violation::UntaggedNoBuffer, ulpdu, now);
    return false;
  }
  if (a.what == ddp::Admit::Violate) {
    raise_terminate(c, a.violation, ulpdu, now);
    return false;
  }
  ddp::MessageCounts counts;
  ddp::place(*c.stream, a, &counts);
  note_placed(c, a);
  if (counts.any()) deliver(c, counts, now);
  if (c.id == id && !c.first_fpdu_seen) first_fpdu(c, now);
  return c.id == id && c.stage != Stage::Terminated;
}

// TCP takes the range; what may be delivered now is (9.2, R-100).
void Engine::commit_range(Connection& c, StreamOffset begin, StreamOffset end, bool fin, bool psh,
                          const ddp::MessageCounts& counts, Instant now) {
  // In order with nothing missing: its ACK is owed, and what it ends is delivered.
  if (!fin && tcp::commit_predicted(c.tcb, begin, end)) [[likely]] {
    if (counts.any()) deliver(c, counts, now);
    return;
  }
  const tcp::Receipt receipt = tcp::commit(c.tcb, begin, end, fin, psh, now);
  const ConnectionId id = c.id;
  if (begin < end) {
    ddp::MessageCounts own;
    const ddp::MessageCounts behind = c.hole_counters.on_commit(receipt.holes, counts, &own);
    if (mutant(Mutant::DeliveredOutOfOrder)) own = counts;
    if (own.any()) deliver(c, own, now);
    if (c.id == id && behind.any() && c.stage != Stage::Terminated) deliver(c, behind, now);
  }
  if (c.id != id) return;
  act_on_ack(c, receipt.ack, now);
  if (!receipt.fin) return;
  if ((c.stage == Stage::Full || c.stage == Stage::Closing) && !c.buffer.empty()) {
    c.fin_waits = true;  // the octets before it are parsed first
  } else {
    on_fin(c, now);
  }
}

void Engine::deliver(Connection& c, const ddp::MessageCounts& counts, Instant now) {
  if (c.qp == nullptr || !counts.any()) return;
  if (mutant(Mutant::HoleHoldsTheQueue)) {
    for (const auto& other : slots_) {
      if (other != nullptr && other->tcb.rcv.holes.size() != 0) return;
    }
  }
  c.counters.sends_in += counts.sends;
  c.counters.read_requests_in += counts.read_requests;
  ByteView offending;
  const ddp::Violation v = ddp::deliver(
      *c.stream, counts, [&](const auto& done) { post_completion(*c.qp, done); }, &offending);
  if (counts.terminates != 0 && c.stream->terminate_received) {
    on_terminate_received(c, now);
    return;
  }
  if (v != ddp::Violation::None) raise_terminate(c, v, offending, now);
  if (counts.read_requests != 0) enqueue_tx(c);
}

void Engine::ulp_drop(Connection& c, const tcp::Check& check, Instant now) {
  if (tcp::ack_owed(c.tcb) && !mutant(Mutant::OwedAckNotFlushed)) emit_ack(c, now);
  const tcp::AckNeed need =
      tcp::refuse(c.tcb, check, true, c.context.config.immediate_dup_ack, now);
  if (need == tcp::AckNeed::Now) ++c.counters.immediate_dup_acks;
  act_on_ack(c, need, now);
}

void Engine::act_on_ack(Connection& c, tcp::AckNeed need, Instant now) {
  if (need != tcp::AckNeed::Now) return;  // Owed: at the end of the burst
  ++c.counters.dup_acks_out;
  emit_ack(c, now);
}

// After a Terminate the stream is dead, but its TCP is not: acknowledge and forget.
void Engine::discard_payload(Connection& c, const Staged& s, const tcp::Check& check, Instant now) {
  StreamOffset at = check.new_begin, from, to;
  const ConnectionId id = c.id;
  while (next_missing(c.tcb.rcv.holes, at, check.new_end, &from, &to)) {
    if (from != c.tcb.rcv.holes.rcv_nxt()) {
      act_on_ack(c, tcp::refuse(c.tcb, check, false, false, now), now);
      return;
    }
    commit_range(c, from, to, check.fin && to == check.end, s.seg.has(tcp::kPsh), {}, now);
    if (c.id != id) return;
    at = to;
  }
}

std::uint64_t Engine::receive_room(const Connection& c) const {
  return c.context.type == fastpath::ConnectionType::Fast
             ? options_.tcp.receive_buffer
             : c.buffer.room(c.tcb.rcv.holes.rcv_nxt());
}

void Engine::update_receive_room(Connection& c, Instant now) {
  if (c.link != nullptr) return;  // the kernel's window
  if (tcp::set_receive_room(c.tcb, receive_room(c), now)) emit_ack(c, now);
}

void Engine::end_of_burst(Instant now) {
  if (!shared_rqs_.empty()) look_at_shared_limits();
  for (const std::uint32_t slot : touched_) {
    Connection* c = slots_[slot].get();
    if (c == nullptr || !c->touched) continue;
    c->touched = false;
    if (c->id == 0) continue;
    // An ACK that this makes due leaves with what is sent now.
    if (c->stage != Stage::Startup) tcp::set_receive_room(c->tcb, receive_room(*c), now);
    tcp::end_of_burst(c->tcb, now);
    enqueue_tx(*c);
    arm_timer(*c);
  }
  touched_.clear();
}

}  // namespace urnic::engine
