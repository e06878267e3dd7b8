// The ends of connections, and timers.
#include "ib_cm/connections.h"

namespace urnic::ib_cm {
namespace {

constexpr std::uint64_t kDreqExchange = 2;

}  // namespace

// The connection for a message with both ids; null, after counting: no such connection.
Connection* Connections::find(const AddressPair& addresses, std::uint32_t local_id,
                              std::uint32_t remote_id) {
  Connection* const c = core_.table.find(remote_id);
  if (c == nullptr) {
    core_.counters.count(Drop::Unknown);
    return nullptr;
  }
  if (c->addresses != addresses || c->remote_id != local_id || c->state >= State::SidrSent) {
    core_.counters.count(Drop::Stranger);
    return nullptr;
  }
  return c;
}

// ---- refusals

Refusal Connections::reject(Handle handle, Reason reason, ByteView data, Instant now) {
  Connection* const c = core_.table.find(handle);
  if (c == nullptr) return Refusal::NoSuchHandle;
  if (c->state != State::ReqReceived && c->state != State::RepReceived) return Refusal::WrongState;
  if (data.size() > kRejPrivate) return Refusal::TooLong;
  refuse(*c, c->state == State::ReqReceived ? Which::Req : Which::Rep, reason, data, now);
  return Refusal::None;
}

// The REJ may be lost, and the peer repeat its message.
void Connections::refuse(Connection& c, Which which, Reason reason, ByteView data, Instant now) {
  std::array<std::uint8_t, 8> guid;
  store_be64(guid.data(), core_.options.ca_guid);
  Rej r;
  r.local_id = c.id;
  r.remote_id = c.remote_id;
  r.which = which;
  r.reason = reason;
  if (reason == Reason::Timeout) r.information = guid;
  r.private_data = data;
  core_.send_first(c, write(c.transaction, r));
  core_.hold_back(c, State::Refused, now);
  // The peer may use that queue pair again at once, since no connection has begun.
  if (which == Which::Req) core_.table.free_remote_qpn(c);
}

// A peer that gives up on an unanswered REQ does not know our id.
void Connections::take_rej(const AddressPair& addresses, const MadHeader& h, const Rej& r,
                           Instant now) {
  Connection* const c = r.remote_id == 0 ? core_.table.by_remote_id(addresses.remote, r.local_id)
                                         : core_.table.find(r.remote_id);
  if (c == nullptr) return core_.counters.count(Drop::Unknown);
  const bool first = c->state == State::ReqSent;
  if (c->addresses != addresses ||
      (first ? h.transaction != c->transaction : r.local_id != c->remote_id)) {
    return core_.counters.count(Drop::Stranger);
  }
  switch (c->state) {
    case State::ReqSent:
    case State::ReqReceived:
      core_.tell(*c, EventKind::Rejected, r.reason).data = PrivateData(r.private_data);
      return core_.release(*c);
    case State::RepReceived:
    case State::RepSent:
      core_.tell(*c, EventKind::Rejected, r.reason).data = PrivateData(r.private_data);
      return core_.hold_back(*c, State::TimeWait, now);
    case State::Established:
    case State::DreqSent:
      return ended(*c, r.reason, r.private_data, now);
    default:
      return core_.counters.count(Drop::Unexpected);
  }
}

// ---- disconnection

Refusal Connections::disconnect(Handle handle, ByteView data, Instant now) {
  Connection* const c = core_.table.find(handle);
  if (c == nullptr) return Refusal::NoSuchHandle;
  if (c->state != State::Established) return Refusal::WrongState;
  if (data.size() > kDreqPrivate) return Refusal::TooLong;
  begin_disconnect(*c, data, now);
  return Refusal::None;
}

void Connections::begin_disconnect(Connection& c, ByteView data, Instant now) {
  c.admission.give_back();  // whether the peer still exists or not
  core_.move(c, State::DreqSent);
  c.transaction = core_.transaction(c, kDreqExchange);
  core_.send_first(c, write(c.transaction, Dreq{c.id, c.remote_id, c.remote_qpn, data}));
  core_.await_answer(c, now);
}

void Connections::ended(Connection& c, Reason reason, ByteView data, Instant now) {
  if (!c.told) core_.tell(c, EventKind::Disconnected, reason).data = PrivateData(data);
  c.told = true;
  core_.hold_back(c, State::TimeWait, now);
}

// A DREQ for an unknown connection is answered by a DREP, too; otherwise the peer would repeat it.
void Connections::take_dreq(const AddressPair& addresses, const MadHeader& h, const Dreq& d,
                            Instant now) {
  const Mad drep = write_drep(h.transaction, {d.remote_id, d.local_id, {}});
  if (core_.table.find(d.remote_id) == nullptr) {
    core_.counters.count(Drop::Unknown);
    return core_.send(addresses, drep);
  }
  Connection* const c = find(addresses, d.local_id, d.remote_id);
  if (c == nullptr) return;
  if (d.remote_qpn != c->qpn) return core_.counters.count(Drop::Stranger);
  switch (c->state) {
    case State::RepReceived:
    case State::RepSent:  // its RTU was lost
    case State::Established:
    case State::DreqSent:  // both ends at once
      core_.send(addresses, drep);
      return ended(*c, Reason::None, d.private_data, now);
    case State::TimeWait:
    case State::Refused:  // it considered the connection established
      ++core_.counters.answered;
      return core_.send(addresses, drep);
    default:
      return core_.counters.count(Drop::Unexpected);
  }
}

void Connections::take_drep(const AddressPair& addresses, const MadHeader& h, const Drep& d,
                            Instant now) {
  Connection* const c = find(addresses, d.local_id, d.remote_id);
  if (c == nullptr) return;
  if (c->state != State::DreqSent || h.transaction != c->transaction) {
    return core_.counters.count(Drop::Unexpected);
  }
  ended(*c, Reason::None, d.private_data, now);
}

// There is only one path (IB-75).
void Connections::take_lap(const AddressPair& addresses, const MadHeader& h, const Lap& l) {
  Connection* const c = find(addresses, l.local_id, l.remote_id);
  if (c == nullptr) return;
  if (c->state != State::Established) return core_.counters.count(Drop::Unexpected);
  core_.send(addresses, write(h.transaction, Apr{c->id, c->remote_id, kAprUnsupported}));
}

Refusal Connections::abandon(Handle handle, Instant now) {
  Connection* const c = core_.table.find(handle);
  if (c == nullptr) return Refusal::NoSuchHandle;
  c->orphan = true;
  switch (c->state) {
    case State::ReqSent:
      refuse(*c, Which::Other, Reason::Timeout, {}, now);
      break;
    case State::ReqReceived:
      refuse(*c, Which::Req, Reason::Consumer, {}, now);
      break;
    case State::RepReceived:
      refuse(*c, Which::Rep, Reason::Consumer, {}, now);
      break;
    case State::RepSent:
      refuse(*c, Which::Other, Reason::Consumer, {}, now);
      break;
    case State::Established:
      begin_disconnect(*c, {}, now);
      break;
    default:
      break;
  }
  return Refusal::None;
}

void Connections::abandon_requests(Instant now) {
  core_.table.for_each([&](Connection& c) {
    if (c.state == State::ReqReceived) abandon(c.id, now);
  });
}

// ---- time

void Connections::on_time(Connection& c, Instant now) {
  switch (c.state) {
    case State::ReqSent:
    case State::RepSent:
    case State::DreqSent:
      if (!core_.repeat(c, now)) unanswered(c, now);
      return;
    case State::ReqReceived:  // only once; then whenever the peer repeats its REQ
      return ask_for_time(c, Which::Req);
    case State::RepReceived:
      return ask_for_time(c, Which::Rep);
    case State::TimeWait:
    case State::Refused:
      return core_.release(c);
    default:
      return;
  }
}

// All repetitions are used up.
void Connections::unanswered(Connection& c, Instant now) {
  if (c.state == State::DreqSent) return ended(c, Reason::Timeout, {}, now);
  core_.tell(c, EventKind::Unreachable);
  refuse(c, Which::Other, Reason::Timeout, {}, now);
}

}  // namespace urnic::ib_cm
