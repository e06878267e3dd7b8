#include "net/icmp.h"

#include <algorithm>

#include "base/inet_checksum.h"
#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::net {
namespace {

constexpr std::uint32_t kIpv4MinMtu = 68;

// RFC 1191, 7.1: common MTUs, for routers that do not report theirs.
std::uint32_t plateau_below(std::uint32_t length) {
  constexpr std::uint32_t kPlateaus[] = {32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296};
  for (const std::uint32_t p : kPlateaus) {
    if (p < length) return p;
  }
  return kIpv4MinMtu;
}

// Determines the kind from type and code, before the quote is parsed; nullopt if it is not an
// error.
std::optional<IcmpError> classify_error(ByteView m, bool v6) {
  using Kind = IcmpError::Kind;
  IcmpError e;
  e.type = m[0];
  e.code = m[1];
  if (v6) {
    switch (e.type) {
      case kIcmp6Unreachable:
        e.kind = Kind::Unreachable;
        e.hard = e.code == 1 || e.code == 4;  // administratively prohibited, no port
        return e;
      case kIcmp6PacketTooBig:
        e.kind = Kind::PacketTooBig;
        // RFC 8201, 4: a smaller value than the minimum link MTU is not obeyed.
        e.mtu = std::max(load_be32(m.data() + 4), kIpv6MinMtu);
        return e;
      case kIcmp6TimeExceeded:
        e.kind = Kind::TimeExceeded;
        return e;
      case kIcmp6ParameterProblem:
        e.kind = Kind::ParameterProblem;
        return e;
      default:
        return std::nullopt;
    }
  }
  switch (e.type) {
    case kIcmpUnreachable:
      if (e.code == 4) {
        e.kind = Kind::PacketTooBig;
        e.mtu = load_be16(m.data() + 6);
        return e;
      }
      e.kind = Kind::Unreachable;
      e.hard = e.code == 2 || e.code == 3;  // no protocol, no port
      return e;
    case kIcmpTimeExceeded:
      e.kind = Kind::TimeExceeded;
      return e;
    case kIcmpParameterProblem:
      e.kind = Kind::ParameterProblem;
      return e;
    default:
      return std::nullopt;
  }
}

struct Quote {
  IpAddress src, dst;
  std::uint32_t length = 0;  // of the whole quoted datagram
  ByteView l4;
};

std::optional<Quote> parse_quote(ByteView b, bool v6) {
  Quote q;
  if (v6) {
    const auto h = parse_ipv6(b);
    if (!h) return std::nullopt;
    const Ipv6Chain chain = walk_ipv6(b, h->next_header);
    if (chain.problem != DropReason::None || chain.protocol != kProtoTcp) return std::nullopt;
    q = {h->src, h->dst, std::uint32_t{h->payload_len} + std::uint32_t{kIpv6Header},
         b.subspan(chain.offset)};
  } else {
    const auto h = parse_ipv4(b);
    // Only a first fragment contains the ports.
    if (!h || h->header.protocol != kProtoTcp || (h->header.fragment & kIpv4OffsetMask) != 0) {
      return std::nullopt;
    }
    q = {h->header.src, h->header.dst, h->header.total_len, b.subspan(h->header_len)};
  }
  return q;
}

}  // namespace

bool icmp_checksum_ok(ByteView message, std::uint32_t pseudo) {
  return inet_fold(std::uint64_t{pseudo} + inet_sum(message)) == 0xffff;
}

void set_icmp_checksum(MutBytes message, std::uint32_t pseudo) {
  store_be16(message.data() + 2, 0);
  store_be16(message.data() + 2, inet_checksum(std::uint64_t{pseudo} + inet_sum(message)));
}

std::optional<IcmpError> parse_icmp_error(ByteView message, bool v6) {
  if (message.size() < kIcmpHeader) return std::nullopt;
  auto e = classify_error(message, v6);
  if (!e) return std::nullopt;
  const auto quote = parse_quote(message.subspan(kIcmpHeader), v6);
  if (!quote || quote->l4.size() < 8) return std::nullopt;
  e->local = {quote->src, load_be16(quote->l4.data())};
  e->remote = {quote->dst, load_be16(quote->l4.data() + 2)};
  e->seq = load_be32(quote->l4.data() + 4);
  if (e->kind == IcmpError::Kind::PacketTooBig && !v6) {
    e->mtu = e->mtu == 0 ? plateau_below(quote->length) : std::max(e->mtu, kIpv4MinMtu);
  }
  return e;
}

}  // namespace urnic::net
