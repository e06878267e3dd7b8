#include "net/ndp.h"

#include <cstring>

#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::net {
namespace {

constexpr std::uint8_t kOptionSource = 1;
constexpr std::uint8_t kOptionTarget = 2;
constexpr std::uint8_t kFlagRouter = 0x80;
constexpr std::uint8_t kFlagSolicited = 0x40;
constexpr std::uint8_t kFlagOverride = 0x20;
constexpr std::uint8_t kMldReportV2 = 143;
constexpr std::uint8_t kMldChangeToExclude = 4;

std::uint32_t icmp6_pseudo(const IpAddress& src, const IpAddress& dst, std::size_t len) {
  std::uint8_t both[32];
  std::memcpy(both, src.bytes().data(), 16);
  std::memcpy(both + 16, dst.bytes().data(), 16);
  return pseudo_sum_v6(both, kProtoIcmpv6, static_cast<std::uint32_t>(len));
}

}  // namespace

std::optional<NdMessage> parse_nd(ByteView m) {
  if (m.size() < kNdFixed || m[1] != 0) return std::nullopt;
  NdMessage out;
  out.type = m[0];
  const bool solicitation = out.type == kIcmp6NeighbourSolicitation;
  if (!solicitation && out.type != kIcmp6NeighbourAdvertisement) return std::nullopt;
  if (!solicitation) {
    out.router = (m[4] & kFlagRouter) != 0;
    out.solicited = (m[4] & kFlagSolicited) != 0;
    out.override_entry = (m[4] & kFlagOverride) != 0;
  }
  out.target = load_ipv6(m.data() + 8);
  if (out.target.is_multicast()) return std::nullopt;

  const std::uint8_t wanted = solicitation ? kOptionSource : kOptionTarget;
  ByteView options = m.subspan(kNdFixed);
  while (!options.empty()) {
    if (options.size() < 2 || options[1] == 0) return std::nullopt;
    const std::size_t len = std::size_t{options[1]} * 8;
    if (len > options.size()) return std::nullopt;
    if (options[0] == wanted && len == 8 && !out.link_layer) {
      out.link_layer = MacAddress::from_bytes(options.data() + 2);
    }
    options = options.subspan(len);
  }
  return out;
}

std::size_t emit_nd(const NdMessage& m, const IpAddress& src, const IpAddress& dst,
                    std::uint8_t* out) {
  const bool solicitation = m.type == kIcmp6NeighbourSolicitation;
  const std::size_t len = m.link_layer ? kNdWithOption : kNdFixed;
  std::memset(out, 0, len);
  out[0] = m.type;
  if (!solicitation) {
    out[4] = static_cast<std::uint8_t>((m.router ? kFlagRouter : 0) |
                                       (m.solicited ? kFlagSolicited : 0) |
                                       (m.override_entry ? kFlagOverride : 0));
  }
  std::memcpy(out + 8, m.target.bytes().data(), 16);
  if (m.link_layer) {
    out[kNdFixed] = solicitation ? kOptionSource : kOptionTarget;
    out[kNdFixed + 1] = 1;  // in units of 8 bytes
    std::memcpy(out + kNdFixed + 2, m.link_layer->bytes.data(), 6);
  }
  set_icmp_checksum({out, len}, icmp6_pseudo(src, dst, len));
  return len;
}

IpAddress mld_routers() {
  return IpAddress::v6({0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16});
}

std::size_t emit_mld_report(std::span<const IpAddress> groups, const IpAddress& src,
                            std::uint8_t* out) {
  constexpr std::size_t kHopByHop = 8;
  // Next header, length 0 (8 bytes), router alert "MLD" (RFC 2711), PadN.
  const std::uint8_t hop_by_hop[kHopByHop] = {kProtoIcmpv6, 0, 5, 2, 0, 0, 1, 0};
  std::memcpy(out, hop_by_hop, kHopByHop);
  std::uint8_t* report = out + kHopByHop;
  const std::size_t len = mld_report_size(groups.size()) - kHopByHop;
  std::memset(report, 0, len);
  report[0] = kMldReportV2;
  store_be16(report + 6, static_cast<std::uint16_t>(groups.size()));
  std::uint8_t* record = report + 8;
  for (const IpAddress& group : groups) {
    record[0] = kMldChangeToExclude;
    std::memcpy(record + 4, group.bytes().data(), 16);
    record += 20;
  }
  set_icmp_checksum({report, len}, icmp6_pseudo(src, mld_routers(), len));
  return kHopByHop + len;
}

}  // namespace urnic::net
