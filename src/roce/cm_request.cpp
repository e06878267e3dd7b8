#include "roce/cm_request.h"

#include <algorithm>

#include "roce/cm_addresses.h"

namespace urnic::roce {

using ib_cm::Reason;

namespace {

// Time between two requests to a peer that does not listen yet: long for a listener on this
// machine, short for a person.
constexpr Duration kAskAgain = Duration::ms(5);
// The next smaller path MTU, for a peer that rejects a larger one.
std::optional<ib::PathMtu> below(ib::PathMtu mtu) {
  if (mtu == ib::PathMtu::k256) return std::nullopt;
  return static_cast<ib::PathMtu>(ib::bytes(mtu) / 2);
}

}  // namespace

bool CmRequest::again(Reason reason, Instant now, Instant* at) {
  const auto smaller = below(what.path.mtu);
  *at = now;
  if (reason == Reason::NoSuchService && now < refused_until) {
    *at = std::min(now + kAskAgain, refused_until);
  } else if (reason == Reason::PathMtu && smaller) {
    what.path.mtu = *smaller;
  } else {
    return false;
  }
  *at = std::min(*at, give_up);
  return true;
}

Result<CmRequest> to_ask(const net::Interface& interface, Listeners& listeners,
                         const ib_cm::Options& options, const SocketAddress& to,
                         const ConnectParams& p, Instant now) {
  auto addresses = choose_addresses(interface, to, p.source);
  if (!addresses) return addresses.error();
  CmRequest asked;
  ib_cm::Connect& what = asked.what;
  what.addresses = *addresses;
  what.service = ib_cm::service_of(ib_cm::PortSpace::Tcp, to.port);
  what.source_port =
      p.source.at.port != 0 ? p.source.at.port : listeners.choose_port(addresses->local);
  what.path.mtu = options.most_mtu(*addresses);
  what.path.ack_timeout = ib_cm::ack_timeout_of(options.packet_life_time, options.ack_delay);
  what.path.retry_count = p.retry_count;
  what.path.traffic_class = p.traffic_class.value_or(0);
  what.response_timeout = response_timeout(p.timeout);
  what.max_cm_retries = kCmRetries;
  asked.data = ib_cm::PrivateData(p.private_data);
  asked.give_up = now + p.timeout;
  asked.refused_until = now + p.refusal_retry;
  return asked;
}

Errc code_of(Reason reason) {
  switch (reason) {
    case Reason::Consumer:
      return Errc::rejected;
    case Reason::NoSuchService:
      return Errc::refused;
    case Reason::Timeout:
      return Errc::timed_out;
    case Reason::NoResources:
      return Errc::no_memory;
    default:
      return Errc::protocol;
  }
}

const char* text_of(Reason reason) {
  switch (reason) {
    case Reason::Consumer:
      return "the peer rejected the connection";
    case Reason::NoSuchService:
      return "connection refused by the peer (nobody listens on that port for RoCE)";
    case Reason::Timeout:
      return "the program at the peer did not answer in time";
    case Reason::NoResources:
      return "the peer has no resources for another connection";
    case Reason::Stale:
      return "the peer rejected the connection as stale (REJ 10)";
    case Reason::PathMtu:
      return "the peer does not support this path MTU (REJ 26)";
    case Reason::Transport:
      return "the peer listens on that port for another transport service (REJ 9)";
    default:
      return "the peer rejected the connection (unexpected REJ reason)";
  }
}

RocePeer roce_peer_of(const ib_cm::QpValues& peer) {
  RocePeer p;
  p.qp_number = peer.qpn;
  p.rnr_retry = peer.rnr_retry;
  p.srq = peer.srq;
  p.flow_control = peer.credits;
  return p;
}

}  // namespace urnic::roce
