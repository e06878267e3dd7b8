#include "ib_cm/sidr.h"

#include <algorithm>

#include "ib_cm/judge_req.h"

namespace urnic::ib_cm {
namespace {

constexpr std::uint16_t kDefaultPkey = 0xffff, kPartition = 0x7fff;
constexpr std::uint64_t kSidrExchange = 3;

}  // namespace

// ---- the active side

Outcome<Handle, Refusal> Sidr::resolve(const Resolve& what, ByteView data, Instant now) {
  if (what.addresses.local.is_v6() != what.addresses.remote.is_v6() || what.response_timeout > 31 ||
      what.max_cm_retries > 15) {
    return fail(Refusal::BadValue);
  }
  const bool ip = is_ip_service(what.service);
  if (data.size() > (ip ? kSidrReqConsumer : kSidrReqPrivate)) return fail(Refusal::TooLong);
  Connection* const c = core_.open(State::SidrSent, what.addresses);
  if (c == nullptr) return fail(Refusal::Full);
  c->active = true;
  c->service = what.service;
  c->transaction = core_.transaction(*c, kSidrExchange);
  c->interval = core_.wait_of(what.response_timeout);
  c->retries = what.max_cm_retries;

  std::array<std::uint8_t, kSidrReqPrivate> all{};
  const std::size_t n = ip ? kIpHeaderBytes : 0;
  if (ip)
    write_ip_header({what.addresses.local, what.addresses.remote, what.source_port}, all.data());
  std::copy(data.begin(), data.end(), all.begin() + static_cast<std::ptrdiff_t>(n));
  const SidrReq r{c->id, kDefaultPkey, what.service, {all.data(), n + data.size()}};
  core_.send_first(*c, write(c->transaction, r));
  core_.await_answer(*c, now);
  return c->id;
}

void Sidr::take_rep(const AddressPair& addresses, const MadHeader& h, const SidrRep& r) {
  Connection* const c = core_.table.find(r.request_id);
  if (c == nullptr) return core_.counters.count(Drop::Unknown);
  if (c->addresses != addresses || h.transaction != c->transaction) {
    return core_.counters.count(Drop::Stranger);
  }
  if (c->state != State::SidrSent) return core_.counters.count(Drop::Unexpected);
  Event& e = core_.tell(*c, EventKind::Resolved);
  e.service = {r.status, r.qpn, r.qkey};
  e.data = PrivateData(r.private_data);
  core_.release(*c);
}

// ---- the passive side

// AC-2: a service request is no connection, so connection limits do not apply.
bool Sidr::is_denied(const Listeners::Found& l, const AddressPair& addresses, Instant now) {
  const bool denied =
      l.what.gate != nullptr && l.what.gate->judge(addresses.remote, now) == GateVerdict::Denied;
  core_.counters.denied += denied;
  return denied;
}

void Sidr::take_req(const AddressPair& addresses, const MadHeader& h, const SidrReq& r,
                    Instant now) {
  if (Connection* const c = core_.table.by_request_id(addresses.remote, r.request_id);
      c != nullptr) {
    if (c->addresses != addresses || c->transaction != h.transaction || c->service != r.service) {
      return core_.counters.count(Drop::Stranger);
    }
    if (c->state == State::SidrAnswered) return core_.answer_again(*c);
    return core_.counters.count(Drop::Unexpected);  // the owner has not answered yet
  }
  Listeners::Found* const l = core_.listeners.find(r.service, addresses.local);
  if (l == nullptr || is_denied(*l, addresses, now)) {
    return refuse(addresses, h, r, SidrStatus::NoSuchService);
  }
  if ((r.pkey & kPartition) != kPartition ||
      !addresses_agree(r.service, r.private_data, addresses)) {
    return refuse(addresses, h, r, SidrStatus::Rejected);
  }
  if (!core_.room_for(*l, addresses.remote, now)) return core_.counters.count(Drop::Backlog);
  begin(*l, addresses, h, r, now);
}

void Sidr::begin(Listeners::Found& l, const AddressPair& addresses, const MadHeader& h,
                 const SidrReq& r, Instant now) {
  Connection* const c = core_.open(State::SidrReceived, addresses);
  if (c == nullptr) return core_.counters.count(Drop::Full);
  c->remote_id = r.request_id;
  c->transaction = h.transaction;
  c->service = r.service;
  c->listener = l.id;
  if (!core_.take_room(*c, l, now) || !core_.table.name(c)) {
    core_.release(*c);
    core_.events.pop_back();  // the Released event: the connection was never reported
    return core_.counters.count(Drop::Full);
  }
  core_.set_due(*c, now + core_.options.most_wait);  // no peer waits longer

  core_.report_request(*c, EventKind::ServiceRequest, r.private_data);
}

void Sidr::refuse(const AddressPair& addresses, const MadHeader& h, const SidrReq& r,
                  SidrStatus status) {
  SidrRep rep;
  rep.request_id = r.request_id;
  rep.status = status;
  rep.service = r.service;
  core_.send(addresses, write(h.transaction, rep));
}

Refusal Sidr::answer(Handle handle, const Service& s, ByteView data, Instant now) {
  Connection* const c = core_.table.find(handle);
  if (c == nullptr) return Refusal::NoSuchHandle;
  if (c->state != State::SidrReceived) return Refusal::WrongState;
  if (data.size() > kSidrRepPrivate) return Refusal::TooLong;
  if (s.qpn >= 1u << 24) return Refusal::BadValue;
  SidrRep rep;
  rep.request_id = c->remote_id;
  rep.status = s.status;
  rep.service = c->service;
  if (s.status == SidrStatus::Valid) {
    rep.qpn = s.qpn;
    rep.qkey = s.qkey;
  }
  rep.private_data = data;
  core_.send_first(*c, write(c->transaction, rep));
  core_.hold_back(*c, State::SidrAnswered, now);
  return Refusal::None;
}

Refusal Sidr::abandon(Handle handle, Instant now) {
  Connection* const c = core_.table.find(handle);
  if (c == nullptr) return Refusal::NoSuchHandle;
  c->orphan = true;
  if (c->state == State::SidrReceived) {
    return answer(handle, {SidrStatus::Rejected, 0, 0}, {}, now);
  }
  if (c->state == State::SidrSent) core_.release(*c);
  return Refusal::None;
}

void Sidr::on_time(Connection& c, Instant now) {
  if (c.state == State::SidrSent) {
    if (core_.repeat(c, now)) return;
    core_.tell(c, EventKind::Unreachable);
  }
  core_.release(c);
}

}  // namespace urnic::ib_cm
