#include "ib/icrc.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "support/golden.h"

namespace urnic::ib {
namespace {

using urnic::test::Bytes;
using urnic::test::from_hex;
using urnic::test::to_hex;

struct Vector {
  const char *ip_udp, *covered, *icrc;
};
// Computed by hand from the specification; checked against captures of other implementations.
constexpr Vector kVectors[] = {
    {"45000034000040004011b6b5c0000201c0000202 c00112b700200000",
     "0470ffff000000118000000168656c6c6f000000", "aea74be2"},
    {"45000030000040004011b6b9c0000201c0000202 c00112b7001c0000",
     "1140ffff00000012000000011f000001", "8b2b8af5"},
    {"60000000002c114020010db800000000000000000000000120010db8000000000000000000000002"
     "c00112b7002c0000",
     "0a40ffff0000001180fffffe0000000000001000000012340000000401020304", "82b953df"},
};

Bytes whole(const Vector& v) {
  return from_hex(std::string(v.covered) + v.icrc);
}

// proves: IB-1
TEST(Icrc, MatchesTheVectors) {
  for (const Vector& v : kVectors) {
    Bytes packet = whole(v);
    EXPECT_TRUE(icrc_good(from_hex(v.ip_udp), packet));
    for (std::size_t i = packet.size() - 4; i < packet.size(); ++i) packet[i] = 0;
    seal(from_hex(v.ip_udp), packet);
    EXPECT_EQ(to_hex(packet), to_hex(whole(v)));
  }
}

// Bits of the IP and UDP headers that routers change.
bool free_of(const Bytes& ip, std::size_t bit) {
  const std::size_t byte = bit / 8, udp = ip.size() - 8;
  if (byte >= udp + 6) return true;  // UDP checksum
  if (ip[0] >> 4 == 4) return byte == 1 || byte == 8 || byte == 10 || byte == 11;
  return (bit >= 4 && bit < 8) || (byte >= 1 && byte < 4) || byte == 7;
}

// Headers and packet contiguous, as usual, and separate.
bool good_both_ways(const Bytes& ip_udp, const Bytes& packet) {
  Bytes all = ip_udp;
  all.insert(all.end(), packet.begin(), packet.end());
  const ByteView datagram(all);
  const bool good = icrc_good(ip_udp, packet);
  EXPECT_EQ(icrc_good(datagram.first(ip_udp.size()), datagram.subspan(ip_udp.size())), good);
  return good;
}

// proves: IB-1
TEST(Icrc, EveryBitIsCoveredExceptThoseThatRoutersChange) {
  for (const Vector& v : kVectors) {
    const Bytes ip_udp = from_hex(v.ip_udp), packet = whole(v);
    // Except the version and the header length, which determine the position of the rest.
    const std::size_t first = ip_udp[0] >> 4 == 4 ? 8 : 4;
    for (std::size_t bit = first; bit < ip_udp.size() * 8; ++bit) {
      Bytes changed = ip_udp;
      changed[bit / 8] ^= static_cast<std::uint8_t>(0x80 >> bit % 8);
      EXPECT_EQ(good_both_ways(changed, packet), free_of(ip_udp, bit)) << bit;
    }
    for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
      Bytes changed = packet;
      changed[bit / 8] ^= static_cast<std::uint8_t>(0x80 >> bit % 8);
      EXPECT_EQ(good_both_ways(ip_udp, changed), bit / 8 == 4) << bit;
    }
  }
}

TEST(Icrc, PseudoHeadersFromSocketFieldsGiveTheSameIcrc) {
  DatagramFields f;
  f.source = *IpAddress::parse("192.0.2.1");
  f.destination = *IpAddress::parse("192.0.2.2");
  f.source_port = 0xc001;
  EXPECT_TRUE(icrc_good(pseudo_headers(f, 24).view(), whole(kVectors[0])));
  f.identification = 1;
  EXPECT_FALSE(icrc_good(pseudo_headers(f, 24).view(), whole(kVectors[0])));
  f.identification = 0;
  f.dont_fragment = false;
  EXPECT_FALSE(icrc_good(pseudo_headers(f, 24).view(), whole(kVectors[0])));
  f.source = *IpAddress::parse("2001:db8::1");
  f.destination = *IpAddress::parse("2001:db8::2");
  EXPECT_TRUE(icrc_good(pseudo_headers(f, 36).view(), whole(kVectors[2])));
}

// proves: IB-1
TEST(Icrc, OptionsAreCoveredForAContiguousAndASeparatePacket) {
  Bytes ip_udp = from_hex(kVectors[0].ip_udp);
  ip_udp[0] = 0x4f;
  for (std::uint8_t i = 0; i < 40; ++i) ip_udp.insert(ip_udp.begin() + 20 + i, i);
  Bytes packet = whole(kVectors[0]);
  seal(ip_udp, packet);
  for (std::size_t bit = 8; bit < ip_udp.size() * 8; ++bit) {
    Bytes changed = ip_udp;
    changed[bit / 8] ^= static_cast<std::uint8_t>(0x80 >> bit % 8);
    const std::size_t byte = bit / 8;
    const bool free = byte == 1 || byte == 8 || byte == 10 || byte == 11 || byte >= 66;
    EXPECT_EQ(good_both_ways(changed, packet), free) << bit;
  }
  for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
    Bytes changed = packet;
    changed[bit / 8] ^= static_cast<std::uint8_t>(0x80 >> bit % 8);
    EXPECT_EQ(good_both_ways(ip_udp, changed), bit / 8 == 4) << bit;
  }
}

