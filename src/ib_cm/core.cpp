#include "ib_cm/core.h"

#include <new>

#include "ib_cm/ip_service.h"

namespace urnic::ib_cm {
namespace {

// Begun by others, and nothing has come yet that a forger of addresses could not send.
bool is_half_open(const Connection& c) {
  switch (c.state) {
    case State::ReqReceived:
    case State::RepSent:
    case State::SidrReceived:
    case State::SidrAnswered:
      return true;
    case State::Refused:
      return !c.active;
    default:
      return false;
  }
}
bool waits_for_owner(const Connection& c) {
  return c.state == State::ReqReceived || c.state == State::SidrReceived;
}

}  // namespace

Connection* Core::open(State state, const Way& way) {
  Connection* const c = table.open();
  if (c == nullptr) return nullptr;
  try {
    deadlines.reserve(table.size());
  } catch (const std::bad_alloc&) {
    table.close(c);
    return nullptr;
  }
  c->way = way;
  c->state = state;
  c->time_wait = bounded(time_of(options.packet_life_time) + time_of(options.packet_life_time) +
                         time_of(options.ack_delay));
  half_open += is_half_open(*c);
  return c;
}

void Core::move(Connection& c, State to) {
  half_open -= is_half_open(c);
  const bool waited = waits_for_owner(c);
  c.state = to;
  half_open += is_half_open(c);
  if (waited && !waits_for_owner(c)) listeners.count(c.listener, -1);
}

void Core::release(Connection& c) {
  half_open -= is_half_open(c);
  if (waits_for_owner(c)) listeners.count(c.listener, -1);
  Event& e = events.emplace_back();
  e.kind = EventKind::Released;
  e.handle = c.id;
  e.way = c.way;
  deadlines.set(c, Instant::never());
  table.close(&c);
}

void Core::send(const Way& way, const Mad& mad) {
  if (outgoing.size() >= kMostWaiting) {
    ++counters.unsent;
    return;
  }
  try {
    outgoing.push_back({way, mad});
  } catch (const std::bad_alloc&) {
    ++counters.unsent;
    return;
  }
  ++counters.sent;
}

Event& Core::tell(Connection& c, EventKind kind, Reason reason) {
  Event& e = c.orphan ? unheard_ : events.emplace_back();
  e = Event();
  e.kind = kind;
  e.handle = c.id;
  e.way = c.way;
  e.reason = reason;
  e.transport = c.transport;
  return e;
}

Event& Core::tell_asked(Connection& c, EventKind kind, ByteView data) {
  Event& e = tell(c, kind);
  e.listener = c.listener;
  e.wanted = c.service;
  if (is_ip_service(c.service)) {
    e.source_port = read_ip_header(data)->source_port;
    data = data.subspan(kIpHeaderOctets);
  }
  e.data = PrivateData(data);
  return e;
}

void Core::tell_turned_away(ListenerId listener, const Way& way, const Req& r,
                            GateVerdict verdict) {
  Event& e = events.emplace_back();
  e = Event();
  e.kind = EventKind::TurnedAway;
  e.listener = listener;
  e.way = way;
  e.wanted = r.service;
  if (const auto header = read_ip_header(r.private_data); header && is_ip_service(r.service)) {
    e.source_port = header->source_port;
  }
  e.verdict = verdict;
}

// ---- time

void Core::await_answer(Connection& c, Instant now) {
  c.retries_left = c.retries;
  c.mras = 0;
  set_due(c, now + c.interval);
}

bool Core::repeat(Connection& c, Instant now) {
  if (c.retries_left == 0) return false;
  --c.retries_left;
  ++counters.repeated;
  send(c.way, c.last);
  set_due(c, now + c.interval);
  return true;
}

bool Core::lengthen(Connection& c, std::uint8_t service_timeout, Instant now) {
  if (c.mras == kMostMras) return false;
  ++c.mras;
  set_due(c, now + wait_of(service_timeout) + c.interval);
  return true;
}

void Core::hold_back(Connection& c, State state, Instant now) {
  c.admission.give_back();
  move(c, state);
  set_due(c, now + c.time_wait);
}

}  // namespace urnic::ib_cm
