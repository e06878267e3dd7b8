#include "ib_cm/core.h"

#include <new>

#include "ib_cm/ip_service.h"

namespace urnic::ib_cm {
namespace {

// True if it was begun by the peer, and nothing has arrived yet that an address forger could not
// send.
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
constexpr Duration kLeastRest = Duration::s(1);

bool waits_for_owner(const Connection& c) {
  return c.state == State::ReqReceived || c.state == State::SidrReceived;
}

}  // namespace

Connection* Core::open(State state, const AddressPair& addresses) {
  Connection* const c = table.open();
  if (c == nullptr) return nullptr;
  try {
    deadlines.reserve(table.size());
  } catch (const std::bad_alloc&) {
    table.close(c);
    return nullptr;
  }
  c->addresses = addresses;
  c->state = state;
  c->time_wait = bounded(time_of(options.packet_life_time) + time_of(options.packet_life_time) +
                         time_of(options.ack_delay));
  return c;
}

bool Core::room_for(const Listeners::Found& l, const IpAddress& peer, Instant now) {
  if (l.waiting->judge(peer, now) != GateVerdict::Admitted) return false;
  const GateVerdict verdict = half_open->judge(peer, now);
  if (verdict == GateVerdict::Admitted) return true;
  Connection* const oldest =
      verdict == GateVerdict::PeerFull ? answered.oldest_of(peer) : answered.oldest();
  // For a while its REJ may have to be repeated.
  if (oldest == nullptr || now - oldest->rest.since < kLeastRest || !give_way(*oldest))
    return false;
  return half_open->judge(peer, now) == GateVerdict::Admitted;
}

bool Core::take_room(Connection& c, const Listeners::Found& l, Instant now) {
  const IpAddress& peer = c.addresses.remote;
  try {
    if (l.waiting->enter(peer, now) != GateVerdict::Admitted) return false;
    c.waits = Admission(l.waiting, peer);
    if (half_open->enter(peer, now) != GateVerdict::Admitted) return false;
    c.half_open = Admission(half_open, peer);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

bool Core::give_way(Connection& c) {
  try {
    make_room();
  } catch (const std::bad_alloc&) {
    return false;
  }
  release(c);
  return true;
}

void Core::move(Connection& c, State to) {
  c.state = to;
  if (!is_half_open(c)) c.half_open.give_back();
  if (!waits_for_owner(c)) c.waits.give_back();
}

void Core::release(Connection& c) {
  if (c.rest.in != nullptr) c.rest.in->leave(c);
  Event& e = events.emplace_back();
  e.kind = EventKind::Released;
  e.handle = c.id;
  e.addresses = c.addresses;
  deadlines.set(c, Instant::never());
  table.close(&c);
}

void Core::send(const AddressPair& addresses, const Mad& mad) {
  if (outgoing.size() >= kMostWaiting) {
    ++counters.unsent;
    return;
  }
  try {
    outgoing.push_back({addresses, mad});
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
  e.addresses = c.addresses;
  e.reason = reason;
  e.transport = c.transport;
  return e;
}

Event& Core::report_request(Connection& c, EventKind kind, ByteView data) {
  Event& e = tell(c, kind);
  e.listener = c.listener;
  e.wanted = c.service;
  if (is_ip_service(c.service)) {
    e.source_port = read_ip_header(data)->source_port;
    data = data.subspan(kIpHeaderBytes);
  }
  e.data = PrivateData(data);
  return e;
}

void Core::report_turned_away(ListenerId listener, const AddressPair& addresses, const Req& r,
                              GateVerdict verdict) {
  Event& e = events.emplace_back();
  e = Event();
  e.kind = EventKind::TurnedAway;
  e.listener = listener;
  e.addresses = addresses;
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
  send(c.addresses, c.last);
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
  c.rest.since = now;
  if (is_half_open(c)) return answered.enter(c);
  ended.enter(c);
  if (ended.of(c.addresses.remote) > resting_.most_of_peer) {
    give_way(*ended.oldest_of(c.addresses.remote));
  } else if (ended.size() > resting_.most) {
    give_way(*ended.oldest());
  }
}

}  // namespace urnic::ib_cm
