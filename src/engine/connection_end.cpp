// The end of a connection, orderly or not, and what its queue pair and the consumer learn of it.
// verbs/qp_state.h has the table of states.
#include "ddp_rdma/terminate.h"
#include "engine/engine.h"

namespace urnic::engine {
namespace {

constexpr std::size_t kTimersKept = 1024;  // entries not worth looking through
// For the RST of a connection that is lost, where the port is full or the next hop unknown.
constexpr Duration kLastWords = Duration::s(1);

std::string describe(const ddp::TerminateInfo& t) {
  return "the peer sent Terminate layer " + std::to_string(t.layer) + " type " +
         std::to_string(t.etype) + " code " + std::to_string(t.code);
}

struct End {
  Errc code;
  const char* why;
};

// How TCP ended, for the consumer.
End end_of(tcp::CloseReason reason, bool opening) {
  switch (reason) {
    case tcp::CloseReason::Refused:
      return {Errc::refused, "connection refused by the peer (nobody listens on that port)"};
    case tcp::CloseReason::TimedOut:
      return {Errc::timed_out, opening ? "no answer from the peer: connecting timed out"
                                       : "the peer stopped answering: TCP gave up retransmitting"};
    case tcp::CloseReason::Unreachable:
      return {Errc::unreachable, "the peer is unreachable"};
    default:
      return {Errc::reset, "the connection was lost"};
  }
}

}  // namespace

void Engine::raise_terminate(Connection& c, ddp::Violation v, ByteView offending, Instant now) {
  if (c.stage == Stage::Terminated || c.qp == nullptr) return;
  ++c.counters.terminates_sent;
  std::uint8_t ulpdu[ddp::kMaxTerminate];
  const std::uint32_t n = ddp::build_terminate(v, offending, ulpdu);
  if (!c.first_fpdu_seen) c.stream->sender.start(c.context.config.crc);
  c.first_fpdu_seen = true;
  c.stream->sender.stop();
  c.stream->sender.queue_ulpdu({ulpdu, n});
  const ddp::ViolationRow& row = ddp::violation_row(v);
  c.failure = "the peer broke the protocol: " + std::string(row.name) + " (Terminate " +
              std::to_string(row.layer) + "/" + std::to_string(row.etype) + "/" +
              std::to_string(row.code) + " sent)";
  if (v == ddp::Violation::LocalCatastrophic) c.failure = "a local error ended the stream";
  c.stage = Stage::Terminated;
  c.stage_deadline = now + options_.linger_timeout;
  drop_undelivered(c);
  enter_error(*c.qp, ddp::flush_status(v));
  hooks_->on_cm_event(
      {.kind = CmEvent::Kind::Failed, .qp = c.qp, .code = Errc::protocol, .message = c.failure});
  enqueue_tx(c);
  arm_timer(c);
}

void Engine::on_terminate_received(Connection& c, Instant now) {
  if (c.stage == Stage::Terminated || c.qp == nullptr) return;
  ++c.counters.terminates_received;
  const ddp::TerminateInfo info = c.stream->terminate.info;
  c.failure = describe(info);
  c.stage = Stage::Terminated;
  c.stage_deadline = now + options_.linger_timeout;
  c.stream->sender.stop();
  // Layer RDMAP or DDP with a protection type: the peer refused access to its memory.
  const bool protection = info.etype == 1 && info.layer <= 1;
  enter_error(*c.qp, protection ? verbs::Status::RemoteAccess : verbs::Status::RemoteOperation);
  hooks_->on_cm_event(
      {.kind = CmEvent::Kind::Failed, .qp = c.qp, .code = Errc::reset, .message = c.failure});
  enqueue_tx(c);
  arm_timer(c);
}

void Engine::disconnect(verbs::QueuePair& qp, Instant now) {
  const Turn turn(*this);
  Connection* c = find(qp.connection);
  if (c == nullptr) return;
  if (c->stage == Stage::Opening || c->stage == Stage::Startup) {
    fail_connection(*c, Errc::closed, "closed before it was established", now);
    transmit_round(now);
    return;
  }
  if (c->stage != Stage::Full) return;
  c->stage = Stage::Closing;
  c->stage_deadline = now + options_.linger_timeout;
  qp.state.advance(verbs::QpState::Sqd);
  enqueue_tx(*c);
  arm_timer(*c);
  transmit_round(now);
}

// Our FIN goes when nothing is left to be cut into segments.
void Engine::try_finish_close(Connection& c, Instant now) {
  if (c.fin_queued || c.stream == nullptr) return;
  if (c.stage == Stage::Closing && !c.stream->sender.drained()) return;
  if (c.stage == Stage::Terminated && c.stream->sender.available() > sent_end(c)) return;
  c.fin_queued = true;
  finish_sending(c, now);
  enqueue_tx(c);
}

void Engine::on_fin(Connection& c, Instant now) {
  c.fin_received = true;
  switch (c.stage) {
    case Stage::Opening:
    case Stage::Startup:
      // The frame and the FIN may have come in one segment (a rejecting peer closes at once).
      if (c.stage == Stage::Startup) run_startup(c, now);
      if (c.is_over() || c.stage != Stage::Startup) return;
      // E-35: a peer that knows only revision 1 closes without a Reply.
      if (refuses_revision2(c)) {
        retry_as_revision1(c, now);
        return;
      }
      fail_connection(c, Errc::refused, "the peer closed the connection during MPA start-up", now);
      return;
    case Stage::Full: {
      // 5.1: with nothing outstanding an orderly end, else an abnormal one.
      const bool partial = has_undelivered(c);
      if (!c.stream->sender.idle() || partial) {
        fail_connection(c, Errc::reset, "the peer closed the connection with work outstanding",
                        now);
        return;
      }
      c.stage = Stage::Closing;
      c.stage_deadline = now + options_.linger_timeout;
      c.qp->state.advance(verbs::QpState::Sqd);
      try_finish_close(c, now);
      return;
    }
    case Stage::Closing:
    case Stage::Terminated:
      try_finish_close(c, now);
      return;
    case Stage::Lingering:
      if (!c.fin_queued) {
        c.fin_queued = true;
        finish_sending(c, now);
      }
      enqueue_tx(c);
      return;
  }
}

// TCP has finished (TIME-WAIT counts): the queue pair is done, TCP lingers alone.
void Engine::on_closed(Connection& c, Instant now) {
  if (c.qp != nullptr) {
    const bool clean = c.stage == Stage::Closing && c.tcb.close_reason == tcp::CloseReason::None;
    if (clean) {
      detach_qp(c, CmEvent::Kind::Disconnected, Errc::closed, "");
    } else if (c.stage == Stage::Terminated) {
      detach_qp(c, CmEvent::Kind::Disconnected, Errc::reset, c.failure);
    } else {
      const End end = end_of(c.tcb.close_reason, c.stage == Stage::Opening);
      fail_connection(c, end.code, end.why, now);
      return;
    }
  }
  if (c.link == nullptr && c.tcb.state == tcp::State::TimeWait) {
    // What still may come is answered without the connection.
    time_wait_.add(c.key, c.tcb);
    end_connection(c);
  } else if (transport_closed(c)) {
    end_connection(c);
  } else {
    c.stage = Stage::Lingering;
    c.stage_deadline = Instant::never();
    arm_timer(c);
  }
}

// The last thing that happens to a connection, wherever it is called from, and as often as it is.
// Entries that name it elsewhere (timers, turns) find nothing any more.
void Engine::end_connection(Connection& c) {
  if (c.is_over()) return;
  ended_.add(connection_stats(c));
  leave_listener(c);
  if (recent_.connection == &c) recent_.connection = nullptr;
  connections_.end(c);
  ++counters_.connections_closed;
  // An entry of each connection that lives is wanted; at twice as many the look at all of them has
  // been paid for.
  if (timers_.size() > kTimersKept + 2 * connections_.size()) {
    timers_.prune([this](const TimerHeap::Entry& e) {
      const Connection* owner = find(e.id);
      return owner != nullptr && owner->timer_at == e.at;
    });
  }
}

// The stream is gone (or goes now, by RST): flush and report; TCP sends its RST if it owes one.
void Engine::fail_connection(Connection& c, Errc code, std::string why, Instant now) {
  ++counters_.connections_failed;
  const bool was_established =
      c.stage != Stage::Opening && c.stage != Stage::Startup && !c.rtr_pending;
  abort_transport(c, now);
  if (c.qp != nullptr) {
    detach_qp(c, was_established ? CmEvent::Kind::Failed : CmEvent::Kind::ConnectFailed, code,
              std::move(why));
  }
  leave_listener(c);
  c.startup.reset();
  c.stream = nullptr;
  c.stage = Stage::Lingering;
  if (transport_closed(c)) {
    end_with_reset(c, now);
    return;
  }
  // Its RST waits for the port, or for the next hop: not for long.
  c.stage_deadline = now + kLastWords;
  enqueue_tx(c);
  arm_timer(c);
}

// TCP has had its time. The RST it owes goes if its way is known; nothing waits for anything more,
// so that no peer, no route and no timer can keep the connection.
void Engine::end_with_reset(Connection& c, Instant now) {
  abort_transport(c, now);
  if (c.link == nullptr) {
    const tcp::SendPlan plan = tcp::plan_send(c.tcb, {}, now);
    if (plan.kind == tcp::Send::Rst && (c.routed || route_quietly(c, now)))
      send_segment(c, plan, now);
  }
  end_connection(c);
}

void Engine::detach_qp(Connection& c, CmEvent::Kind kind, Errc code, std::string why) {
  verbs::QueuePair* qp = c.qp;
  if (qp == nullptr) return;
  ended_.keep(qp->number(), connection_stats(c));
  stream_ended(*c.stream);
  c.qp = nullptr;
  c.stream = nullptr;
  qp->connection = 0;
  enter_error(*qp, verbs::Status::Flushed);
  hooks_->on_cm_event({.kind = kind, .qp = qp, .code = code, .message = std::move(why)});
}

void Engine::abort(verbs::QueuePair& qp, Instant now) {
  const Turn turn(*this);
  if (Connection* c = find(qp.connection)) {
    fail_connection(*c, Errc::closed, "aborted by the local consumer", now);
    transmit_round(now);
  }
}

// What is outstanding ends with it; posts that came while the state was moved, or later, as well.
void Engine::enter_error(verbs::QueuePair& qp, verbs::Status first) {
  const verbs::QpMove move = qp.state.advance(verbs::QpState::Error);
  if (move.effect == verbs::QpEffect::FlushAll) {
    flush_qp(qp, first);
  } else {
    flush_posted(qp);
  }
}

void Engine::flush_qp(verbs::QueuePair& qp, verbs::Status first) {
  ddp::flush(ddp::stream_of(qp), first,
             [&](const verbs::Completion& done) { post_completion(qp, done); });
  if (qp.rq.shared() == nullptr || qp.last_receive_told) return;
  // Receives nobody has bound stay in the shared queue for others; this one takes no more.
  qp.last_receive_told = true;
  hooks_->on_cm_event({.kind = CmEvent::Kind::LastReceive, .qp = &qp});
}

void Engine::flush_posted(verbs::QueuePair& qp) {
  if (verbs::flushes_posts(qp.state)) flush_qp(qp, verbs::Status::Flushed);
}

void Engine::post_completion(verbs::QueuePair& qp, const verbs::Completion& completion) {
  verbs::CompletionQueue* cq = completion.receive ? qp.receive_cq : qp.send_cq;
  verbs::Cqe cqe;
  cqe.completion = completion;
  cqe.qp_number = qp.number();
  notify(cq->push(cqe), cq);
}

void Engine::post_completion(verbs::QueuePair& qp, const verbs::StoredSends& sends) {
  notify(qp.receive_cq->push(sends, qp.number()), qp.receive_cq);
}

void Engine::notify(verbs::CompletionQueue::Notify what, verbs::CompletionQueue* cq) {
  using Notify = verbs::CompletionQueue::Notify;
  if (what == Notify::Yes) hooks_->on_completion(cq);
  if (what != Notify::Overrun) return;
  cq_overrun_ = true;  // not here: whoever completes is in the middle of a queue pair
  hooks_->on_cq_overrun(cq);
}

// E-47: what completes on a queue that has overrun is lost, so nothing on it can go on.
void Engine::fail_overrun(Instant now) {
  cq_overrun_ = false;
  constexpr const char* kWhy = "its completion queue has overrun: it is too small";
  qps_.for_each([&](verbs::QueuePair& qp) {
    if (!qp.send_cq->overrun() && !qp.receive_cq->overrun()) return;
    if (Connection* c = find(qp.connection)) {
      fail_connection(*c, Errc::no_memory, kWhy, now);
      return;
    }
    if (qp.state == verbs::QpState::Error) return;
    if (qp.state == verbs::QpState::Reset) return;  // nothing of it can be lost
    qp.state.modify(verbs::QpState::Error);
    flush_qp(qp, verbs::Status::Flushed);
    hooks_->on_cm_event(
        {.kind = CmEvent::Kind::Failed, .qp = &qp, .code = Errc::no_memory, .message = kWhy});
  });
}

}  // namespace urnic::engine
