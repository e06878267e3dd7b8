// MPA start-up of a connection: from TCP's handshake to full operation (RFC 5044 7.1, RFC 6581).
#include <algorithm>

#include "engine/engine.h"
#include "iwarp/refusal_text.h"

namespace urnic::engine {

using namespace iwarp;
namespace {

// Ready-to-receive message of the initiator (RFC 6581 9.2): STag 1, since some hardware refuses 0.
std::uint32_t build_rtr(std::uint8_t kind, ddp::Stream& stream, std::uint8_t* ulpdu) {
  ddp::SegmentHeader h;
  h.last = true;
  if (kind == mpa::kRtrWrite) {
    h.op = ddp::Opcode::Write;
    h.stag = 1;
  } else {
    h.op = ddp::Opcode::ReadRequest;
    h.qn = ddp::kQnReadRequest;
    h.msn = stream.sender.take_rtr_read_msn();
    h.read.sink_stag = 1;
    h.read.source_stag = 1;
  }
  return ddp::emit_header(h, ulpdu);
}

}  // namespace

void Engine::on_tcp_established(Connection& c, Instant now) {
  c.stage = Stage::Startup;
  if (c.half_open) {
    --c.listener->backlog.half_open;
    ++c.listener->backlog.waiting;
  }
  c.half_open = false;
  drop_undelivered(c);
  update_receive_room(c, now);
  if (c.startup != nullptr) {
    c.startup->set_first_sns(c.tcb.snd.iss.value() + 1, c.tcb.rcv.irs.value() + 1);
  }
  if (c.startup != nullptr && c.startup->is_active()) {
    c.stream->sender.queue_raw(c.startup->request_bytes());
    enqueue_tx(c);
  }
}

// What has come in order and not been consumed, as far as a start-up frame may reach.
ByteView Engine::startup_octets(Connection& c, std::span<std::uint8_t> scratch) const {
  if (c.link != nullptr) {
    const ByteView there = c.link->inbox.octets();
    return there.first(std::min(there.size(), scratch.size()));
  }
  const std::uint64_t there = c.tcb.rcv.holes.rcv_nxt() - c.buffer.read_position();
  const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(there, scratch.size()));
  if (n != 0) c.buffer.copy(0, n, scratch.data());
  return scratch.first(n);
}

void Engine::consume_octets(Connection& c, std::uint32_t n) {
  if (c.link != nullptr) {
    c.link->inbox.consume(n);
  } else {
    c.buffer.consume(c.buffer.read_position() + n);
  }
}

void Engine::run_startup(Connection& c, Instant now) {
  if (c.startup == nullptr) return;
  std::uint8_t scratch[mpa::kFrameHeader + mpa::kMaxPrivateData];
  const ByteView there = startup_octets(c, scratch);
  if (there.empty()) return;
  const Startup::Step step = c.startup->feed(there);
  consume_octets(c, step.consumed);
  switch (step.what) {
    case Startup::What::NeedMore:
      return;
    case Startup::What::Request:
      c.stage_deadline = Instant::never();  // the consumer may take its time
      hooks_->on_cm_event(
          {.kind = CmEvent::Kind::ConnectRequest, .listener = c.listener, .connection = c.id});
      return;
    case Startup::What::Established:
      startup_done(c, now);
      return;
    case Startup::What::Rejected:
      startup_rejected(c, step, now);
      return;
    case Startup::What::RetryRevision1:
      retry_as_revision1(c, now);
      return;
    case Startup::What::Fail:
      startup_failed(c, step, now);
      return;
  }
}

void Engine::startup_done(Connection& c, Instant now) {
  const mpa::Agreement agreement = c.startup->agreement();
  const ByteView pd = c.startup->reply().private_view();
  const std::string private_data(reinterpret_cast<const char*>(pd.data()), pd.size());
  verbs::QueuePair* qp = c.qp;
  c.stage_deadline = Instant::never();
  // First: who hears of it may post at once, from another thread (E-28).
  qp->state.advance(verbs::QpState::Rts);
  hooks_->on_cm_event({.kind = CmEvent::Kind::Established, .qp = qp, .private_data = private_data});
  full_operation(c, agreement, now);
  enqueue_tx(c);
}

