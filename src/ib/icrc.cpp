#include "ib/icrc.h"

#include <cstring>

#include "base/crc32.h"

namespace urnic::ib {
namespace {

constexpr std::size_t kLrhOctets = 8, kUdpOctets = 8, kMaxIpOctets = 60;
constexpr std::uint8_t kUdpProtocol = 17;

// Ones where routers write; `ip` begins with the IP header.
void mask_ip(std::uint8_t* ip) {
  if (ip[0] >> 4 == 4) {
    ip[1] = 0xff;            // type of service
    ip[8] = 0xff;            // time to live
    ip[10] = ip[11] = 0xff;  // header checksum
  } else {
    ip[0] |= 0x0f;  // traffic class and flow label
    ip[1] = ip[2] = ip[3] = 0xff;
    ip[7] = 0xff;  // hop limit
  }
}

// ---- a hidden identification
// A CRC is linear: what two octets change of it is a polynomial of 16 terms times x to the bits
// that follow. Dividing the difference by that power gives the octets back, if they alone differ.

constexpr std::uint32_t kPolynomial = 0xedb88320;  // reflected: bit 31 is x^0
constexpr std::uint32_t kOne = 0x80000000;

constexpr std::uint32_t times_x(std::uint32_t a) {
  return (a >> 1) ^ ((a & 1) != 0 ? kPolynomial : 0);
}
constexpr std::uint32_t over_x(std::uint32_t a) {
  return (a & kOne) != 0 ? ((a ^ kPolynomial) << 1) | 1 : a << 1;
}
constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (; b != 0; b <<= 1, a = times_x(a)) sum ^= (b & kOne) != 0 ? a : 0;
  return sum;
}

// x^-8n for n of 0 to 63, and for multiples of 64 up to what the largest packet has.
struct InversePowers {
  std::array<std::uint32_t, 64> ones{};
  std::array<std::uint32_t, 80> sixty_fours{};
  constexpr InversePowers() {
    std::uint32_t power = kOne;
    for (auto& p : ones) {
      p = power;
      for (int bit = 0; bit < 8; ++bit) power = over_x(power);
    }
    const std::uint32_t step = power;
    power = kOne;
    for (auto& p : sixty_fours) {
      p = power;
      power = product(power, step);
    }
  }
};
constexpr InversePowers kInverse;

constexpr std::size_t kIdentificationAt = 4;  // in the header of IPv4

// Whether two octets with `behind` covered ones behind them can have made that difference.
bool two_octets_explain(std::uint32_t difference, std::size_t behind) {
  const std::size_t octets = behind + 2;
  if (octets / 64 >= kInverse.sixty_fours.size()) return false;
  const std::uint32_t before =
      product(product(difference, kInverse.ones[octets % 64]), kInverse.sixty_fours[octets / 64]);
  return before < 0x10000;
}

}  // namespace

IpUdpHeaders pseudo_headers(const DatagramFields& f, std::size_t packet) {
  IpUdpHeaders h;
  std::uint8_t* p = h.octets.data();
  const std::size_t udp = kUdpOctets + packet, address = f.source.size();
  if (f.source.is_v4()) {
    p[0] = 0x45;
    store_be16(p + 2, static_cast<std::uint16_t>(20 + udp));
    store_be16(p + 4, f.identification);
    store_be16(p + 6, f.dont_fragment ? 0x4000 : 0);
    p[9] = kUdpProtocol;
    p += 12;
  } else {
    p[0] = 0x60;
    store_be16(p + 4, static_cast<std::uint16_t>(udp));
    p[6] = kUdpProtocol;
    p += 8;
  }
  std::memcpy(p, f.source.bytes().data(), address);
  std::memcpy(p + address, f.destination.bytes().data(), address);
  p += 2 * address;
  store_be16(p, f.source_port);
  store_be16(p + 2, f.destination_port);
  store_be16(p + 4, static_cast<std::uint16_t>(udp));
  h.size = static_cast<std::size_t>(p + kUdpOctets - h.octets.data());
  return h;
}

std::uint32_t icrc(ByteView ip_udp, ByteView covered) {
  std::array<std::uint8_t, kLrhOctets + kMaxIpOctets + kUdpOctets + kBthOctets> masked;
  std::uint8_t* p = masked.data();
  std::memset(p, 0xff, kLrhOctets);
  p += kLrhOctets;
  std::memcpy(p, ip_udp.data(), ip_udp.size());
  mask_ip(p);
  p += ip_udp.size();
  p[-2] = p[-1] = 0xff;  // UDP checksum
  std::memcpy(p, covered.data(), kBthOctets);
  p[4] = 0xff;  // FECN, BECN, reserved
  p += kBthOctets;
  const std::uint32_t state =
      crc32_update(kCrc32Init, {masked.data(), static_cast<std::size_t>(p - masked.data())});
  return crc32_finish(crc32_update(state, covered.subspan(kBthOctets)));
}

bool icrc_good(ByteView ip_udp, ByteView packet) {
  const std::size_t covered = packet.size() - kIcrcOctets;
  return load_le32(packet.data() + covered) == icrc(ip_udp, packet.first(covered));
}

bool icrc_good_for_some_identification(ByteView ip_udp, ByteView packet) {
  const std::size_t covered = packet.size() - kIcrcOctets;
  const std::uint32_t difference =
      load_le32(packet.data() + covered) ^ icrc(ip_udp, packet.first(covered));
  if (difference == 0) return true;
  const bool v4 = ip_udp[0] >> 4 == 4;
  return v4 && two_octets_explain(difference, ip_udp.size() - (kIdentificationAt + 2) + covered);
}

void seal(ByteView ip_udp, MutBytes packet) {
  const std::size_t covered = packet.size() - kIcrcOctets;
  store_le32(packet.data() + covered, icrc(ip_udp, packet.first(covered)));
}

}  // namespace urnic::ib
