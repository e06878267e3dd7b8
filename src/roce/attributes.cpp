#include "roce/attributes.h"

#include <string>
#include <utility>

#include "roce/context.h"
#include "verbs/control_path.h"

namespace urnic::roce {
namespace {

using verbs::QpAttribute;
using verbs::QpState;

struct Name {
  std::uint32_t bit;
  const char* name;
};
constexpr Name kNames[] = {
    {verbs::kQpAttrAccess, "access"},
    {verbs::kQpAttrQkey, "qkey"},
    {verbs::kQpAttrDestQpn, "dest_qp"},
    {verbs::kQpAttrAv, "path"},
    {verbs::kQpAttrPathMtu, "path_mtu"},
    {verbs::kQpAttrRqPsn, "rq_psn"},
    {verbs::kQpAttrMaxDestRdAtomic, "responder_depth"},
    {verbs::kQpAttrMinRnrTimer, "min_rnr_timer"},
    {verbs::kQpAttrSqPsn, "sq_psn"},
    {verbs::kQpAttrTimeout, "ack_timeout"},
    {verbs::kQpAttrRetryCount, "retry_count"},
    {verbs::kQpAttrRnrRetry, "rnr_retry"},
    {verbs::kQpAttrMaxRdAtomic, "initiator_depth"},
    {verbs::kQpAttrSqdNotify, "tell_drained"},
    {verbs::kQpAttrPort, "port"},
    {verbs::kQpAttrPkeyIndex, "pkey_index"},
};

std::string names_of(std::uint32_t mask) {
  std::string out;
  for (const Name& n : kNames) {
    if ((mask & n.bit) != 0) out += (out.empty() ? "" : ", ") + std::string(n.name);
  }
  return out;
}

Error bad(std::string message) {
  return {Errc::invalid_argument, std::move(message)};
}

// Copies attributes that are set into a change, and remembers the first invalid value.
class Taker {
 public:
  explicit Taker(QpChange* change) : change_(*change) {}

  void number(const std::optional<std::uint32_t>& given, const char* name, std::uint32_t least,
              std::uint32_t most, std::uint32_t bit, std::uint32_t* to) {
    if (!given) return;
    change_.mask |= bit;
    *to = *given;
    if (*given >= least && *given <= most) return;
    refuse(std::string(name) + ": must be " +
           (least == most ? std::to_string(least)
                          : "between " + std::to_string(least) + " and " + std::to_string(most)));
  }
  void refuse(std::string why) {
    if (!wrong_) wrong_ = bad(std::move(why));
  }
  const std::optional<Error>& wrong() const { return wrong_; }

