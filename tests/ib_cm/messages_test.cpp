// Messages against offsets of the standard: for each field, the bytes that only this value affects,
// worked out by hand.
#include "ib_cm/messages.h"

#include <gtest/gtest.h>

#include <functional>

#include "support/golden.h"

namespace urnic::ib_cm {
namespace {

using urnic::test::Bytes;
using urnic::test::from_hex;
using urnic::test::to_hex;

// Setting a field changes exactly these bytes of the body, from `at` on.
template <class Message>
struct Row {
  const char* name;
  std::size_t at;
  const char* hex;
  std::function<void(Message&)> set;
};

template <class Message>
void expect_rows(const std::vector<Row<Message>>& rows,
                 const std::function<Mad(const Message&)>& write_it) {
  for (const Row<Message>& row : rows) {
    Message m;
    const Mad without = write_it(m);
    row.set(m);
    const Mad with = write_it(m);
    Bytes expected(without.begin(), without.end());
    const Bytes bytes = from_hex(row.hex);
    std::copy(bytes.begin(), bytes.end(),
              expected.begin() + static_cast<std::ptrdiff_t>(kMadHeaderBytes + row.at));
    EXPECT_EQ(to_hex(with), to_hex(expected)) << row.name;
    EXPECT_NE(with, without) << row.name;
  }
}

Gid gid(std::uint8_t first) {
  Gid g;
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = static_cast<std::uint8_t>(first + i);
  return g;
}
const Bytes kData = {0xd1, 0xd2, 0xd3};

// proves: IB-135
TEST(Messages, FieldsOfReqHaveTheOffsetsOfTheStandard) {
  const std::vector<Row<Req>> rows = {
      {"local id", 0, "01020304", [](Req& r) { r.local_id = 0x01020304; }},
      {"vendor", 5, "0a0b0c", [](Req& r) { r.vendor_id = 0x0a0b0c; }},
      {"service", 8, "0102030405060708", [](Req& r) { r.service = 0x0102030405060708; }},
      {"guid", 16, "1112131415161718", [](Req& r) { r.ca_guid = 0x1112131415161718; }},
      {"q key", 28, "21222324", [](Req& r) { r.qkey = 0x21222324; }},
      {"qpn", 32, "313233", [](Req& r) { r.qpn = 0x313233; }},
      {"responder resources", 35, "fe", [](Req& r) { r.responder_resources = 0xfe; }},
      {"eecn", 36, "414243", [](Req& r) { r.eecn = 0x414243; }},
      {"initiator depth", 39, "fd", [](Req& r) { r.initiator_depth = 0xfd; }},
      {"remote eecn", 40, "515253", [](Req& r) { r.remote_eecn = 0x515253; }},
      {"remote timeout", 43, "f8", [](Req& r) { r.remote_timeout = 31; }},
      {"transport", 43, "02", [](Req& r) { r.transport = Transport::Uc; }},
      {"transport", 43, "06", [](Req& r) { r.transport = Transport::Extended; }},
      {"credits", 43, "01", [](Req& r) { r.credits = true; }},
      {"psn", 44, "616263", [](Req& r) { r.psn = ib::Psn(0x616263); }},
      {"local timeout", 47, "f8", [](Req& r) { r.local_timeout = 31; }},
      {"retry count", 47, "07", [](Req& r) { r.retry_count = 7; }},
      {"p key", 48, "7172", [](Req& r) { r.pkey = 0x7172; }},
      {"path mtu", 50, "f0", [](Req& r) { r.path_mtu = 15; }},
      {"rdc", 50, "08", [](Req& r) { r.rdc = true; }},
      {"rnr retry", 50, "07", [](Req& r) { r.rnr_retry = 7; }},
      {"max cm retries", 51, "f0", [](Req& r) { r.max_cm_retries = 15; }},
      {"srq", 51, "08", [](Req& r) { r.srq = true; }},
      {"extended", 51, "07", [](Req& r) { r.extended = 7; }},
      {"local lid", 52, "8182", [](Req& r) { r.primary.local_lid = 0x8182; }},
      {"remote lid", 54, "8384", [](Req& r) { r.primary.remote_lid = 0x8384; }},
      {"local gid", 56, "000102030405060708090a0b0c0d0e0f",
       [](Req& r) { r.primary.local = gid(0); }},
      {"remote gid", 72, "101112131415161718191a1b1c1d1e1f",
       [](Req& r) { r.primary.remote = gid(0x10); }},
      {"flow label", 88, "fffff000", [](Req& r) { r.primary.flow_label = 0xfffff; }},
      {"rate", 91, "3f", [](Req& r) { r.primary.rate = 63; }},
      {"traffic class", 92, "91", [](Req& r) { r.primary.traffic_class = 0x91; }},
      {"hop limit", 93, "92", [](Req& r) { r.primary.hop_limit = 0x92; }},
      {"service level", 94, "f0", [](Req& r) { r.primary.service_level = 15; }},
      {"subnet local", 94, "08", [](Req& r) { r.primary.subnet_local = true; }},
      {"ack timeout", 95, "f8", [](Req& r) { r.primary.ack_timeout = 31; }},
      {"alternate local lid", 96, "a1a2", [](Req& r) { r.alternate.local_lid = 0xa1a2; }},
      {"alternate local gid", 100, "202122232425262728292a2b2c2d2e2f",
       [](Req& r) { r.alternate.local = gid(0x20); }},
      {"alternate ack timeout", 139, "f8", [](Req& r) { r.alternate.ack_timeout = 31; }},
      {"private data", 140, "d1d2d3", [](Req& r) { r.private_data = kData; }},
  };
  expect_rows<Req>(rows, [](const Req& r) { return write(7, r); });
}

// proves: IB-135
TEST(Messages, FieldsOfRepHaveTheOffsetsOfTheStandard) {
  const std::vector<Row<Rep>> rows = {
      {"local id", 0, "01020304", [](Rep& r) { r.local_id = 0x01020304; }},
      {"remote id", 4, "11121314", [](Rep& r) { r.remote_id = 0x11121314; }},
      {"q key", 8, "21222324", [](Rep& r) { r.qkey = 0x21222324; }},
      {"qpn", 12, "313233", [](Rep& r) { r.qpn = 0x313233; }},
      {"vendor, high", 15, "0a", [](Rep& r) { r.vendor_id = 0x0a0000; }},
      {"vendor, middle", 19, "0b", [](Rep& r) { r.vendor_id = 0x000b00; }},
      {"vendor, low", 23, "0c", [](Rep& r) { r.vendor_id = 0x00000c; }},
      {"eecn", 16, "414243", [](Rep& r) { r.eecn = 0x414243; }},
      {"psn", 20, "616263", [](Rep& r) { r.psn = ib::Psn(0x616263); }},
      {"responder resources", 24, "fe", [](Rep& r) { r.responder_resources = 0xfe; }},
      {"initiator depth", 25, "fd", [](Rep& r) { r.initiator_depth = 0xfd; }},
      {"ack delay", 26, "f8", [](Rep& r) { r.ack_delay = 31; }},
      {"failover", 26, "06", [](Rep& r) { r.failover = 3; }},
      {"credits", 26, "01", [](Rep& r) { r.credits = true; }},
      {"rnr retry", 27, "e0", [](Rep& r) { r.rnr_retry = 7; }},
      {"srq", 27, "10", [](Rep& r) { r.srq = true; }},
      {"guid", 28, "1112131415161718", [](Rep& r) { r.ca_guid = 0x1112131415161718; }},
      {"private data", 36, "d1d2d3", [](Rep& r) { r.private_data = kData; }},
  };
  expect_rows<Rep>(rows, [](const Rep& r) { return write(7, r); });
}

TEST(Messages, FieldsOfTheOthersHaveTheOffsetsOfTheStandard) {
  expect_rows<Mra>({{"local id", 0, "01020304", [](Mra& m) { m.local_id = 0x01020304; }},
                    {"remote id", 4, "11121314", [](Mra& m) { m.remote_id = 0x11121314; }},
                    {"which", 8, "40", [](Mra& m) { m.which = Which::Rep; }},
                    {"which", 8, "80", [](Mra& m) { m.which = Which::Other; }},
                    {"service timeout", 9, "f8", [](Mra& m) { m.service_timeout = 31; }},
                    {"private data", 10, "d1d2d3", [](Mra& m) { m.private_data = kData; }}},
                   [](const Mra& m) { return write(7, m); });
  expect_rows<Rej>({{"local id", 0, "01020304", [](Rej& r) { r.local_id = 0x01020304; }},
                    {"remote id", 4, "11121314", [](Rej& r) { r.remote_id = 0x11121314; }},
                    {"which", 8, "80", [](Rej& r) { r.which = Which::Other; }},
                    {"reason", 10, "001c", [](Rej& r) { r.reason = Reason::Consumer; }},
                    {"information", 9, "060000d1d2d3", [](Rej& r) { r.information = kData; }},
                    {"private data", 84, "d1d2d3", [](Rej& r) { r.private_data = kData; }}},
                   [](const Rej& r) { return write(7, r); });
  expect_rows<Rtu>({{"local id", 0, "01020304", [](Rtu& r) { r.local_id = 0x01020304; }},
                    {"remote id", 4, "11121314", [](Rtu& r) { r.remote_id = 0x11121314; }},
                    {"private data", 8, "d1d2d3", [](Rtu& r) { r.private_data = kData; }}},
                   [](const Rtu& r) { return write_rtu(7, r); });
  expect_rows<Dreq>({{"local id", 0, "01020304", [](Dreq& d) { d.local_id = 0x01020304; }},
                     {"remote id", 4, "11121314", [](Dreq& d) { d.remote_id = 0x11121314; }},
                     {"remote qpn", 8, "313233", [](Dreq& d) { d.remote_qpn = 0x313233; }},
                     {"private data", 12, "d1d2d3", [](Dreq& d) { d.private_data = kData; }}},
                    [](const Dreq& d) { return write(7, d); });
}

// proves: IB-141
TEST(Messages, FieldsOfSidrHaveTheOffsetsOfTheStandard) {
  expect_rows<SidrReq>(
      {{"request id", 0, "01020304", [](SidrReq& r) { r.request_id = 0x01020304; }},
       {"p key", 4, "7172", [](SidrReq& r) { r.pkey = 0x7172; }},
       {"service", 8, "0102030405060708", [](SidrReq& r) { r.service = 0x0102030405060708; }},
       {"private data", 16, "d1d2d3", [](SidrReq& r) { r.private_data = kData; }}},
      [](const SidrReq& r) { return write(7, r); });
  expect_rows<SidrRep>(
      {{"request id", 0, "01020304", [](SidrRep& r) { r.request_id = 0x01020304; }},
       {"status", 4, "05", [](SidrRep& r) { r.status = SidrStatus::Version; }},
       {"qpn", 8, "313233", [](SidrRep& r) { r.qpn = 0x313233; }},
       {"service", 12, "0102030405060708", [](SidrRep& r) { r.service = 0x0102030405060708; }},
       {"q key", 20, "01234567", [](SidrRep& r) { r.qkey = 0x01234567; }},
       {"private data", 96, "d1d2d3", [](SidrRep& r) { r.private_data = kData; }}},
      [](const SidrRep& r) { return write(7, r); });
  SidrRep r;
  r.information = kData;
  const Mad m = write(7, r);
  EXPECT_EQ(m[24 + 5], 3);
  EXPECT_EQ(to_hex(ByteView(m).subspan(24 + 24, 4)), "d1d2d300");
}

TEST(Messages, HeadersHaveTheAttributeOfTheirMessage) {
  EXPECT_EQ(read_header(write(7, Req()))->attribute, Attribute::Req);
  EXPECT_EQ(read_header(write(7, Mra()))->attribute, Attribute::Mra);
  EXPECT_EQ(read_header(write(7, Rej()))->attribute, Attribute::Rej);
  EXPECT_EQ(read_header(write(7, Rep()))->attribute, Attribute::Rep);
  EXPECT_EQ(read_header(write_rtu(7, Rtu()))->attribute, Attribute::Rtu);
  EXPECT_EQ(read_header(write(7, Dreq()))->attribute, Attribute::Dreq);
  EXPECT_EQ(read_header(write_drep(7, Drep()))->attribute, Attribute::Drep);
  EXPECT_EQ(read_header(write(7, SidrReq()))->attribute, Attribute::SidrReq);
  EXPECT_EQ(read_header(write(7, SidrRep()))->attribute, Attribute::SidrRep);
  const Mad apr = write(7, Apr{1, 2, kAprUnsupported});
  EXPECT_EQ(read_header(apr)->attribute, Attribute::Apr);
  EXPECT_EQ(to_hex(ByteView(apr).subspan(24, 12)), "000000010000000200020000");
}

// A length field of a peer is not trusted.
TEST(Messages, AdditionalInformationIsLimitedToItsField) {
  Mad rej = write(7, Rej());
  rej[24 + 9] = 0xfe;  // 127
  EXPECT_EQ(read_rej(rej).information.size(), 72u);
  EXPECT_EQ(read_rej(rej).information.data(), rej.data() + 24 + 12);
  Mad rep = write(7, SidrRep());
  rep[24 + 5] = 0xff;
  EXPECT_EQ(read_sidr_rep(rep).information.size(), 72u);
}

// Data of the owner is limited, too.
TEST(Messages, PrivateDataIsTruncatedToItsField) {
  const Bytes much(400, 0xee);
  const auto tail = [](const Mad& m, std::size_t room) {
    return std::all_of(m.end() - static_cast<std::ptrdiff_t>(room), m.end(),
                       [](std::uint8_t b) { return b == 0xee; }) &&
           m[kMadBytes - room - 1] != 0xee;
  };
  Req req;
  req.private_data = much;
  EXPECT_TRUE(tail(write(7, req), 92));
  Rep rep;
  rep.private_data = much;
  EXPECT_TRUE(tail(write(7, rep), 196));
  Rej rej;
  rej.private_data = much;
  EXPECT_TRUE(tail(write(7, rej), 148));
  EXPECT_TRUE(tail(write_rtu(7, {0, 0, much}), 224));
  EXPECT_TRUE(tail(write(7, Dreq{0, 0, 0, much}), 220));
  EXPECT_TRUE(tail(write_drep(7, {0, 0, much}), 224));
  EXPECT_TRUE(tail(write(7, Mra{0, 0, Which::Req, 0, much}), 222));
  EXPECT_TRUE(tail(write(7, SidrReq{0, 0, 0, much}), 216));
  SidrRep sidr;
  sidr.private_data = much;
  EXPECT_TRUE(tail(write(7, sidr), 136));
}

}  // namespace
}  // namespace urnic::ib_cm
