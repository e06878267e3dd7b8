// The passive side of a connection.
#include <algorithm>
#include <utility>

#include "ib_cm/connections.h"
#include "ib_cm/consent.h"
#include "ib_cm/judge_req.h"

namespace urnic::ib_cm {
namespace {

QpValues values_of(const Req& r) {
  return {r.qpn, r.psn, r.responder_resources, r.initiator_depth, r.rnr_retry, r.srq, r.credits};
}
PathValues path_of(const Req& r) {
  PathValues p;
  p.mtu = path_mtu_of(r.path_mtu).value_or(ib::PathMtu::k256);
  p.ack_timeout = r.primary.ack_timeout;
  p.retry_count = r.retry_count;
  p.traffic_class = r.primary.traffic_class;
  p.hop_limit = r.primary.hop_limit;
  p.flow_label = r.primary.flow_label;
  return p;
}

}  // namespace

void Connections::take_req(const AddressPair& addresses, const MadHeader& h, const Req& r,
                           Instant now) {
  Connection* const known = core_.table.by_remote_id(addresses.remote, r.local_id);
  const bool repeated = known != nullptr && !known->active && known->addresses == addresses &&
                        known->transaction == h.transaction && known->remote_qpn == r.qpn &&
                        known->remote_psn == r.psn;
  if (repeated) return repeated_req(*known, addresses, h, r);
  if (known != nullptr) end_stale(*known, now);
  // Only looked up now: the end of a resting connection may have freed it.
  Connection* const of_qpn = core_.table.by_remote_qpn(addresses.remote, r.qpn);
  if (of_qpn != nullptr && of_qpn != known) end_stale(*of_qpn, now);
  if (known == nullptr && of_qpn == nullptr) return new_req(addresses, h, r, now);
  ++core_.counters.stale;
  refuse_req(addresses, h, r, Reason::Stale);
}

// A request that was answered gets the same answer.
void Connections::repeated_req(Connection& c, const AddressPair& addresses, const MadHeader& h,
                               const Req& r) {
  switch (c.state) {
    case State::ReqReceived:
      return ask_for_time(c, Which::Req);
    case State::RepSent:
    case State::Refused:
      return core_.answer_again(c);
    case State::TimeWait:
      ++core_.counters.stale;
      return refuse_req(addresses, h, r, Reason::Stale);
    default:
      return core_.counters.count(Drop::Unexpected);
  }
}

// A request that is refused here leaves no state.
void Connections::new_req(const AddressPair& addresses, const MadHeader& h, const Req& r,
                          Instant now) {
  Listeners::Found* const l = core_.listeners.find(r.service, addresses.local);
  if (l == nullptr || !may_pass(*l, addresses, r, now)) {
    return refuse_req(addresses, h, r, Reason::NoSuchService);
  }
  const Reason reason = judge_req(r, addresses, core_.options.most_mtu(addresses));
  if (reason != Reason::None) return refuse_req(addresses, h, r, reason);
  if (r.transport != l->what.transport) return refuse_req(addresses, h, r, Reason::Transport);
  if (r.local_id == 0) return core_.counters.count(Drop::Unexpected);
  if (!core_.room_for(*l, addresses.remote, now)) return core_.counters.count(Drop::Backlog);
  begin_passive(*l, addresses, h, r, now);
}

// AC-2, AC-3: a peer that the gate refuses gets the answer of a port without a listener. The source
// address of a REQ may be forged.
bool Connections::may_pass(const Listeners::Found& l, const AddressPair& addresses, const Req& r,
                           Instant now) {
  if (l.what.gate == nullptr) return true;
  const GateVerdict verdict = l.what.gate->judge(addresses.remote, now);
  if (verdict == GateVerdict::Admitted) return true;
  ++(verdict == GateVerdict::Denied ? core_.counters.denied : core_.counters.over_limit);
  core_.report_turned_away(l.id, addresses, r, verdict);
  return false;
}

void Connections::begin_passive(Listeners::Found& l, const AddressPair& addresses,
                                const MadHeader& h, const Req& r, Instant now) {
  Admission place;
  if (l.what.gate != nullptr) {
    l.what.gate->enter(addresses.remote, now);  // may_pass() has found room
    place = Admission(l.what.gate, addresses.remote);
  }
  Connection* const c = core_.open(State::ReqReceived, addresses);
  if (c == nullptr) return core_.counters.count(Drop::Full);
  c->admission = std::move(place);
  c->remote_id = r.local_id;
  c->remote_qpn = r.qpn;
  c->remote_psn = r.psn;
  c->transaction = h.transaction;
  c->transport = r.transport;
  c->service = r.service;
  c->offered = values_of(r);
  c->path = path_of(r);
  c->alternate = r.alternate.any();
  c->extensions =
      static_cast<std::uint8_t>(offered_by(r.vendor_id, h.modifier) & core_.options.extensions);
  c->interval = core_.wait_of(r.local_timeout);
  c->retries = r.max_cm_retries;
  while (c->retries != 0 && c->interval * (c->retries + 1) > core_.options.most_wait) --c->retries;
  c->time_wait = core_.wait_of(r.primary.ack_timeout);
  c->listener = l.id;
  if (!core_.take_room(*c, l, now) || !core_.table.name(c)) {
    core_.release(*c);
    core_.events.pop_back();  // the Released event: the connection was never reported
    return core_.counters.count(Drop::Full);
  }
  core_.set_due(*c, now + Duration::ns(core_.wait_of(r.remote_timeout).count_ns() / 2));

  Event& e = core_.report_request(*c, EventKind::ConnectRequest, r.private_data);
  e.qp = c->offered;
  e.path = c->path;
  e.extensions = c->extensions;
}

void Connections::refuse_req(const AddressPair& addresses, const MadHeader& h, const Req& r,
                             Reason reason) {
  Rej rej;
  rej.remote_id = r.local_id;
  rej.which = Which::Req;
  rej.reason = reason;
  core_.send(addresses, write(h.transaction, rej));
}

// A peer that uses an id or a queue pair for a new connection has forgotten the old one.
void Connections::end_stale(Connection& c, Instant now) {
  switch (c.state) {
    case State::ReqReceived:
      core_.tell(c, EventKind::Rejected, Reason::Stale);
      return core_.release(c);
    case State::RepSent:
    case State::RepReceived:
      core_.tell(c, EventKind::Rejected, Reason::Stale);
      return core_.hold_back(c, State::TimeWait, now);
    case State::Established:
      core_.tell(c, EventKind::Disconnected, Reason::Stale);
      c.told = true;
      return begin_disconnect(c, {}, now);
    default:
      return;
  }
}

Refusal Connections::accept(Handle handle, const QpValues& qp, ByteView data, Instant now,
                            std::uint8_t extensions) {
  Connection* const c = core_.table.find(handle);
  if (c == nullptr) return Refusal::NoSuchHandle;
  if (c->state != State::ReqReceived) return Refusal::WrongState;
  if (data.size() > kRepPrivate) return Refusal::TooLong;
  if (is_reserved(qp.qpn) || qp.qpn >= 1u << 24 || qp.rnr_retry > 7) return Refusal::BadValue;
  c->qpn = qp.qpn;
  c->extensions &= extensions;
  Rep r;
  r.local_id = c->id;
  r.remote_id = c->remote_id;
  (c->transport == Transport::Extended ? r.eecn : r.qpn) = qp.qpn;
  r.vendor_id = c->extensions == 0 ? 0 : kVendorId;
  r.psn = qp.psn;
  r.responder_resources = std::min(qp.responder_resources, c->offered.initiator_depth);
  r.initiator_depth = std::min(qp.initiator_depth, c->offered.responder_resources);
  r.ack_delay = core_.options.ack_delay;
  r.failover = c->alternate ? 1 : 0;
  r.credits = qp.credits;
  r.rnr_retry = qp.rnr_retry;
  r.srq = qp.srq;
  r.ca_guid = core_.options.ca_guid;
  r.private_data = data;
  core_.move(*c, State::RepSent);
  core_.send_first(*c, write(c->transaction, r, consent_of(c->extensions)));
  core_.await_answer(*c, now);
  return Refusal::None;
}

void Connections::take_rtu(const AddressPair& addresses, const Rtu& r) {
  Connection* const c = find(addresses, r.local_id, r.remote_id);
  if (c == nullptr) return;
  if (c->state == State::Refused && !c->active) return core_.answer_again(*c);  // too late
  if (c->state != State::RepSent) return core_.counters.count(Drop::Unexpected);
  core_.move(*c, State::Established);
  core_.set_due(*c, Instant::never());
  core_.tell(*c, EventKind::Established).data = PrivateData(r.private_data);
}

Refusal Connections::established(Handle handle) {
  core_.make_room();
  Connection* const c = core_.table.find(handle);
  if (c == nullptr) return Refusal::NoSuchHandle;
  if (c->state != State::RepSent) return Refusal::WrongState;
  core_.move(*c, State::Established);
  core_.set_due(*c, Instant::never());
  core_.tell(*c, EventKind::Established);
  return Refusal::None;
}

}  // namespace urnic::ib_cm