 private:
  QpChange& change_;
  std::optional<Error> wrong_;
};

void take_numbers(const QpAttributes& a, Taker* take, QpChange* c) {
  constexpr std::uint32_t k24Bits = 0xffffff, kCode = 31, kDepth = 16;
  take->number(a.dest_qp, "dest_qp", 0, k24Bits, verbs::kQpAttrDestQpn, &c->dest_qp);
  take->number(a.rq_psn, "rq_psn", 0, k24Bits, verbs::kQpAttrRqPsn, &c->rq_psn);
  take->number(a.sq_psn, "sq_psn", 0, k24Bits, verbs::kQpAttrSqPsn, &c->sq_psn);
  take->number(a.responder_depth, "responder_depth", 0, kDepth, verbs::kQpAttrMaxDestRdAtomic,
               &c->responder_depth);
  take->number(a.initiator_depth, "initiator_depth", 0, kDepth, verbs::kQpAttrMaxRdAtomic,
               &c->initiator_depth);
  take->number(a.min_rnr_timer, "min_rnr_timer", 0, kCode, verbs::kQpAttrMinRnrTimer,
               &c->min_rnr_timer);
  take->number(a.ack_timeout, "ack_timeout", 0, kCode, verbs::kQpAttrTimeout, &c->ack_timeout);
  take->number(a.retry_count, "retry_count", 0, 7, verbs::kQpAttrRetryCount, &c->retry_count);
  take->number(a.rnr_retry, "rnr_retry", 0, 7, verbs::kQpAttrRnrRetry, &c->rnr_retry);
  take->number(a.port, "port", 1, 1, verbs::kQpAttrPort, &c->port);
  take->number(a.pkey_index, "pkey_index", 0, 0, verbs::kQpAttrPkeyIndex, &c->pkey_index);
}

void take_access(const QpAttributes& a, Taker* take, QpChange* c) {
  if (!a.access) return;
  constexpr std::uint32_t kRights = verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;
  c->mask |= verbs::kQpAttrAccess;
  if ((*a.access & ~kRights) != 0) {
    take->refuse(
        "access: only access_remote_write, access_remote_read and access_remote_atomic are "
        "allowed");
  }
  c->access = static_cast<std::uint8_t>(*a.access & kRights);
}

void take_path_mtu(const QpAttributes& a, Taker* take, QpChange* c) {
  if (!a.path_mtu) return;
  c->mask |= verbs::kQpAttrPathMtu;
  for (const ib::PathMtu m : {ib::PathMtu::k256, ib::PathMtu::k512, ib::PathMtu::k1024,
                              ib::PathMtu::k2048, ib::PathMtu::k4096}) {
    if (ib::bytes(m) != *a.path_mtu) continue;
    c->path_mtu = m;
    return;
  }
  take->refuse("path_mtu: must be 256, 512, 1024, 2048 or 4096");
}

}  // namespace

Result<ib::AddressVector> vector_of(const QpPath& path, const net::Interface& interface) {
  auto remote = IpAddress::parse_zoned(path.remote);
  if (remote) remote = remote->without_zone();
  if (!remote) return bad("path.remote: invalid IP address '" + path.remote + "'");
  ib::AddressVector av;
  av.remote = *remote;
  if (path.traffic_class > 255) return bad("path.traffic_class: must be between 0 and 255");
  if (path.hop_limit < 1 || path.hop_limit > 255)
    return bad("path.hop_limit: must be between 1 and 255");
  if (path.source_port < 0xc000 || path.source_port > 0xffff) {
    return bad("path.source_port: must be between 49152 and 65535");
  }
  av.traffic_class = static_cast<std::uint8_t>(path.traffic_class);
  av.hop_limit = static_cast<std::uint8_t>(path.hop_limit);
  av.source_port = static_cast<std::uint16_t>(path.source_port);
  const auto local = path.local.empty()
                         ? (interface.has_route(*remote) ? interface.choose_source(*remote)
                                                         : std::optional<IpAddress>())
                         : IpAddress::parse_zoned(path.local);
  if (!local && path.local.empty()) {
    return Error{Errc::unreachable, "no route to " + path.remote};
  }
  if (!local) return bad("path.local: invalid IP address '" + path.local + "'");
  av.local = local->without_zone();
  if (!interface.is_own(av.local))
    return bad("path.local: " + path.local + " is not an address of this device");
  return av;
}

Error refusal(Modified what, const verbs::QueuePair& qp, const QpChange& asked, std::uint32_t mtu) {
  const QpState to = asked.to;
  const verbs::QpMask takes = verbs::attributes(qp.state.service(), qp.state, to);
  const std::string move = verbs::text_of_move(qp.state, to);
  switch (what) {
    case Modified::MissingAttribute:
      return bad("a change " + move + " also needs " + names_of(takes.required & ~asked.mask));
    case Modified::ForeignAttribute:
      return bad("not allowed in a change " + move + ": " +
                 names_of(asked.mask & ~(takes.required | takes.optional)));
    case Modified::BadValue:
      if (!address_fits(asked.av)) {
        return bad("path: must be two unicast addresses of one IP version");
      }
      return bad("path_mtu: packets would be longer than the IP MTU " + std::to_string(mtu) +
                 " of the route to " + asked.av.remote.to_string() + "; set a smaller path_mtu");
    case Modified::Unsupported:
      return {Errc::unsupported, "this attribute cannot be changed in the present state"};
    case Modified::NotDrained:
      return {Errc::wrong_state,
              "the send queue is not yet drained: wait for the event send_queue_drained"};
    default:
      return verbs::no_such_move(qp.state, to);
  }
}

Result<QpChange> change_of(QpState from, QpState to, const QpAttributes& a,
                           const net::Interface& interface) {
  QpChange c;
  c.to = to;
  Taker take(&c);
  take_numbers(a, &take, &c);
  take_access(a, &take, &c);
  take_path_mtu(a, &take, &c);
  if (take.wrong()) return *take.wrong();
  if (a.path) {
    auto av = vector_of(*a.path, interface);
    if (!av) return av.error();
    c.mask |= verbs::kQpAttrAv;
    c.av = *av;
  }
  if (a.qkey) {
    c.mask |= verbs::kQpAttrQkey;
    c.qkey = *a.qkey;
  }
  if (a.tell_drained) {
    c.mask |= verbs::kQpAttrSqdNotify;
    c.tell_drained = *a.tell_drained;
  }
  if (from == QpState::Reset && to == QpState::Init) {  // there is only one of each
    c.mask |= verbs::kQpAttrPort | verbs::kQpAttrPkeyIndex;
  }
  return c;
}

QpAttributes attributes_of(const verbs::QueuePair& qp) {
  const Context& c = context_of(qp);
  const ib::QpAttributes& a = c.attributes;
  const verbs::Service service = qp.state.service();
  std::uint32_t set = 0;
  const auto moved = [&](QpState from, QpState to) {
    const verbs::QpMask m = verbs::attributes(service, from, to);
    set |= m.required | m.optional;
  };
  if (qp.state != QpState::Reset) moved(QpState::Reset, QpState::Init);
  if (c.responder) moved(QpState::Init, QpState::Rtr);
  if (c.requester) moved(QpState::Rtr, QpState::Rts);
  QpAttributes out;
  const auto show = [&](std::uint32_t bit, std::uint32_t value, std::optional<std::uint32_t>* to) {
    if ((set & bit) != 0) *to = value;
  };
  show(verbs::kQpAttrAccess, a.access, &out.access);
  show(verbs::kQpAttrQkey, a.qkey, &out.qkey);
  show(verbs::kQpAttrDestQpn, a.dest_qp, &out.dest_qp);
  show(verbs::kQpAttrPathMtu, a.pmtu(), &out.path_mtu);
  show(verbs::kQpAttrRqPsn, a.rq_psn.value(), &out.rq_psn);
  show(verbs::kQpAttrMaxDestRdAtomic, a.responder_depth, &out.responder_depth);
  show(verbs::kQpAttrMinRnrTimer, a.min_rnr_timer, &out.min_rnr_timer);
  show(verbs::kQpAttrSqPsn, a.sq_psn.value(), &out.sq_psn);
  show(verbs::kQpAttrTimeout, a.ack_timeout, &out.ack_timeout);
  show(verbs::kQpAttrRetryCount, a.retry_count, &out.retry_count);
  show(verbs::kQpAttrRnrRetry, a.rnr_retry, &out.rnr_retry);
  show(verbs::kQpAttrMaxRdAtomic, a.initiator_depth, &out.initiator_depth);
  show(verbs::kQpAttrPort, 1, &out.port);
  show(verbs::kQpAttrPkeyIndex, 0, &out.pkey_index);
  if ((set & verbs::kQpAttrAv) != 0) {
    out.path = {a.av.remote.to_string(), a.av.local.to_string(), a.av.traffic_class, a.av.hop_limit,
                a.av.source_port};
  }
  return out;
}

QpAttributes attributes_of(const ConnectionTerms& terms, bool known) {
  QpAttributes out;
  out.access = to_init(terms.rtr.responder_depth).access;
  out.responder_depth = terms.rtr.responder_depth;
  if (!known) return out;
  const QpChange& a = terms.rtr;
  out.dest_qp = a.dest_qp;
  out.path = {a.av.remote.to_string(), a.av.local.to_string(), a.av.traffic_class, a.av.hop_limit,
              a.av.source_port};
  out.path_mtu = ib::bytes(a.path_mtu);
  out.rq_psn = a.rq_psn;
  out.min_rnr_timer = a.min_rnr_timer;
  const QpChange& b = terms.rts;
  out.sq_psn = b.sq_psn;
  out.ack_timeout = b.ack_timeout;
  out.retry_count = b.retry_count;
  out.rnr_retry = b.rnr_retry;
  out.initiator_depth = b.initiator_depth;
  return out;
}

}  // namespace urnic::roce