void Engine::startup_rejected(Connection& c, const Startup::Step& step, Instant now) {
  const ByteView pd = c.startup->reply().private_view();
  CmEvent e{.kind = CmEvent::Kind::ConnectFailed,
            .qp = c.qp,
            .code = Errc::rejected,
            .message = step.refusal == mpa::Refusal::PolicyDiffers
                           ? refusal_text(step.refusal, c.startup->options().policy,
                                          c.startup->reply().token)
                           : "the peer rejected the connection",
            .private_data = std::string(reinterpret_cast<const char*>(pd.data()), pd.size())};
  verbs::QueuePair* qp = c.qp;
  c.qp = nullptr;
  c.stream = nullptr;
  abort_transport(c, now);
  qp->connection = 0;
  enter_error(*qp, verbs::Status::Flushed);
  c.stage = Stage::Lingering;
  c.stage_deadline = now + options_.linger_timeout;
  enqueue_tx(c);
  hooks_->on_cm_event(std::move(e));
}

void Engine::startup_failed(Connection& c, const Startup::Step& step, Instant now) {
  if (step.violation == ddp::Violation::MpaStartup) {
    fail_connection(c, Errc::protocol,
                    step.refusal == mpa::Refusal::PolicyUnknown
                        ? refusal_text(step.refusal, c.startup->options().policy, {})
                        : "the peer's MPA start-up frame is malformed or of an unknown revision",
                    now);
  } else {  // an FPDU is possible: say why by Terminate (RFC 6581 9.x)
    set_send_framing(c, c.startup->send_policy());
    c.stream->sender.start(true);
    raise_terminate(c, step.violation, {}, now);
  }
}

// How our FPDUs look; they begin behind our start-up frame.
void Engine::set_send_framing(Connection& c, mpa::Policy policy) {
  c.stream->sender.set_framing(
      mpa::make_framing(policy, c.tcb.snd.iss.value() + 1, c.startup->sent_octets()));
}

// From here on only FPDUs travel (StartNum known). Octets glued behind the start-up frame are
// taken as SLOW until they are parsed (E-1).
void Engine::full_operation(Connection& c, const mpa::Agreement& agreement, Instant now) {
  const bool active = c.startup->is_active();
  set_send_framing(c, agreement.send);
  c.framing = mpa::make_framing(agreement.receive, c.tcb.rcv.irs.value() + 1,
                                c.buffer.read_position().value());
  c.extractor.set_framing(c.framing);
  c.startup.reset();
  c.stage = Stage::Full;
  c.qp->state.advance(verbs::QpState::Rts);  // the active side is there already
  c.context.config.crc = agreement.crc;
  c.context.startup = false;
  c.context.upgrade_needed = c.context.config.upgrade_after;
  c.context.fast_since = now;
  if (c.link != nullptr) c.context.config.initiated_as = fastpath::ConnectionType::Slow;  // E-31
  c.extractor.set_crc(agreement.crc);
  c.stream->set_limits(agreement.ird, agreement.ord);
  const bool fast =
      agreement.crc && c.context.config.initiated_as == fastpath::ConnectionType::Fast;
  c.residue = fast && !c.buffer.empty();
  c.context.type =
      fast && !c.residue ? fastpath::ConnectionType::Fast : fastpath::ConnectionType::Slow;
  if (active) {
    if (agreement.rtr != mpa::kRtrNone) {
      std::uint8_t ulpdu[ddp::kMaxHeader];
      const std::uint32_t n = build_rtr(agreement.rtr, *c.stream, ulpdu);
      c.stream->sender.queue_ulpdu({ulpdu, n});
    }
    c.first_fpdu_at = now + options_.first_fpdu_delay;
    if (c.first_fpdu_at <= now) first_fpdu(c, now);
    arm_timer(c);
  }
  update_receive_room(c, now);
  if (c.link != nullptr) {
    drain_kernel(c, now);
    if (c.link != nullptr && c.link->readable) enqueue_read(c);  // held back until now
  } else if (!c.buffer.empty()) {
    drain_reassembly(c, kNoBudget, now);
  }
}

// The responder has received a valid FPDU: it may send (RFC 5044 7.1.3), and a peer-to-peer
// connection is established (RFC 6581 9.2). Or the initiator has waited as long as it was told to;
// an FPDU from the peer ends that too.
void Engine::first_fpdu(Connection& c, Instant now) {
  c.first_fpdu_at = Instant::never();
  if (c.first_fpdu_seen || c.stage == Stage::Terminated || c.stream == nullptr) return;
  c.first_fpdu_seen = true;
  c.stream->sender.start(c.context.config.crc);
  if (c.rtr_pending) {
    c.rtr_pending = false;
    // A FIN that came with the RTR has set a deadline of its own.
    if (c.stage == Stage::Full) c.stage_deadline = Instant::never();
    hooks_->on_cm_event({.kind = CmEvent::Kind::Established, .qp = c.qp});
  }
  enqueue_tx(c);
  (void)now;
}

}  // namespace urnic::engine
