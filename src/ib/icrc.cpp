#include "ib/icrc.h"

#include <cstring>

#include "base/crc_math.h"

namespace urnic::ib {
namespace {

constexpr std::size_t kUdpBytes = 8, kMaxIpBytes = 60;
constexpr std::uint8_t kUdpProtocol = 17;

// The running CRC after eight bytes of ones in place of the LRH.
constexpr std::uint32_t kBehindLrh = [] {
  std::uint32_t state = kCrc32Init;
  for (int byte = 0; byte < 8; ++byte) {
    state ^= 0xff;
    for (int i = 0; i < 8; ++i) state = Crc32Math::times_x(state);
  }
  return state;
}();

// Ones where routers write, in IP header, UDP header and BTH. `ip`: bytes of IP header.
constexpr Crc32Mask mask_of(bool v6, std::size_t ip) {
  Crc32Mask mask;
  auto& ones = mask.ones;
  if (v6) {
    ones[0] = 0x0f;  // traffic class and flow label
    ones[1] = ones[2] = ones[3] = 0xff;
    ones[7] = 0xff;  // hop limit
  } else {
    ones[1] = 0xff;              // type of service
    ones[8] = 0xff;              // time to live
    ones[10] = ones[11] = 0xff;  // header checksum
  }
  ones[ip + 6] = ones[ip + 7] = 0xff;  // UDP checksum
  ones[ip + kUdpBytes + 4] = 0xff;     // FECN, BECN, reserved
  return mask;
}
constexpr Crc32Mask kIpv4Mask = mask_of(false, 20), kIpv6Mask = mask_of(true, 40);
// The two headers, and the bytes of the BTH that their mask covers.
static_assert(kIpv6UdpBytes + 5 <= Crc32Mask::kMost);

// ---- a hidden identification
// A CRC is linear: the change that two bytes cause is a polynomial of 16 terms times x to the
// number of bits that follow. Dividing the difference by that power yields the two bytes, if only
// they differ.

constexpr std::uint32_t kOne = Crc32Math::kOne;
constexpr std::uint32_t over_x(std::uint32_t a) {
  return (a & kOne) != 0 ? ((a ^ Crc32Math::kPoly) << 1) | 1 : a << 1;
}
constexpr auto product = Crc32Math::multiply;

// x^-8n for n of 0 to 63, and for multiples of 64 up to the size of the largest packet.
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

// True if two bytes, with `behind` covered bytes after them, can have caused that difference.
bool two_bytes_explain(std::uint32_t difference, std::size_t behind) {
  const std::size_t bytes = behind + 2;
  if (bytes / 64 >= kInverse.sixty_fours.size()) return false;
  const std::uint32_t before =
      product(product(difference, kInverse.ones[bytes % 64]), kInverse.sixty_fours[bytes / 64]);
  return before < 0x10000;
}

}  // namespace

IpUdpHeaders pseudo_headers(const DatagramFields& f, std::size_t packet) {
  IpUdpHeaders h;
  std::uint8_t* p = h.bytes.data();
  const std::size_t udp = kUdpBytes + packet, address = f.source.size();
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
  h.size = static_cast<std::size_t>(p + kUdpBytes - h.bytes.data());
  return h;
}

namespace {

// The common case: contiguous, without IPv4 options.
std::uint32_t icrc_of_datagram(ByteView datagram, bool v6) {
  return crc32_finish(crc32_update_masked(kBehindLrh, datagram, v6 ? kIpv6Mask : kIpv4Mask));
}

// In a function of its own: its stack frame would slow down callers that do not need it.
[[gnu::noinline]] std::uint32_t icrc_in_pieces(ByteView ip_udp, ByteView covered, bool v6) {
  std::array<std::uint8_t, kMaxIpBytes + kUdpBytes + kBthBytes> head;
  const std::size_t bytes = ip_udp.size() + kBthBytes;
  std::memcpy(head.data(), ip_udp.data(), ip_udp.size());
  std::memcpy(head.data() + ip_udp.size(), covered.data(), kBthBytes);
  const Crc32Mask mask = mask_of(v6, ip_udp.size() - kUdpBytes);
  for (std::size_t i = 0; i < bytes; ++i) head[i] |= mask.ones[i];
  const std::uint32_t state = crc32_update(kBehindLrh, {head.data(), bytes});
  return crc32_finish(crc32_update(state, covered.subspan(kBthBytes)));
}

}  // namespace

RunningIcrc::RunningIcrc(ByteView headers, bool v6)
    : state_(crc32_update_masked(kBehindLrh, headers, v6 ? kIpv6Mask : kIpv4Mask)) {}

std::uint32_t icrc(ByteView ip_udp, ByteView covered) {
  const bool v6 = ip_udp[0] >> 4 == 6;
  const bool plain = ip_udp.size() == (v6 ? kIpv6UdpBytes : kIpv4UdpBytes);
  if (plain && ip_udp.data() + ip_udp.size() == covered.data()) [[likely]] {
    return icrc_of_datagram({ip_udp.data(), ip_udp.size() + covered.size()}, v6);
  }
  return icrc_in_pieces(ip_udp, covered, v6);
}

bool icrc_good(ByteView ip_udp, ByteView packet) {
  const std::size_t covered = packet.size() - kIcrcBytes;
  return load_le32(packet.data() + covered) == icrc(ip_udp, packet.first(covered));
}

bool icrc_good_for_some_identification(ByteView ip_udp, ByteView packet) {
  const std::size_t covered = packet.size() - kIcrcBytes;
  const std::uint32_t difference =
      load_le32(packet.data() + covered) ^ icrc(ip_udp, packet.first(covered));
  if (difference == 0) return true;
  const bool v4 = ip_udp[0] >> 4 == 4;
  return v4 && two_bytes_explain(difference, ip_udp.size() - (kIdentificationAt + 2) + covered);
}

void seal(ByteView ip_udp, MutBytes packet) {
  const std::size_t covered = packet.size() - kIcrcBytes;
  store_le32(packet.data() + covered, icrc(ip_udp, packet.first(covered)));
}

}  // namespace urnic::ib
