#include "fault/mark.h"

#include "base/bytes.h"
#include "base/inet_checksum.h"
#include "net/classify.h"
#include "net/ipv4.h"

namespace urnic::fault {

bool mark_frame(Frame* f) {
  constexpr unsigned kNotEct = 0, kCe = net::kCongestionExperienced;
  const net::Classified c = net::classify(f->bytes, static_cast<std::uint32_t>(f->bytes.size()));
  if (c.kind == net::FrameKind::Drop || c.kind == net::FrameKind::Arp) return false;
  if (c.ecn == kNotEct || c.ecn == kCe) return false;
  std::uint8_t* const ip = f->bytes.data() + c.l3_offset;
  if (c.v6) {
    ip[1] = static_cast<std::uint8_t>(ip[1] | kCe << 4);
    return true;
  }
  ip[1] = static_cast<std::uint8_t>(ip[1] | kCe);
  store_be16(ip + 10, 0);
  const std::size_t header = std::size_t{c.l4_offset} - c.l3_offset;
  store_be16(ip + 10, inet_checksum(net::ipv4_header_sum(ip, header)));
  return true;
}

}  // namespace urnic::fault