// A socket does not report the identification of a received packet.
// proves: IB-1
TEST(Icrc, AnyHiddenIdentificationIsFound) {
  Rng rng(4791);
  for (const std::size_t length :
       {std::size_t{24}, std::size_t{63}, std::size_t{64}, std::size_t{1052}, std::size_t{4124}}) {
    for (int round = 0; round < 50; ++round) {
      DatagramFields f;
      f.source = *IpAddress::parse("192.0.2.1");
      f.destination = *IpAddress::parse("192.0.2.2");
      f.source_port = 0xc001;
      f.identification = static_cast<std::uint16_t>(round == 0 ? 0 : rng.next());
      Bytes packet(length);
      for (auto& b : packet) b = static_cast<std::uint8_t>(rng.next());
      seal(pseudo_headers(f, length).view(), packet);
      f.identification = 0;
      const IpUdpHeaders known = pseudo_headers(f, length);
      EXPECT_TRUE(icrc_good_for_some_identification(known.view(), packet));
      // One covered bit, anywhere except in the byte that routers change.
      std::size_t bit = rng.below(length * 8);
      if (bit / 8 == 4) bit += 8;
      packet[bit / 8] ^= static_cast<std::uint8_t>(0x80 >> bit % 8);
      EXPECT_FALSE(icrc_good_for_some_identification(known.view(), packet)) << bit;
    }
  }
}

// The cost: a damaged packet is accepted once in 2^16.
TEST(Icrc, OneInSixtyFiveThousandBrokenPacketsPassesWithAHiddenIdentification) {
  Rng rng(1);
  DatagramFields f;
  f.source = *IpAddress::parse("192.0.2.1");
  f.destination = *IpAddress::parse("192.0.2.2");
  const IpUdpHeaders known = pseudo_headers(f, 24);
  Bytes packet(24);
  int passed = 0;
  for (int i = 0; i < 1 << 20; ++i) {
    for (std::size_t at = 0; at < packet.size(); at += 8) store_be64(&packet[at], rng.next());
    passed += icrc_good_for_some_identification(known.view(), packet) ? 1 : 0;
  }
  EXPECT_GE(passed, 4);
  EXPECT_LE(passed, 40);  // 16 expected
}

TEST(Icrc, Ipv6HasNoHiddenIdentification) {
  Rng rng(6);
  for (const Vector& v : kVectors) {
    const Bytes ip_udp = from_hex(v.ip_udp);
    if (ip_udp[0] >> 4 != 6) continue;
    Bytes packet = whole(v);
    EXPECT_TRUE(icrc_good_for_some_identification(ip_udp, packet));
    for (int i = 0; i < 1 << 18; ++i) {
      store_be32(&packet[packet.size() - 4], static_cast<std::uint32_t>(rng.next()));
      EXPECT_EQ(icrc_good_for_some_identification(ip_udp, packet), icrc_good(ip_udp, packet));
    }
  }
}

}  // namespace
}  // namespace urnic::ib
