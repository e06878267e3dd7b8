// The active side of a connection.
#include <algorithm>

#include "ib_cm/connections.h"
#include "ib_cm/consent.h"
#include "ib_cm/judge_req.h"

namespace urnic::ib_cm {
namespace {

constexpr std::uint16_t kNoLid = 0xffff;
constexpr std::uint16_t kDefaultPkey = 0xffff;
constexpr std::uint64_t kReqExchange = 1;

// True if every value fits its field.
bool values_fit(const Connect& what) {
  return what.addresses.local.is_v6() == what.addresses.remote.is_v6() &&
         !is_reserved(what.qp.qpn) && what.qp.qpn < 1u << 24 && what.qp.rnr_retry < 8 &&
         what.path.retry_count < 8 && what.path.ack_timeout < 32 &&
         what.path.flow_label < 1u << 20 && what.response_timeout < 32 &&
         what.max_cm_retries < 16 && what.transport != Transport::Rd;
}

}  // namespace

Outcome<Handle, Refusal> Connections::connect(const Connect& what, ByteView data, Instant now) {
  if (!values_fit(what)) return fail(Refusal::BadValue);
  if (data.size() > (is_ip_service(what.service) ? kReqConsumer : kReqPrivate)) {
    return fail(Refusal::TooLong);
  }
  Connection* const c = core_.open(State::ReqSent, what.addresses);
  if (c == nullptr) return fail(Refusal::Full);
  c->active = true;
  c->transport = what.transport;
  c->qpn = what.qp.qpn;
  c->service = what.service;
  c->offered = what.qp;
  c->path = what.path;
  c->extensions = what.extensions;
  c->transaction = core_.transaction(*c, kReqExchange);
  c->interval = core_.wait_of(what.response_timeout);
  c->retries = what.max_cm_retries;

  std::array<std::uint8_t, kReqPrivate> all{};
  std::size_t n = 0;
  if (is_ip_service(what.service)) {
    write_ip_header({what.addresses.local, what.addresses.remote, what.source_port}, all.data());
    n = kIpHeaderBytes;
  }
  std::copy(data.begin(), data.end(), all.begin() + static_cast<std::ptrdiff_t>(n));
  core_.send_first(*c, write(c->transaction, make_req(*c, what, {all.data(), n + data.size()}),
                             offer_of(c->extensions)));
  core_.await_answer(*c, now);
  return c->id;
}

Req Connections::make_req(const Connection& c, const Connect& what, ByteView data) const {
  Req r;
  r.local_id = c.id;
  r.vendor_id = c.extensions == 0 ? 0 : kVendorId;
  r.service = what.service;
  r.ca_guid = core_.options.ca_guid;
  r.qpn = what.qp.qpn;
  r.responder_resources = what.qp.responder_resources;
  r.initiator_depth = what.qp.initiator_depth;
  r.remote_timeout = r.local_timeout = what.response_timeout;
  r.transport = what.transport;
  r.extended = what.transport == Transport::Extended ? kExtendedXrc : 0;
  r.credits = what.qp.credits;
  r.psn = what.qp.psn;
  r.retry_count = what.path.retry_count;
  r.pkey = kDefaultPkey;
  r.path_mtu = code_of(what.path.mtu);
  r.rnr_retry = what.qp.rnr_retry;
  r.max_cm_retries = what.max_cm_retries;
  r.srq = what.qp.srq;
  r.primary.local_lid = r.primary.remote_lid = kNoLid;
  r.primary.local = gid_of(what.addresses.local);
  r.primary.remote = gid_of(what.addresses.remote);
  r.primary.flow_label = what.path.flow_label;
  r.primary.traffic_class = what.path.traffic_class;
  r.primary.hop_limit = what.path.hop_limit;
  r.primary.ack_timeout = what.path.ack_timeout;
  r.private_data = data;
  return r;
}

// An attacker that has not seen the REQ does not know its transaction id.
void Connections::take_rep(const AddressPair& addresses, const MadHeader& h, const Rep& r,
                           Instant now) {
  Connection* const c = core_.table.find(r.remote_id);
  if (c == nullptr) return core_.counters.count(Drop::Unknown);
  if (c->addresses != addresses || h.transaction != c->transaction ||
      (c->remote_id != 0 && c->remote_id != r.local_id)) {
    return core_.counters.count(Drop::Stranger);
  }
  if (!c->active) return core_.counters.count(Drop::Unexpected);
  switch (c->state) {
    case State::ReqSent:
      return rep_accepted(*c, h, r, now);
    case State::RepReceived:
      return ask_for_time(*c, Which::Rep);
    case State::Established:  // the RTU was lost
    case State::Refused:
      return core_.answer_again(*c);
    default:
      return core_.counters.count(Drop::Unexpected);
  }
}

void Connections::rep_accepted(Connection& c, const MadHeader& h, const Rep& r, Instant now) {
  const std::uint32_t qpn = c.transport == Transport::Extended ? r.eecn : r.qpn;
  if (r.local_id == 0 || is_reserved(qpn)) {
    core_.tell(c, EventKind::Rejected, Reason::Unsupported);
    return refuse(c, Which::Rep, Reason::Unsupported, {}, now);
  }
  for (Connection* old : {core_.table.by_remote_id(c.addresses.remote, r.local_id),
                          core_.table.by_remote_qpn(c.addresses.remote, qpn)}) {
    if (old == nullptr) continue;
    ++core_.counters.stale;
    end_stale(*old, now);
    core_.tell(c, EventKind::Rejected, Reason::Stale);
    c.remote_id = r.local_id;
    return refuse(c, Which::Rep, Reason::Stale, {}, now);
  }
  c.remote_id = r.local_id;
  c.remote_qpn = qpn;
  if (!core_.table.name(&c)) {
    c.remote_id = c.remote_qpn = 0;  // out of memory: the peer tries again
    return core_.counters.count(Drop::Full);
  }
  const Duration life = time_of(core_.options.packet_life_time);
  c.time_wait = core_.bounded(life + life + time_of(r.ack_delay));
  c.remote_psn = r.psn;
  core_.move(c, State::RepReceived);
  // The peer waits for the RTU as long as the REQ says. Half of that is for the owner.
  core_.set_due(c, now + Duration::ns(c.interval.count_ns() / 2));
  Event& e = core_.tell(c, EventKind::Accepted);
  e.qp = {qpn,
          r.psn,
          std::min(r.responder_resources, c.offered.initiator_depth),
          std::min(r.initiator_depth, c.offered.responder_resources),
          r.rnr_retry,
          r.srq,
          r.credits};
  e.path = c.path;
  e.path.ack_timeout = ack_timeout_of(core_.options.packet_life_time, r.ack_delay);
  e.extensions = agreed_by(r.vendor_id, h.modifier, c.extensions);
  e.data = PrivateData(r.private_data);
}

Refusal Connections::confirm(Handle handle, ByteView data) {
  Connection* const c = core_.table.find(handle);
  if (c == nullptr) return Refusal::NoSuchHandle;
  if (c->state != State::RepReceived) return Refusal::WrongState;
  if (data.size() > kRtuPrivate) return Refusal::TooLong;
  core_.move(*c, State::Established);
  core_.set_due(*c, Instant::never());
  core_.send_first(*c, write_rtu(c->transaction, {c->id, c->remote_id, data}));
  return Refusal::None;
}

// The owner needs time: an MRA tells the peer that we are there (IB-140).
void Connections::ask_for_time(Connection& c, Which which) {
  Mra m;
  m.local_id = c.id;
  m.remote_id = c.remote_id;
  m.which = which;
  m.service_timeout = core_.options.service_timeout;
  core_.send(c.addresses, write(c.transaction, m));
}

// The peer needs more time for its answer.
void Connections::take_mra(const AddressPair& addresses, const MadHeader& h, const Mra& m,
                           Instant now) {
  Connection* const c = core_.table.find(m.remote_id);
  if (c == nullptr) return core_.counters.count(Drop::Unknown);
  const bool req = c->state == State::ReqSent && m.which == Which::Req;
  const bool rep = c->state == State::RepSent && m.which == Which::Rep;
  if (c->addresses != addresses || h.transaction != c->transaction ||
      (c->remote_id != 0 && c->remote_id != m.local_id)) {
    return core_.counters.count(Drop::Stranger);
  }
  if ((!req && !rep) || !core_.lengthen(*c, m.service_timeout, now)) {
    return core_.counters.count(Drop::Unexpected);
  }
}

}  // namespace urnic::ib_cm
