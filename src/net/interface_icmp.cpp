// ICMP and ICMPv6 for an interface: echo replies, and errors about our own segments.
#include <cstring>

#include "net/interface.h"
#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::net {
namespace {

// The whole message; empty if only part of the frame was provided.
ByteView message_of(const Classified& c, ByteView frame) {
  if (frame.size() < c.l4_offset || frame.size() - c.l4_offset < c.l4_len) return {};
  return frame.subspan(c.l4_offset, c.l4_len);
}

std::uint32_t reply_pseudo(const IpAddress& src, const IpAddress& dst, std::size_t len) {
  std::uint8_t both[32];
  std::memcpy(both, src.bytes().data(), 16);
  std::memcpy(both + 16, dst.bytes().data(), 16);
  return pseudo_sum_v6(both, kProtoIcmpv6, static_cast<std::uint32_t>(len));
}

}  // namespace

void Interface::input_icmp(const Classified& c, ByteView frame, Instant now) {
  const ByteView m = message_of(c, frame);
  if (m.empty()) return counters_.drop(DropReason::Short);
  // Do not answer requests to groups (RFC 1122, 3.2.2.6 permits this): the answers would multiply.
  if (c.dst_mac != mac() || !is_own(c.dst)) return counters_.drop(DropReason::NotForUs);
  ++counters_.icmp.rx;
  if (!icmp_checksum_ok(m, 0)) {
    ++counters_.icmp.bad;
    return;
  }
  if (m[0] == kIcmpEchoRequest && m[1] == 0) return reply_echo(c, m, now);
  input_error(c, m);
}

void Interface::input_icmp6(const Classified& c, ByteView frame, Instant now) {
  const ByteView m = message_of(c, frame);
  if (m.empty()) return counters_.drop(DropReason::Short);
  if (!icmp_checksum_ok(m, c.pseudo_sum)) {
    ++counters_.icmp.bad;
    return;
  }
  switch (m[0]) {
    case kIcmp6NeighbourSolicitation:
    case kIcmp6NeighbourAdvertisement:
      return input_nd(c, m, now);
    case kIcmp6RouterAdvertisement:
      ++counters_.router_advertisements_ignored;  // addresses and routes are configured
      return;
    case kIcmp6Redirect:
      ++counters_.redirects_ignored;
      return;
    case kIcmp6MldQuery:
      return input_mld_query(c, m, now);
    default:
      break;
  }
  // RFC 4443, 4.2: an echo request to a group should be answered; errors are sent to one host only.
  const bool group = c.dst.is_multicast();
  if (group && m[0] != kIcmp6EchoRequest) {
    ++counters_.multicast_ignored;
    return;
  }
  if (!group && (c.dst_mac != mac() || !is_own(c.dst))) return counters_.drop(DropReason::NotForUs);
  ++counters_.icmp.rx;
  if (m[0] == kIcmp6EchoRequest && m[1] == 0) return reply_echo(c, m, now);
  input_error(c, m);
}

void Interface::reply_echo(const Classified& c, ByteView message, Instant now) {
  ++counters_.icmp.echo_requests;
  const auto src = c.dst.is_multicast() ? choose_source(c.src) : c.dst;
  if (!src || c.src.is_any() || c.src.is_loopback()) return;
  if (!icmp_limit_.take(now)) {
    ++counters_.icmp.echo_rate_limited;
    return;
  }
  // Reply to the source MAC: this is right for neighbours and routers, and needs no state that a
  // flood could fill.
  const std::uint8_t protocol = c.v6 ? kProtoIcmpv6 : kProtoIcmp;
  const MutBytes out = output_.datagram(c.src_mac, *src, c.src, protocol, 64, message.size());
  if (out.empty()) return;
  std::memcpy(out.data(), message.data(), message.size());
  out[0] = c.v6 ? kIcmp6EchoReply : kIcmpEchoReply;
  set_icmp_checksum(out, c.v6 ? reply_pseudo(*src, c.src, out.size()) : 0);
  ++counters_.icmp.echo_replies;
}

void Interface::input_error(const Classified& c, ByteView message) {
  const auto error = parse_icmp_error(message, c.v6);
  // An error is addressed to the sender of the packet that it quotes.
  if (!error || error->local.ip != c.dst) {
    ++counters_.icmp.errors_unusable;
    return;
  }
  ++counters_.icmp.errors;
  Event e;
  e.kind = Event::Kind::Icmp;
  e.address = c.src;
  e.mac = c.src_mac;
  e.icmp = *error;
  events_.add(std::move(e));
}

}  // namespace urnic::net
