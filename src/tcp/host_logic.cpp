#include "tcp/host_logic.h"

#include <algorithm>

#include "net/header_template.h"
#include "tcp/isn.h"
#include "tcp/listen.h"
#include "tcp/syn_cookie.h"
#include "tcp/tcb_state.h"

namespace urnic::tcp {
namespace {

Unmatched refuse_unmatched(const Segment& s, HostCounters& n) {
  ++n.no_connection;
  if (s.has(kRst)) return {};
  return {.kind = Unmatched::Kind::Reply, .reply = closed_reply(s)};
}

}  // namespace

bool Backlog::cookies_out(Instant now) const {
  return !last_cookie.is_never() && now - last_cookie <= kCookieLife * 2;
}

Config connection_config(const Config& base, const HostKeys& keys, const FlowKey& key,
                         std::uint32_t mtu) {
  Config c = base;
  // The MSS option announces what fits the MTU minus the fixed IP and TCP headers (RFC 6691).
  c.ip_header = static_cast<std::uint8_t>(net::ip_header_size(key.remote));
  c.mss = static_cast<std::uint16_t>(std::min(mtu, 65535u) - c.ip_header - kHeaderMin);
  c.ts_offset = timestamp_offset(keys.timestamps, key.local_end(), key.remote_end());
  c.challenge_key = challenge_key(keys.challenges, key.local_end(), key.remote_end());
  return c;
}

Unmatched take_unmatched(Backlog* listener, const HostKeys& keys, const Config& config,
                         const FlowKey& key, const Segment& s, std::uint32_t window,
                         HostCounters& n, Instant now) {
  if (listener == nullptr) return refuse_unmatched(s, n);
  const SocketAddress local = key.local_end(), remote = key.remote_end();
  switch (check_listen(s)) {
    case ListenAction::Discard:
      return {};
    case ListenAction::Rst: {
      if (s.has(kSyn) || !listener->cookies_out(now)) return refuse_unmatched(s, n);
      const auto syn = syn_of_cookie(keys.cookies, local, remote, s, config, now);
      if (!syn) return refuse_unmatched(s, n);
      if (listener->full()) {
        ++n.dropped_backlog;  // the peer's next segment tries again
        return {};
      }
      ++n.cookies_accepted;
      return {.kind = Unmatched::Kind::OpenFromCookie, .syn = *syn};
    }
    case ListenAction::Accept:
      break;
  }
  // Dropped SYNs are repeated by the peer. A SYN from an address and port to itself could never be
  // answered: our reply would come back to us.
  const bool crowded = listener->half_open >= listener->most_half_open;
  if ((crowded && !listener->cookies) || listener->full() || local == remote) {
    ++n.dropped_backlog;
    return {};
  }
  if (!crowded) return {.kind = Unmatched::Kind::Open};
  listener->last_cookie = now;
  ++n.cookies_sent;
  return {.kind = Unmatched::Kind::Reply,
          .reply = cookie_syn_ack(keys.cookies, local, remote, s, config,
                                  static_cast<std::uint16_t>(std::min(window, 0xffffu)), now)};
}

Answer answer(Tcb& t, const Check& c, const Segment& s, HostCounters& n, Instant now) {
  switch (c.action) {
    case Action::Process:
      return {.kind = Answer::Kind::Process};
    case Action::Discard:
      break;
    case Action::Ack:
      return {.kind = Answer::Kind::Send, .plan = plan_ack(t)};
    case Action::SynAck:
    case Action::ChallengeAck:
      if (!may_challenge(t, now)) {
        ++n.challenge_acks_withheld;
        break;
      }
      ++n.challenge_acks;
      return {.kind = Answer::Kind::Send,
              .plan = c.action == Action::SynAck ? plan_syn_ack(t) : plan_ack(t)};
    case Action::Rst:
      return {.kind = Answer::Kind::Rst, .reset = reset_reply(t, s, now)};
    case Action::Reset:
      return {.kind = Answer::Kind::Ended};
  }
  return {};
}

bool take_icmp_error(Tcb& t, const net::IcmpError& e, Instant now) {
  using Kind = net::IcmpError::Kind;
  if (e.kind == Kind::PacketTooBig) return packet_too_big(t, e.mtu, Seq(e.seq), now);  // E-18
  const State before = t.state;
  unreachable(t, e.kind == Kind::Unreachable && e.hard, Seq(e.seq), now);
  return t.state != before;
}

}  // namespace urnic::tcp
