// MPA start-up of a connection: from TCP's handshake to full operation (RFC 5044 7.1, RFC 6581).
#include <algorithm>
#include <utility>

#include "iwarp/admission.h"
#include "iwarp/opening.h"
#include "iwarp/refusal_text.h"
#include "iwarp/silent_peers.h"

namespace urnic::iwarp {
namespace {

// The ready-to-receive message of the initiator (RFC 6581 9.2): STag 1, since some hardware refuses
// 0.
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

bool Opening::tcp_established(Connection& c, Instant now) {
  if (c.backlog.listener() != nullptr) {
    auto place = admit(s_, *c.backlog.listener(), c.key, now);
    if (!place) {
      ending_.fail_connection(c, Errc::refused, "rejected by the access rules of the listener",
                              now);
      return false;
    }
    c.admission = std::move(*place);
  }
  c.stage = Stage::Startup;
  c.backlog.tcp_established(c.key.remote);
  if (c.backlog.listener() != nullptr) note_silent(s_, c, now);
  transport_.established(c, now);
  if (c.startup != nullptr) {
    c.startup->set_first_sns(c.tcb.snd.iss.value() + 1, c.tcb.rcv.irs.value() + 1);
  }
  if (c.startup != nullptr && c.startup->is_active()) {
    c.stream->sender.queue_raw(c.startup->request_bytes());
    s_.sending.push(c);
  }
  return true;
}

namespace {

verbs::ConnectionRequest request_of(const Connection& c, const SideState& s) {
  const mpa::StartupFrame& wish = c.startup->request();
  const mpa::Agreement preview = c.startup->preview(s.options.mpa);
  const ByteView data = wish.private_view();
  verbs::ConnectionRequest r;
  r.control = s.control;
  r.id = c.id;
  r.local = c.key.local_end();
  r.peer = c.key.remote_end();
  r.private_data.assign(data.begin(), data.end());
  // The number of outstanding Reads the peer wants, if it specifies one.
  const bool says = wish.enhanced && wish.ord != mpa::kNoNegotiation;
  r.ird = says ? std::min(wish.ord, s.options.mpa.max_ird) : preview.ird;
  r.ord = preview.ord;
  return r;
}

}  // namespace

void Opening::run_startup(Connection& c, Instant now) {
  if (c.startup == nullptr) return;
  std::uint8_t scratch[mpa::kFrameHeader + mpa::kMaxPrivateData];
  const ByteView there = transport_.bytes(c, scratch);
  if (there.empty()) return;
  const Startup::Step step = c.startup->feed(there);
  transport_.consume(c, step.consumed);
  switch (step.what) {
    case Startup::What::NeedMore:
      return;
    case Startup::What::Request:
      c.stage_deadline = Instant::never();  // the consumer may take its time
      s_.hooks->on_cm_event({.kind = CmEvent::Kind::ConnectRequest,
                             .listener = c.backlog.listener(),
                             .request = request_of(c, s_)});
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

void Opening::startup_done(Connection& c, Instant now) {
  const mpa::Agreement agreement = c.startup->agreement();
  const ByteView pd = c.startup->reply().private_view();
  const std::string private_data(reinterpret_cast<const char*>(pd.data()), pd.size());
  verbs::QueuePair* qp = c.qp;
  c.stage_deadline = Instant::never();
  // First, because a program that gets the event may post at once, from another thread (E-28).
  qp->state.advance(verbs::QpState::Rts);
  s_.hooks->on_cm_event(
      {.kind = CmEvent::Kind::Established, .qp = qp, .private_data = private_data});
  full_operation(c, agreement, now);
  s_.sending.push(c);
}

void Opening::startup_rejected(Connection& c, const Startup::Step& step, Instant now) {
  const ByteView pd = c.startup->reply().private_view();
  CmEvent e{.kind = CmEvent::Kind::ConnectFailed,
            .code = Errc::rejected,
            .message = step.refusal == mpa::Refusal::PolicyDiffers
                           ? refusal_text(step.refusal, c.startup->options().policy,
                                          c.startup->reply().token)
                           : "the peer rejected the connection",
            .private_data = std::string(reinterpret_cast<const char*>(pd.data()), pd.size())};
  ending_.detach_qp(c, std::move(e));
  transport_.abort(c, now);
  c.stage = Stage::Lingering;
  c.stage_deadline = now + s_.options.linger_timeout;
  s_.sending.push(c);
}

void Opening::startup_failed(Connection& c, const Startup::Step& step, Instant now) {
  if (step.violation == ddp::Violation::MpaStartup) {
    ending_.fail_connection(
        c, Errc::protocol,
        step.refusal == mpa::Refusal::PolicyUnknown
            ? refusal_text(step.refusal, c.startup->options().policy, {})
            : "the peer's MPA start-up frame is invalid or has an unknown revision",
        now);
  } else {  // an FPDU is possible: report the reason by Terminate (RFC 6581 9.x)
    set_send_framing(c, c.startup->send_policy());
    c.stream->sender.start(true);
    ending_.raise_terminate(c, step.violation, {}, now);
  }
}

// Sets the format of our FPDUs, which begin after our start-up frame.
void Opening::set_send_framing(Connection& c, mpa::Policy policy) {
  c.stream->sender.set_framing(
      mpa::make_framing(policy, c.tcb.snd.iss.value() + 1, c.startup->sent_bytes()));
}

// From here on there are only FPDUs (StartNum is known). Bytes directly after the start-up frame
// are processed as SLOW until they are parsed (E-1).
void Opening::full_operation(Connection& c, const mpa::Agreement& agreement, Instant now) {
  const bool active = c.startup->is_active();
  set_send_framing(c, agreement.send);
  c.framing = mpa::make_framing(agreement.receive, c.tcb.rcv.irs.value() + 1,
                                c.buffer.read_position().value());
  c.extractor.set_framing(c.framing);
  c.startup.reset();
  c.stage = Stage::Full;
  c.qp->state.advance(verbs::QpState::Rts);  // the active side is already in that state
  c.context.config.crc = agreement.crc;
  c.context.startup = false;
  c.context.upgrade_needed = c.context.config.upgrade_after;
  if (!Transport::shows_segments(c)) {  // E-31
    c.context.config.initiated_as = fastpath::ConnectionType::Slow;
  }
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
    move_gate(c, SendGate::Delayed, now + s_.options.first_fpdu_delay);
    if (c.send_gate_opens <= now) open_send_side(c);
    s_.timers.arm(c);
  }
}

void Opening::open_send_side(Connection& c) {
  if (c.may_send()) return;
  const bool too_late = c.stage == Stage::Terminated || c.stream == nullptr;
  move_gate(c, too_late ? SendGate::Closed : SendGate::Open);
  if (too_late) return;
  c.stream->sender.start(c.context.config.crc);
  if (c.rtr_pending) {
    c.rtr_pending = false;
    // A FIN that came with the RTR has set its own deadline.
    if (c.stage == Stage::Full) c.stage_deadline = Instant::never();
    if (c.counters.sends_in != 0 && c.qp != nullptr) {
      s_.hooks->on_cm_event({.kind = CmEvent::Kind::EarlyData, .qp = c.qp});
    }
    s_.hooks->on_cm_event({.kind = CmEvent::Kind::Established, .qp = c.qp});
  }
  s_.sending.push(c);
}

// Sets keepalive for one connection (RFC 1122, 4.2.3.6: a setting per connection), over either TCP.
void Opening::set_keepalive(Connection& c, const ConnectParams& params, Instant now) {
  const Duration idle = params.keepalive.value_or(s_.options.keepalive) ? s_.options.keepalive_idle
                                                                        : Duration::zero();
  transport_.set_keepalive(c, idle, now);
  s_.timers.arm(c);
}

}  // namespace urnic::iwarp
