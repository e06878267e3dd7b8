#include "ib_cm/judge_req.h"

namespace urnic::ib_cm {

std::optional<ib::PathMtu> path_mtu_of(std::uint8_t code) {
  if (code < 1 || code > 5) return std::nullopt;
  return static_cast<ib::PathMtu>(128u << code);
}

std::uint8_t code_of(ib::PathMtu mtu) {
  std::uint8_t code = 1;
  while (code < 5 && 128u << code < bytes(mtu)) ++code;
  return code;
}

bool addresses_agree(std::uint64_t service, ByteView private_data, const AddressPair& addresses) {
  if (!is_ip_service(service)) return true;
  const auto header = read_ip_header(private_data);
  return header && header->source == addresses.remote && header->destination == addresses.local;
}

Reason judge_req(const Req& r, const AddressPair& addresses, ib::PathMtu most_mtu) {
  constexpr std::uint16_t kPartition = 0x7fff;
  const std::uint8_t extended = r.transport == Transport::Extended ? kExtendedXrc : 0;
  if (r.transport == Transport::Rd || r.extended != extended) return Reason::Transport;
  if (is_reserved(r.qpn) || r.rdc || (r.pkey & kPartition) != kPartition) {
    return Reason::Unsupported;
  }
  const auto mtu = path_mtu_of(r.path_mtu);
  if (!mtu || bytes(*mtu) > bytes(most_mtu)) return Reason::PathMtu;
  if (r.primary.local != gid_of(addresses.remote) || r.primary.remote != gid_of(addresses.local)) {
    return Reason::PrimaryGid;
  }
  if (is_ip_service(r.service) && !read_ip_header(r.private_data)) return Reason::Unsupported;
  if (!addresses_agree(r.service, r.private_data, addresses)) return Reason::PrimaryGid;
  return Reason::None;
}

}  // namespace urnic::ib_cm
