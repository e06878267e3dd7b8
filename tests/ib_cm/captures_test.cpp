// Captured messages of two Linux rdma_cm ends, parsed and rebuilt: see tests/golden/roce/README.md.
#include <gtest/gtest.h>

#include <map>

#include "ib/roce_capture.h"
#include "ib_cm/gsi.h"
#include "ib_cm/ip_service.h"
#include "ib_cm/messages.h"

namespace urnic::ib_cm {
namespace {

using ib::test::Captured;
using ib::test::roce_capture;
using urnic::test::Bytes;
using urnic::test::to_hex;

// The MADs of a capture; their views are into `packets`.
struct Capture {
  explicit Capture(const std::string& name) : packets(roce_capture(name)) {
    for (const Captured& c : packets) {
      const auto p = ib::parse_packet(c.datagram);
      if (!p.ok() || p->header.bth.dest_qp != kGsiQpn) continue;
      const auto mad = open_gsi(*p);
      EXPECT_TRUE(mad.ok());
      if (mad.ok()) mads.push_back(*mad);
    }
  }
  ByteView first(Attribute a) const {
    for (const ByteView m : mads) {
      if (read_header(m)->attribute == a) return m;
    }
    ADD_FAILURE() << "none of " << static_cast<int>(a);
    return mads.at(0);
  }
  std::vector<Captured> packets;
  std::vector<ByteView> mads;
};

Mad again(ByteView m) {
  const MadHeader h = *read_header(m);
  switch (h.attribute) {
    case Attribute::Req:
      return write(h.transaction, read_req(m), h.modifier);
    case Attribute::Rep:
      return write(h.transaction, read_rep(m), h.modifier);
    case Attribute::Rtu:
      return write_rtu(h.transaction, read_rtu(m));
    case Attribute::Rej:
      return write(h.transaction, read_rej(m));
    case Attribute::Dreq:
      return write(h.transaction, read_dreq(m));
    case Attribute::Drep:
      return write_drep(h.transaction, read_rtu(m));
    case Attribute::SidrReq:
      return write(h.transaction, read_sidr_req(m));
    case Attribute::SidrRep:
      return write(h.transaction, read_sidr_rep(m));
    default:
      return {};
  }
}

constexpr const char* kAll[] = {
    "rxe-rxe-cm-reject-no-listener.pcap", "rxe-rxe-ib_send_bw-R-4000-cm.pcap",
    "rxe-rxe-rping-ipv4-C2-S3000.pcap", "rxe-rxe-rping-ipv6-C1-S100.pcap",
    "rxe-rxe-udaddy-sidr-ud-imm.pcap"};

// proves: IB-135
TEST(CmCaptures, EveryMadIsRebuiltByteForByte) {
  std::map<Attribute, int> seen;
  for (const char* file : kAll) {
    for (const ByteView m : Capture(file).mads) {
      ++seen[read_header(m)->attribute];
      EXPECT_EQ(to_hex(again(m)), to_hex(m)) << file;
    }
  }
  const std::map<Attribute, int> expected = {
      {Attribute::Req, 5},  {Attribute::Rej, 1},  {Attribute::Rep, 4},     {Attribute::Rtu, 4},
      {Attribute::Dreq, 4}, {Attribute::Drep, 3}, {Attribute::SidrReq, 1}, {Attribute::SidrRep, 1}};
  EXPECT_EQ(seen, expected);
}

TEST(CmCaptures, TheUdPacketOfAMadIsRebuiltByteForByte) {
  for (const char* file : kAll) {
    for (const Captured& c : Capture(file).packets) {
      const auto p = ib::parse_packet(c.datagram);
      if (!p.ok() || p->header.bth.dest_qp != kGsiQpn) continue;
      Bytes mine(kGsiPacketBytes);
      ib::emit_packet(gsi_header(p->header.bth.psn), p->payload, mine.data());
      // the ICRC is tested elsewhere
      std::copy(c.datagram.end() - 4, c.datagram.end(), mine.end() - 4);
      EXPECT_EQ(to_hex(mine), to_hex(c.datagram)) << file;
    }
  }
}

TEST(CmCaptures, RpingOverIpv4IsUnderstood) {
  const Capture c("rxe-rxe-rping-ipv4-C2-S3000.pcap");
  const Req r = read_req(c.first(Attribute::Req));
  EXPECT_EQ(r.local_id, 0xe0d6dd22u);
  EXPECT_EQ(r.service, service_of(PortSpace::Tcp, 7174));
  EXPECT_EQ(r.qpn, 0x11u);
  EXPECT_EQ(r.psn, ib::Psn(0x86ec4b));
  EXPECT_EQ(r.responder_resources, 1);
  EXPECT_EQ(r.initiator_depth, 1);
  EXPECT_EQ(r.remote_timeout, 20);
  EXPECT_EQ(r.local_timeout, 20);
  EXPECT_EQ(r.retry_count, 7);
  EXPECT_EQ(r.rnr_retry, 7);
  EXPECT_EQ(r.max_cm_retries, 15);
  EXPECT_EQ(r.path_mtu, 3);
  EXPECT_EQ(r.pkey, 0xffff);
  EXPECT_EQ(r.transport, Transport::Rc);
  EXPECT_EQ(r.primary.local_lid, 0xffff);
  EXPECT_EQ(r.primary.ack_timeout, 19);
  EXPECT_EQ(r.primary.hop_limit, 64);
  EXPECT_EQ(address_of(r.primary.local), IpAddress::v4(10, 77, 0, 2));
  EXPECT_EQ(address_of(r.primary.remote), IpAddress::v4(10, 77, 0, 3));
  EXPECT_FALSE(r.alternate.any());
  const auto ip = read_ip_header(r.private_data);
  ASSERT_TRUE(ip);
  EXPECT_EQ(ip->source, IpAddress::v4(10, 77, 0, 2));
  EXPECT_EQ(ip->destination, IpAddress::v4(10, 77, 0, 3));
  EXPECT_EQ(ip->source_port, 0xaa5a);

  const Rep p = read_rep(c.first(Attribute::Rep));
  EXPECT_EQ(p.remote_id, r.local_id);
  EXPECT_EQ(p.qpn, 0x11u);
  EXPECT_EQ(p.psn, ib::Psn(0xb77b34));
  EXPECT_EQ(p.responder_resources, 1);
  EXPECT_EQ(p.initiator_depth, 1);
  EXPECT_EQ(p.ack_delay, 15);
  EXPECT_EQ(p.rnr_retry, 7);
  EXPECT_EQ(read_header(c.first(Attribute::Rep))->transaction,
            read_header(c.first(Attribute::Req))->transaction);
  const Dreq d = read_dreq(c.first(Attribute::Dreq));
  EXPECT_EQ(d.remote_qpn, p.qpn);
}

TEST(CmCaptures, RpingOverIpv6IsUnderstood) {
  const Capture c("rxe-rxe-rping-ipv6-C1-S100.pcap");
  const Req r = read_req(c.first(Attribute::Req));
  EXPECT_EQ(address_of(r.primary.local), *IpAddress::parse("fd77::2"));
  const auto ip = read_ip_header(r.private_data);
  ASSERT_TRUE(ip);
  EXPECT_EQ(ip->source, *IpAddress::parse("fd77::2"));
  EXPECT_EQ(ip->destination, *IpAddress::parse("fd77::3"));
}

TEST(CmCaptures, ARefusalIsUnderstood) {
  const Capture c("rxe-rxe-cm-reject-no-listener.pcap");
  const Rej r = read_rej(c.first(Attribute::Rej));
  EXPECT_EQ(r.local_id, 0u);
  EXPECT_EQ(r.remote_id, read_req(c.first(Attribute::Req)).local_id);
  EXPECT_EQ(r.which, Which::Req);
  EXPECT_EQ(r.reason, Reason::NoSuchService);
}

TEST(CmCaptures, UdaddyIsUnderstood) {
  const Capture c("rxe-rxe-udaddy-sidr-ud-imm.pcap");
  const SidrReq r = read_sidr_req(c.first(Attribute::SidrReq));
  EXPECT_EQ(r.service, service_of(PortSpace::Udp, 7174));
  EXPECT_EQ(r.pkey, 0xffff);
  EXPECT_TRUE(read_ip_header(r.private_data));
  const SidrRep p = read_sidr_rep(c.first(Attribute::SidrRep));
  EXPECT_EQ(p.request_id, r.request_id);
  EXPECT_EQ(p.status, SidrStatus::Valid);
  EXPECT_EQ(p.qpn, 0x1au);
  EXPECT_EQ(p.qkey, 0x01234567u);
}

}  // namespace
}  // namespace urnic::ib_cm
