// Events of connection management, the transport and timers.
#include <algorithm>
#include <new>
#include <string>

#include "roce/attributes.h"
#include "roce/connection_moves.h"
#include "roce/connections.h"

namespace urnic::roce {
namespace {

using ib_cm::EventKind;
using ib_cm::Reason;

// After this time an event is reported again that failed for lack of memory.
constexpr Duration kTellAgain = Duration::ms(10);

const char* text_of(QpEvent event) {
  switch (event) {
    case QpEvent::RefusedAccess:
      return "the peer requested memory that it has no access rights to";
    case QpEvent::RefusedRequest:
      return "the peer sent an invalid request";
    case QpEvent::Silent:
      return "the peer stopped responding";
    case QpEvent::Failed:
      return "a work request failed: see the status of its completion";
    default:
      return "an internal error occurred while executing a request of the peer";
  }
}

// A request that the gate of its listener refused.
void note_turned_away(const Listener* l, const ib_cm::Event& e, verbs::Hooks& hooks) {
  const std::uint16_t port = l != nullptr ? l->port() : 0;
  hooks.on_note(verbs::Note::TurnedAway, {e.addresses.local, port},
                {e.addresses.remote, e.source_port}, name(e.verdict));
}

// Called within a burst. If there is no memory the event is dropped: the state of the queue pair
// and its completions show the same.
void report_quietly(verbs::Hooks& hooks, verbs::QueuePair& qp, CmEvent::Kind kind, Errc code,
                    const char* why) {
  try {
    hooks.on_cm_event({.kind = kind, .qp = &qp, .code = code, .message = why});
  } catch (const std::bad_alloc&) {
    // dropped, as documented above
  }
}

void report_to_consumer(verbs::Hooks& hooks, verbs::QueuePair& qp, QpEvent event) {
  using Kind = CmEvent::Kind;
  const auto failed = [&](Errc code, Kind cause) {
    report_quietly(hooks, qp, Kind::Failed, code, text_of(event));
    report_quietly(hooks, qp, cause, code, text_of(event));
  };
  switch (event) {
    case QpEvent::Established:
      return report_quietly(hooks, qp, Kind::EarlyData, Errc::io, "");
    case QpEvent::Drained:
      return report_quietly(hooks, qp, Kind::Drained, Errc::io, "");
    case QpEvent::RefusedAccess:
      return failed(Errc::protocol, Kind::AccessError);
    case QpEvent::RefusedRequest:
      return failed(Errc::protocol, Kind::RequestError);
    case QpEvent::RefusedFault:
      return failed(Errc::io, Kind::Fatal);
    case QpEvent::Failed:
      return report_quietly(hooks, qp, Kind::Failed, Errc::reset, text_of(event));
    case QpEvent::Silent:  // only with a connection, whose end is reported
      return;
  }
}

}  // namespace

// ---- the side

void Connections::on_qp_event(verbs::QueuePair& qp, QpEvent event) {
  Binding* const b = bindings_.of(qp);
  const bool ours = b != nullptr && b->stage != State::Over && event != QpEvent::Drained;
  if (!ours) return report_to_consumer(*hooks_, qp, event);
  if (event == QpEvent::Established) {
    b->established = true;
  } else {
    b->broken = true;
    b->code = event == QpEvent::Silent ? Errc::timed_out : Errc::protocol;
    b->why = text_of(event);
    // A pending connection is reported as failed, an established one as ended.
    const bool of_the_connection = b->stage == State::Accepting || event == QpEvent::Silent;
    if (!of_the_connection) report_to_consumer(*hooks_, qp, event);
  }
  bindings_.note(*b);
}

void Connections::failed(verbs::QueuePair& qp, Errc code, const char* why) {
  Binding* const b = bindings_.of(qp);
  const bool waits = b != nullptr && (b->stage == State::Asking || b->stage == State::Accepting);
  if (!waits) report_quietly(*hooks_, qp, CmEvent::Kind::Failed, code, why);
  if (b == nullptr || b->stage == State::Over) return;
  b->broken = true;
  b->code = code;
  b->why = code == Errc::unreachable
               ? "the link was down for too long (setting link_timeout_ms)"
               : "completion queue overrun: create it larger or poll it more often";
  bindings_.note(*b);
}

// ---- all events

void Connections::act(Instant now) {
  // Messages due to the peer leave before the reason is reported to the consumer: a program may end
  // after the report, and its peer would wait for a DREP until it gives up (IB-138).
  if (general_->transmit(now)) wire_.tx().flush();
  bindings_.take_noted([&](Binding& b) { act_on(b, now); });
  while (bindings_.deadlines().next() <= now) on_time(*bindings_.deadlines().take(), now);
  resolver_.on_time(now);
  cm_connections_.on_time(now);
  for (ib_cm::Event e; manager().next_event(&e);) on_event(e, now);
}

void Connections::act_on(Binding& b, Instant now) {
  if (b.broken) {
    b.broken = b.established = false;
    if (b.stage == State::Over) return;
    cm().abandon(b.handle, now);
    if (b.stage == State::Asking || b.stage == State::Accepting) {
      return end(b, CmEvent::Kind::ConnectFailed, b.code, b.why, now);
    }
    if (b.code == Errc::timed_out) return end(b, CmEvent::Kind::Failed, b.code, b.why, now);
    b.stage = State::Over;  // already reported to its consumer
    ++counters_.failed;
  } else if (b.established && b.stage == State::Accepting) {
    try {
      cm().established(b.handle);
      b.established = false;
    } catch (const std::bad_alloc&) {
      bindings_.note(b);
    }
  }
}

void Connections::on_time(Binding& b, Instant now) {
  if (b.untold) {
    if (!tell(b, *b.untold)) bindings_.deadlines().set(b, now + kTellAgain);
    if (!b.untold && b.handle == 0) drop(b);
    return;
  }
  if (b.stage == State::Asking && b.handle == 0 && now < b.asked->give_up) {
    if (!ask(b, now)) {
      return end(b, CmEvent::Kind::ConnectFailed, Errc::no_memory, "out of memory", now);
    }
    return bindings_.deadlines().set(b, b.asked->give_up);
  }
  cm().abandon(b.handle, now);
  end(b, CmEvent::Kind::ConnectFailed, Errc::timed_out,
      "no response from the peer: connecting timed out", now);
}

// ---- connection management

void Connections::on_event(const ib_cm::Event& e, Instant now) {
  if (e.kind == EventKind::ConnectRequest || e.kind == EventKind::ServiceRequest) {
    return requested(e, now);
  }
  if (e.kind == EventKind::TurnedAway) {
    return note_turned_away(listeners_.find(e.listener), e, *hooks_);
  }
  if (resolver_.take(e, now) || cm_connections_.take(e, now)) return;
  Binding* const b = bindings_.by_handle(e.handle);
  if (b == nullptr) return;  // a request not answered yet, or one that has been forgotten
  if (e.kind == EventKind::Released) {  // the number and handle are free
    bindings_.name(*b, 0);
    if (b->stage != State::Over || b->untold) return;
    const bool tells = b->answered && b->qp != nullptr;
    if (!tells || tell(*b, CmEvent::Kind::TimeWaitOver, {})) return drop(*b);
    return bindings_.deadlines().set(*b, now + kTellAgain);
  }
  if (b->stage == State::Over) return;
  switch (e.kind) {
    case EventKind::Accepted:
      return accepted(*b, e, now);
    case EventKind::Established:
      return up(*b, {e.data.view(), {}}, now);
    case EventKind::Rejected:
    case EventKind::Unreachable:
      return refused(*b, e, now);
    case EventKind::Disconnected:
      if (b->stage == State::Asking || b->stage == State::Accepting) {
        return end(*b, CmEvent::Kind::ConnectFailed, Errc::reset,
                   "the peer closed the connection before it was established", now);
      }
      if (b->stage == State::Ending || e.reason == Reason::None) {
        return end(*b, CmEvent::Kind::Disconnected, Errc::closed, "", now, {e.data.view(), {}});
      }
      return end(*b, CmEvent::Kind::Failed, Errc::reset,
                 e.reason == Reason::Stale
                     ? "the peer has started a new connection with the same numbers"
                     : text_of(e.reason),
                 now);
    default:
      return;
  }
}

// A connection request or a UD service request; each is only for listeners of its port space.
void Connections::requested(const ib_cm::Event& e, Instant now) {
  const bool datagrams = e.kind == EventKind::ServiceRequest;
  const auto refuse = [&](Reason reason, ib_cm::SidrStatus status) {
    if (datagrams) {
      manager().sidr().answer(e.handle, {status}, {}, now);
    } else {
      cm().reject(e.handle, reason, {}, now);
    }
  };
  Listener* const l = listeners_.find(e.listener);
  if (l == nullptr || (l->space() == ib_cm::PortSpace::Udp) != datagrams) {
    return refuse(Reason::NoSuchService, ib_cm::SidrStatus::NoSuchService);
  }
  try {
    verbs::CmEvent event{.kind = CmEvent::Kind::ConnectRequest, .listener = l};
    event.request = request_of(e, *l);
    hooks_->on_cm_event(std::move(event));
  } catch (const std::bad_alloc&) {
    refuse(Reason::NoResources, ib_cm::SidrStatus::NoQueuePair);
  }
}

verbs::ConnectionRequest Connections::request_of(const ib_cm::Event& e, const Listener& l) {
  verbs::ConnectionRequest r;
  r.control = control_;
  r.id = e.handle;
  r.service = e.kind == EventKind::ServiceRequest         ? verbs::Service::Ud
              : e.transport == ib_cm::Transport::Extended ? verbs::Service::XrcReceive
                                                          : verbs::Service::Rc;
  r.local = {e.addresses.local, l.port()};
  r.peer = {e.addresses.remote, e.source_port};
  r.ird = e.qp.initiator_depth;  // one end's initiator depth is what the other end serves
  r.ord = e.qp.responder_resources;
  r.roce_peer = roce_peer_of(e.qp);
  r.roce_peer.retry_count = e.path.retry_count;
  if (r.service != verbs::Service::Ud)
    r.attributes = attributes_of(cm_connections_.offered(e), true);
  const ByteView data = e.data.view();
  r.private_data.assign(data.begin(), data.end());
  return r;
}

// The peer has accepted. The RTU is only sent when our end is ready.
void Connections::accepted(Binding& b, const ib_cm::Event& e, Instant now) {
  const auto rtr = [&] {
    return agreed(to_rtr(e.addresses, e.qp, e.path, b.number, b.psn, b.own), e.extensions);
  };
  const auto rts = [&] { return to_rts(e.qp, e.path, e.qp.responder_resources, b.own); };
  const bool ready =
      b.stage == State::Asking && move(side_, *b.qp, rtr(), now) && move(side_, *b.qp, rts(), now);
  if (!ready) {
    cm().reject(b.handle, Reason::Consumer, {}, now);
    return end(b, CmEvent::Kind::ConnectFailed, Errc::wrong_state,
               "cannot move the queue pair to RTR and RTS", now);
  }
  if (cm().confirm(b.handle, {}) != ib_cm::Refusal::None) {
    return end(b, CmEvent::Kind::ConnectFailed, Errc::reset,
               "the peer closed the connection before it was established", now);
  }
  b.stage = State::Up;
  b.answered = true;
  up(b, {e.data.view(), roce_peer_of(e.qp)}, now);
}

// Both ends are ready and in Rts.
void Connections::up(Binding& b, const Said& said, Instant now) {
  context_of(*b.qp).tells_first_request = false;
  b.stage = State::Up;
  side_.keep_alive(*b.qp, now);
  b.asked.reset();
  bindings_.deadlines().set(b, Instant::never());
  ++counters_.opened;
  if (tell(b, CmEvent::Kind::Established, said)) return;
  cm().abandon(b.handle, now);
  end(b, CmEvent::Kind::ConnectFailed, Errc::no_memory, "out of memory", now);
}

void Connections::refused(Binding& b, const ib_cm::Event& e, Instant now) {
  if (e.kind == EventKind::Unreachable) {
    return end(b, CmEvent::Kind::ConnectFailed, Errc::timed_out,
               "no response: nobody answers at this address, or the peer does not support RoCE",
               now);
  }
  if (Instant at; b.stage == State::Asking && b.asked->again(e.reason, now, &at)) {
    bindings_.name(b, 0);
    return bindings_.deadlines().set(b, at);
  }
  Said said{e.data.view(), {}};
  said.peer.reject_reason = static_cast<std::uint16_t>(e.reason);
  end(b, CmEvent::Kind::ConnectFailed, code_of(e.reason), text_of(e.reason), now, said);
}

// ---- ends

// There is no connection, or not any more: moves the queue pair to Error and reports the reason.
void Connections::end(Binding& b, CmEvent::Kind kind, Errc code, const char* why, Instant now,
                      const Said& said) {
  ++(kind == CmEvent::Kind::Disconnected ? counters_.closed : counters_.failed);
  b.stage = State::Over;
  b.code = code;
  b.why = why;
  b.asked.reset();
  bindings_.deadlines().set(b, Instant::never());
  try {
    side_.fail(*b.qp);
  } catch (const std::bad_alloc&) {
    // It is in Error. The next post flushes what is left in its queues.
  }
  if (!tell(b, kind, said)) {
    bindings_.deadlines().set(b, now + kTellAgain);
  } else if (b.handle == 0) {
    drop(b);
  }
}

// False: out of memory.
bool Connections::tell(Binding& b, CmEvent::Kind kind, const Said& said) {
  try {
    hooks_->on_cm_event(
        {.kind = kind,
         .qp = b.qp,
         .code = b.code,
         .message = b.why,
         .private_data = {reinterpret_cast<const char*>(said.data.data()), said.data.size()},
         .roce_peer = said.peer});
    b.untold.reset();
    return true;
  } catch (const std::bad_alloc&) {
    b.untold = kind;
    return false;
  }
}

}  // namespace urnic::roce
