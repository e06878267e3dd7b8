#include "iwarp/ending.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ddp_rdma/terminate.h"
#include "iwarp/connection_stats.h"
#include "iwarp/guard_allocation.h"

namespace urnic::iwarp {
namespace {

// Time for the RST of a lost connection if the port is full or the next hop unknown.
constexpr Duration kLastWords = Duration::s(1);
// Pause before another attempt to report an end for which there was no memory.
constexpr Duration kEndAgain = Duration::ms(10);
// bound: bytes copied of unsent data when a queue pair is destroyed after its disconnect; beyond:
// the connection is reset; test: Leaving.MoreThanTheCopyLimitEndsByReset
constexpr std::uint64_t kMostLeft = std::uint64_t{1} << 28;

// The event of verbs that tells which side caused a violation.
CmEvent::Kind fault_of(ddp::Violation v) {
  constexpr std::uint8_t kLowerLayer = 2, kProtection = 1;
  const ddp::ViolationRow& row = ddp::violation_row(v);
  if (v == ddp::Violation::LocalCatastrophic || row.layer == kLowerLayer) {
    return CmEvent::Kind::Fatal;
  }
  return row.etype == kProtection ? CmEvent::Kind::AccessError : CmEvent::Kind::RequestError;
}

std::string describe(const ddp::TerminateInfo& t) {
  return "the peer sent Terminate layer " + std::to_string(t.layer) + " type " +
         std::to_string(t.etype) + " code " + std::to_string(t.code);
}

// The statistics of a connection. If there is no memory, they are the one thing that can be left
// out at its end.
std::optional<ConnectionStats> last_stats(const Connection& c) {
  try {
    return stats_of(c);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

// RDMAP: unexpected opcode (RFC 5040, 4.8).
bool unknown_opcode(const ddp::TerminateInfo& t) {
  return t.layer == 0 && t.etype == 2 && t.code == 6;
}

bool sent_extensions(const ddp::Stream& stream) {
  const auto& fpdus = stream.sender.counters().fpdus;
  return std::any_of(fpdus.begin() + static_cast<std::size_t>(ddp::Opcode::Immediate), fpdus.end(),
                     [](std::uint64_t n) { return n != 0; });
}

// The status of the oldest request. A protection error of RDMAP or DDP means that the peer refused
// access to its memory.
verbs::Status status_of(const ddp::TerminateInfo& t) {
  if (t.etype == 1 && t.layer <= 1) return verbs::Status::RemoteAccess;
  return unknown_opcode(t) ? verbs::Status::RemoteInvalidRequest : verbs::Status::RemoteOperation;
}

struct End {
  Errc code;
  const char* why;
};

// The end of TCP, as reported to the consumer.
End end_of(tcp::CloseReason reason, bool opening) {
  switch (reason) {
    case tcp::CloseReason::Refused:
      return {Errc::refused, "connection refused by the peer (no listener on that port)"};
    case tcp::CloseReason::TimedOut:
      return {Errc::timed_out, opening
                                   ? "no response from the peer: connecting timed out"
                                   : "the peer stopped responding: all TCP retransmissions failed"};
    case tcp::CloseReason::Unreachable:
      return {Errc::unreachable, "the peer is unreachable"};
    default:
      return {Errc::reset, "the connection was lost"};
  }
}

}  // namespace

void Ending::raise_terminate(Connection& c, ddp::Violation v, ByteView offending, Instant now) {
  if (c.stage == Stage::Leaving) {  // it cannot send its work, and no program waits for a reason
    fail_connection(c, Errc::closed, {}, now);
    return;
  }
  if (c.stage == Stage::Terminated || c.qp == nullptr) return;
  ++c.counters.terminates_sent;
  std::uint8_t ulpdu[ddp::kMaxTerminate];
  const std::uint32_t n = ddp::build_terminate(v, offending, ulpdu);
  if (!c.may_send()) c.stream->sender.start(c.context.config.crc);
  move_gate(c, SendGate::Open);
  c.stream->sender.stop();
  c.stream->sender.queue_ulpdu({ulpdu, n});
  const ddp::ViolationRow& row = ddp::violation_row(v);
  c.failure = "protocol error of the peer: " + std::string(row.name) + " (Terminate " +
              std::to_string(row.layer) + "/" + std::to_string(row.etype) + "/" +
              std::to_string(row.code) + " sent)";
  if (v == ddp::Violation::LocalCatastrophic) c.failure = "a local error ended the connection";
  c.stage = Stage::Terminated;
  c.stage_deadline = now + s_.options.linger_timeout;
  transport_.drop_undelivered(c);
  enter_error(completions_, *c.qp, ddp::flush_status(v));
  s_.hooks->on_cm_event(
      {.kind = CmEvent::Kind::Failed, .qp = c.qp, .code = Errc::protocol, .message = c.failure});
  s_.hooks->on_cm_event({.kind = fault_of(v), .qp = c.qp, .message = c.failure});
  s_.sending.push(c);
  s_.timers.arm(c);
}

void Ending::take_terminate(Connection& c, Instant now) {
  if (c.stage == Stage::Terminated || c.qp == nullptr) return;
  ++c.counters.terminates_received;
  const ddp::TerminateInfo info = c.stream->terminate.info;
  c.failure = describe(info);
  if (unknown_opcode(info) && sent_extensions(*c.stream)) {
    c.failure += ": it does not support RFC 7306 (Immediate Data, atomics)";
  }
  c.stage = Stage::Terminated;
  c.stage_deadline = now + s_.options.linger_timeout;
  c.stream->sender.stop();
  transport_.drop_undelivered(c);
  enter_error(completions_, *c.qp, status_of(info));
  s_.hooks->on_cm_event(
      {.kind = CmEvent::Kind::Failed, .qp = c.qp, .code = Errc::reset, .message = c.failure});
  s_.sending.push(c);
  s_.timers.arm(c);
}

bool Ending::leave(Connection& c, std::unique_ptr<verbs::QueuePair>& qp, Instant now) {
  const bool closing = c.stage == Stage::Closing;
  if (!closing && c.stage != Stage::Terminated) return false;
  // The peer must send the first FPDU (RFC 5044, 7.1.3) and would not accept ours.
  if (c.send_gate == SendGate::Closed) return false;
  try {
    if (!c.stream->leave(kMostLeft)) return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
  c.left = std::move(qp);
  c.left->connection = 0;
  c.left->leave_queues();
  c.left->owner = nullptr;
  c.qp = nullptr;
  if (closing) {
    c.stage = Stage::Leaving;
    c.stage_deadline = now + s_.options.linger_timeout;
    c.receive_wait = ReceiveWait::None;
  }
  guard_allocation(*this, c, now, [&] {
    if (closing) {
      transport_.discard_undelivered(c, now);
      // The FIN was after the dropped data.
      if (c.peer_fin == PeerFin::AfterData) take_fin(c, now);
    }
    s_.sending.push(c);
    s_.timers.arm(c);
  });
  return true;
}

void Ending::try_finish_close(Connection& c, Instant now) {
  if (c.fin_queued || c.stream == nullptr) return;
  const bool orderly = c.stage == Stage::Closing || c.stage == Stage::Leaving;
  if (orderly && !c.stream->sender.drained()) return;
  if (c.stage == Stage::Terminated && c.stream->sender.available() > transport_.sent_end(c)) return;
  c.fin_queued = true;
  transport_.finish_sending(c, now);
  s_.sending.push(c);
}

void Ending::take_fin(Connection& c, Instant now) {
  c.peer_fin = PeerFin::Reached;
  switch (c.stage) {
    case Stage::Opening:
    case Stage::Startup:
      fail_connection(c, Errc::refused, "the peer closed the connection during MPA start-up", now);
      return;
    case Stage::Full: {
      // 5.1: with nothing outstanding the end is orderly, otherwise abnormal.
      const bool partial = transport_.has_undelivered(c);
      if (!c.stream->sender.idle() || partial) {
        fail_connection(c, Errc::reset, "the peer closed the connection with work outstanding",
                        now);
        return;
      }
      if (c.close_wait_ms != 0 && !c.rtr_pending) {
        c.stage_deadline = now + Duration::ms(c.close_wait_ms);
        s_.timers.arm(c);
      } else {
        close_behind_peer(c, now);
      }
      return;
    }
    case Stage::Closing:
    case Stage::Leaving:
    case Stage::Terminated:
      try_finish_close(c, now);
      return;
    case Stage::Lingering:
      if (!c.fin_queued) {
        c.fin_queued = true;
        transport_.finish_sending(c, now);
      }
      s_.sending.push(c);
      return;
  }
}

void Ending::close_behind_peer(Connection& c, Instant now) {
  begin_closing(c, now);
  try_finish_close(c, now);
}

void Ending::take_closed(Connection& c, Instant now) {
  if (c.qp != nullptr) {
    const bool clean = c.stage == Stage::Closing && c.tcb.close_reason == tcp::CloseReason::None;
    if (clean) {
      detach_qp(c, {.kind = CmEvent::Kind::Disconnected, .code = Errc::closed});
    } else if (c.stage == Stage::Terminated) {
      detach_qp(c,
                {.kind = CmEvent::Kind::Disconnected, .code = Errc::reset, .message = c.failure});
    } else {
      const End end = end_of(c.tcb.close_reason, c.stage == Stage::Opening);
      fail_connection(c, end.code, end.why, now);
      return;
    }
  }
  if (transport_.lingers(c)) {
    // Later segments are answered without the connection.
    s_.time_wait.add(c.key, c.tcb);
    end_connection(c);
  } else if (transport_.is_closed(c)) {
    end_connection(c);
  } else {
    c.stage = Stage::Lingering;
    c.stage_deadline = Instant::never();
    s_.timers.arm(c);
  }
}

void Ending::end_connection(Connection& c) {
  if (c.is_over() || c.unreported_end != UnreportedEnd::None) return;
  if (const auto last = last_stats(c)) s_.ended.add(*last);
  c.backlog.leave(c.key.remote);
  s_.connections.end(c);
  ++s_.counters.closed;
  s_.timers.prune(s_.connections);
}

void Ending::fail_connection(Connection& c, Errc code, std::string why, Instant now) {
  UnreportedEnd end = std::exchange(c.unreported_end, UnreportedEnd::None);
  if (end != UnreportedEnd::None) {
    --s_.ends_waiting;
  } else {
    ++s_.counters.failed;
    const bool was_up = c.stage != Stage::Opening && c.stage != Stage::Startup && !c.rtr_pending;
    end = was_up ? UnreportedEnd::Established : UnreportedEnd::BeforeEstablished;
    c.failure_code = code;
    c.failure = std::move(why);
    transport_.abort(c, now);
  }
  try {
    finish_failing(c, end, now);
  } catch (const std::bad_alloc&) {
    c.unreported_end = end;
    ++s_.ends_waiting;
    c.stage = Stage::Lingering;  // none of its bytes are processed any more
    c.stream = nullptr;
    s_.end_again = now + kEndAgain;
  }
}

void Ending::abort_silently(Connection& c, Instant now) {
  verbs::QueuePair& qp = *c.qp;
  if (const auto last = last_stats(c)) s_.ended.keep(qp.number(), *last);
  count_stream(ddp::stream_of(qp));
  c.qp = nullptr;
  qp.connection = 0;
  fail_connection(c, Errc::closed, {}, now);
}

void Ending::out_of_memory(Connection& c, Instant now) {
  if (!c.is_over()) fail_connection(c, Errc::no_memory, "out of memory", now);
}

void Ending::finish_ends(Instant now) {
  s_.end_again = Instant::never();
  if (s_.ends_waiting == 0) return;  // reported in the meantime
  s_.connections.for_each([&](Connection& c) {
    if (c.unreported_end != UnreportedEnd::None) fail_connection(c, c.failure_code, {}, now);
  });
}

// If a step fails on allocation, it is repeated later.
void Ending::finish_failing(Connection& c, UnreportedEnd end, Instant now) {
  if (c.qp != nullptr) {
    const bool was_up = end == UnreportedEnd::Established;
    detach_qp(c, {.kind = was_up ? CmEvent::Kind::Failed : CmEvent::Kind::ConnectFailed,
                  .code = c.failure_code,
                  .message = c.failure});
  }
  c.backlog.leave(c.key.remote);
  c.startup.reset();
  if (c.left != nullptr && c.stream != nullptr) count_stream(*c.stream);
  c.stream = nullptr;
  c.stage = Stage::Lingering;
  if (transport_.is_closed(c)) {
    end_with_reset(c, now);
    return;
  }
  // Its RST waits for the port, or for the next hop, but not for long.
  c.stage_deadline = now + kLastWords;
  s_.sending.push(c);
  s_.timers.arm(c);
}

void Ending::end_with_reset(Connection& c, Instant now) {
  transport_.abort(c, now);
  transport_.send_reset_now(c, now);
  end_connection(c);
}

void Ending::detach_qp(Connection& c, CmEvent e) {
  verbs::QueuePair* qp = c.qp;
  if (qp == nullptr) return;
  const auto last = last_stats(c);
  ConnectionStats counted;
  add_stream(ddp::stream_of(*qp), &counted);
  enter_error(completions_, *qp, verbs::Status::Flushed);
  e.qp = qp;
  s_.hooks->on_cm_event(std::move(e));
  c.qp = nullptr;
  c.stream = nullptr;
  qp->connection = 0;
  s_.ended.add(counted);
  if (last) s_.ended.keep(qp->number(), *last);
}

void Ending::begin_closing(Connection& c, Instant now) {
  c.stage = Stage::Closing;
  c.stage_deadline = now + s_.options.linger_timeout;
  c.qp->state.advance(verbs::QpState::Sqd);
}

void Ending::count_stream(const ddp::Stream& stream) {
  ConnectionStats s;
  add_stream(stream, &s);
  s_.ended.add(s);
}

}  // namespace urnic::iwarp
