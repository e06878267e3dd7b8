#include "ib_cm/ip_service.h"

#include <algorithm>
#include <cstring>

namespace urnic::ib_cm {
namespace {

constexpr std::size_t kPortAt = 2, kSourceAt = 4, kDestinationAt = 20, kAddress = 16;

IpAddress read_address(bool v6, const std::uint8_t* p) {
  const ByteView bytes{p, kAddress};
  return IpAddress::from_bytes(v6 ? bytes : bytes.last(4));
}
void write_address(const IpAddress& a, std::uint8_t* p) {
  std::memset(p, 0, kAddress);
  const ByteView bytes = a.bytes();
  std::memcpy(p + kAddress - bytes.size(), bytes.data(), bytes.size());
}

}  // namespace

std::optional<IpHeader> read_ip_header(ByteView data) {
  if (data.size() < kIpHeaderBytes || data[0] != 0) return std::nullopt;
  const unsigned version = data[1] >> 4;
  if (version != 4 && version != 6) return std::nullopt;
  IpHeader h;
  h.source_port = load_be16(data.data() + kPortAt);
  h.source = read_address(version == 6, data.data() + kSourceAt);
  h.destination = read_address(version == 6, data.data() + kDestinationAt);
  return h;
}

void write_ip_header(const IpHeader& h, std::uint8_t* to) {
  to[0] = 0;
  to[1] = h.source.is_v6() ? 0x60 : 0x40;
  store_be16(to + kPortAt, h.source_port);
  write_address(h.source, to + kSourceAt);
  write_address(h.destination, to + kDestinationAt);
}

}  // namespace urnic::ib_cm
