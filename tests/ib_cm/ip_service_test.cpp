#include "ib_cm/ip_service.h"

#include <gtest/gtest.h>

#include "ib_cm/consent.h"
#include "ib_cm/gid.h"
#include "support/golden.h"

namespace urnic::ib_cm {
namespace {

using urnic::test::Bytes;
using urnic::test::from_hex;
using urnic::test::to_hex;

TEST(IpService, NumbersMatchThoseOfRdmaCm) {
  EXPECT_EQ(service_of(PortSpace::Tcp, 7174), 0x0000000001061c06u);
  EXPECT_EQ(service_of(PortSpace::Udp, 7174), 0x0000000001111c06u);
  EXPECT_EQ(service_of(PortSpace::Ib, 0xffff), 0x00000000013fffffu);
  for (const PortSpace s : {PortSpace::Tcp, PortSpace::Udp, PortSpace::Ib}) {
    EXPECT_TRUE(is_ip_service(service_of(s, 1)));
  }
  EXPECT_FALSE(is_ip_service(7));
  EXPECT_FALSE(is_ip_service(0x1000000001061c06));
}

struct Row {
  const char *source, *destination;
  std::uint16_t port;
  const char* hex;
};
constexpr Row kRows[] = {
    {"10.77.0.2", "10.77.0.3", 0xaa5a, "0040aa5a 00*12 0a4d0002 00*12 0a4d0003"},
    {"fd77::2", "fd77::3", 1, "00600001 fd77 00*13 02 fd77 00*13 03"},
};

// proves: IB-136
TEST(IpService, HeaderIsReadAndWrittenInItsFormat) {
  for (const Row& row : kRows) {
    const IpHeader h{*IpAddress::parse(row.source), *IpAddress::parse(row.destination), row.port};
    Bytes bytes(kIpHeaderBytes, 0xee);
    write_ip_header(h, bytes.data());
    EXPECT_EQ(to_hex(bytes), to_hex(from_hex(row.hex)));
    const auto back = read_ip_header(bytes);
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, h);
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      EXPECT_FALSE(read_ip_header(ByteView(bytes).first(n))) << n;
    }
  }
}

TEST(IpService, AnotherVersionIsRejected) {
  Bytes bytes = from_hex(kRows[0].hex);
  bytes[0] = 1;
  EXPECT_FALSE(read_ip_header(bytes));
  bytes[0] = 0;
  for (unsigned version = 0; version < 16; ++version) {
    bytes[1] = static_cast<std::uint8_t>(version << 4);
    EXPECT_EQ(read_ip_header(bytes).has_value(), version == 4 || version == 6) << version;
  }
}

// proves: IB-143
TEST(Gid, IsTheAddressAndMappedForIpv4) {
  EXPECT_EQ(to_hex(gid_of(IpAddress::v4(10, 77, 0, 2))), "00000000000000000000ffff0a4d0002");
  const IpAddress local = *IpAddress::parse("fe80::1:2");
  EXPECT_EQ(to_hex(gid_of(local)), "fe800000000000000000000000010002");
  for (const char* text : {"10.77.0.2", "fe80::1:2", "fd77::3"}) {
    EXPECT_EQ(address_of(gid_of(*IpAddress::parse(text))), *IpAddress::parse(text));
  }
}

TEST(Consent, HasANumberOtherThanTheOffer) {
  EXPECT_EQ(offer_of(0), 0u);
  EXPECT_EQ(consent_of(0), 0u);
  const std::uint32_t offer = offer_of(3);
  EXPECT_EQ(offered_by(kVendorId, offer), 3);
  EXPECT_EQ(agreed_by(kVendorId, offer, 3), 0) << "an echo";
  EXPECT_EQ(agreed_by(kVendorId, 0, 3), 0) << "as Linux does";
  EXPECT_EQ(agreed_by(kVendorId, consent_of(1), 3), 1);
  EXPECT_EQ(agreed_by(kVendorId, consent_of(7), 3), 3) << "no more than was offered";
  EXPECT_EQ(offered_by(kVendorId + 1, offer), 0);
  EXPECT_EQ(agreed_by(kVendorId + 1, consent_of(1), 3), 0);
  EXPECT_EQ(offered_by(kVendorId, 1), 0) << "others' attribute modifier";
}

}  // namespace
}  // namespace urnic::ib_cm
