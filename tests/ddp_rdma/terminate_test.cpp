#include "ddp_rdma/terminate.h"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "ddp_rdma/header.h"
#include "mpa/fpdu.h"
#include "support/golden.h"
#include "support/random_bytes.h"

namespace urnic::ddp {
namespace {

using test::Bytes;
using test::to_hex;

Bytes ulpdu(const std::string& vector) {
  const auto g = test::golden("fpdu.txt", vector);
  const ByteView u = mpa::ulpdu_of(g.bytes);
  return Bytes(u.begin(), u.end());
}

Bytes build(Violation v, ByteView offending) {
  Bytes b(kMaxTerminate);
  b.resize(build_terminate(v, offending, b.data()));
  return b;
}

TerminateInfo info(ByteView terminate, TerminateWhen when = TerminateWhen::Later) {
  const auto s = parse_segment(terminate);
  EXPECT_TRUE(s.ok());
  return s ? parse_terminate(s->payload, when) : TerminateInfo{};
}

TEST(Terminate, GoldenTerminatesAreBuiltByteForByte_RFC5040_4_8) {
  EXPECT_EQ(to_hex(build(Violation::TaggedInvalidStag, ulpdu("B1"))), to_hex(ulpdu("E1")));
  EXPECT_EQ(to_hex(build(Violation::ReadAccess, ulpdu("C1"))), to_hex(ulpdu("E2")));
  EXPECT_EQ(to_hex(build(Violation::MpaCrc, {})), to_hex(ulpdu("E3")));
  Bytes send = ulpdu("A1");
  send[13] = 9;  // MSN
  EXPECT_EQ(to_hex(build(Violation::UntaggedNoBuffer, send)), to_hex(ulpdu("E4")));
  EXPECT_EQ(to_hex(build(Violation::MpaNoRtr, {})), to_hex(ulpdu("E5")));
}

TEST(Terminate, MpaErrorsCarryNoHeaders) {
  EXPECT_EQ(to_hex(build(Violation::MpaCrc, ulpdu("B1"))), to_hex(ulpdu("E3")));
}

TEST(Terminate, EveryViolationIsBuiltFromItsRowAndParsedBack) {
  for (const char* name : {"A1", "B1", "C1", "D2"}) {
    for (int i = 1; i < static_cast<int>(Violation::kCount); ++i) {
      const ViolationRow& row = violation_row(static_cast<Violation>(i));
      SCOPED_TRACE(std::string(row.name) + " for " + name);
      const Bytes offending = ulpdu(name);
      const Bytes b = build(static_cast<Violation>(i), offending);
      const bool setup = row.layer == 2 && row.code >= 4;
      const TerminateInfo t = info(b, setup ? TerminateWhen::AtSetup : TerminateWhen::Later);
      EXPECT_EQ(t.layer, row.layer);
      EXPECT_EQ(t.etype, row.etype);
      EXPECT_EQ(t.code, row.code);
      EXPECT_FALSE(t.swapped);
      EXPECT_EQ(t.has_ddp, row.with_ddp);
      // Only a Read Request has an RDMAP header to copy.
      EXPECT_EQ(t.has_rdmap, row.with_rdmap && std::string(name) == "C1");
      EXPECT_EQ(t.segment_length, row.with_ddp ? offending.size() : 0);
    }
  }
}

TEST(Terminate, AnIncompleteHeaderIsNotCopied) {
  for (const char* name : {"A3", "B2", "C1"}) {
    const Bytes whole = ulpdu(name);
    for (std::size_t n = 0; n < whole.size(); ++n) {
      const Bytes part(whole.begin(), whole.begin() + n);
      const Bytes b = build(Violation::ReadAccess, part);
      const std::size_t ddp = (whole[0] & 0x80) != 0 ? kTaggedHeader : kUntaggedHeader;
      EXPECT_EQ(b.size(), n < ddp ? 22u : 24u + ddp) << name << " " << n;
      EXPECT_EQ(b[20], n < ddp ? 0 : 0xc0);
    }
  }
}

TEST(Terminate, LengthOfTheLongestSegmentFits) {
  Bytes longest = ulpdu("B1");
  longest.resize(mpa::kMaxUlpdu);
  EXPECT_EQ(info(build(Violation::TaggedBounds, longest)).segment_length, 65535);
}

TEST(Terminate, SiwsPackingIsRecognised) {
  struct Case {
    const char* body;
    int layer, etype, code;
    bool swapped;
  };
  const std::string ddp14 = " 0040 c1401234567800007f0011223344";
  const std::string ddp18 = " 0040 414300000000000000000000000900000000";
  const std::string read = " 0000a511000000000000100000000020 00be22040000000000002000";
  for (const Case& c : {
           Case{"02020000", 2, 0, 2, true},  // CRC: 0/2/02 is not registered
           Case{"20020000", 2, 0, 2, false},
           Case{"20050000", 0, 2, 5, true},  // no FPDU is answered by a set-up error
           Case{"20060000", 0, 2, 6, true},
           Case{"02050000", 0, 2, 5, false},
           Case{"02060000", 0, 2, 6, false},
           Case{"00000000", 0, 0, 0, false},
           Case{"00ff0000", 0, 0, 255, false},
           Case{"f3070000", 15, 3, 7, false},  // neither is registered
           Case{"21020000", 1, 2, 2, true},
           Case{"12020000", 1, 2, 2, false},
           // Flags where the RFC has them take precedence, even with reserved bits set.
           Case{"02028000", 0, 2, 2, false},
           Case{"11000100", 1, 1, 0, true},
           Case{"1200c300", 1, 2, 0, false},
       }) {
    const TerminateInfo t = parse_terminate(test::from_hex(c.body));
    EXPECT_EQ(t.layer, c.layer) << c.body;
    EXPECT_EQ(t.etype, c.etype) << c.body;
    EXPECT_EQ(t.code, c.code) << c.body;
    EXPECT_EQ(t.swapped, c.swapped) << c.body;
    EXPECT_FALSE(t.has_ddp);
  }
  for (const auto& [control, rest, layer, etype, code] :
       {std::tuple{"11000300", ddp14, 1, 1, 0}, std::tuple{"10000700", ddp18 + read, 0, 1, 0},
        std::tuple{"10020700", ddp18 + read, 0, 1, 2}, std::tuple{"21020300", ddp18, 1, 2, 2},
        std::tuple{"20050300", ddp18, 0, 2, 5}, std::tuple{"20060300", ddp14, 0, 2, 6}}) {
    const TerminateInfo t = parse_terminate(test::from_hex(control + rest));
    EXPECT_TRUE(t.swapped) << control;
    EXPECT_EQ(t.layer, layer) << control;
    EXPECT_EQ(t.etype, etype) << control;
    EXPECT_EQ(t.code, code) << control;
    EXPECT_TRUE(t.has_ddp) << control;
    EXPECT_EQ(t.has_rdmap, rest.size() > ddp18.size()) << control;
    EXPECT_EQ(t.segment_length, 0x40) << control;
  }
}

// An initiator that rejects our Reply. No other error is possible yet (RFC 6581, 9).
TEST(Terminate, AtSetupOnlyMpaErrorsAreAcceptedInEitherPacking) {
  for (const auto& [body, code, swapped] :
       {std::tuple{"20040000", 4, false}, std::tuple{"20050000", 5, false},
        std::tuple{"20060000", 6, false}, std::tuple{"20070000", 7, false},
        std::tuple{"02040000", 4, true}, std::tuple{"02050000", 5, true},
        std::tuple{"02060000", 6, true}, std::tuple{"02070000", 7, true}}) {
    const TerminateInfo t = parse_terminate(test::from_hex(body), TerminateWhen::AtSetup);
    EXPECT_EQ(t.layer, 2) << body;
    EXPECT_EQ(t.etype, 0) << body;
    EXPECT_EQ(t.code, code) << body;
    EXPECT_EQ(t.swapped, swapped) << body;
  }
}

TEST(Terminate, GoldenSiwTerminatesParseLikeTheirRfcTwins) {
  const TerminateInfo crc = info(ulpdu("E6")), crc_rfc = info(ulpdu("E3"));
  EXPECT_EQ(std::tuple(crc.layer, crc.etype, crc.code),
            std::tuple(crc_rfc.layer, crc_rfc.etype, crc_rfc.code));
  const TerminateInfo buffer = info(ulpdu("E7")), buffer_rfc = info(ulpdu("E4"));
  EXPECT_EQ(std::tuple(buffer.layer, buffer.etype, buffer.code),
            std::tuple(buffer_rfc.layer, buffer_rfc.etype, buffer_rfc.code));
  EXPECT_EQ(buffer.segment_length, 11);  // only the payload
  EXPECT_TRUE(buffer.has_ddp);
}

TEST(Terminate, TheLengthDecidesWhichHeadersArePresent) {
  // siw also sets R for Send with Invalidate, without a Read header.
  Bytes body = test::from_hex("10090700 000b 4144 00abcd42 00000000 00000001 00000000");
  EXPECT_TRUE(parse_terminate(body).has_ddp);
  EXPECT_FALSE(parse_terminate(body).has_rdmap);
  // A header may follow even if no flag is set.
  body = test::from_hex("11000000 001e c140 12345678 00007f0011223344");
  EXPECT_TRUE(parse_terminate(body).has_ddp);
  body.pop_back();
  EXPECT_FALSE(parse_terminate(body).has_ddp);
  body = test::from_hex("1100c000 001e c140");  // D is set, and the header is cut
  EXPECT_FALSE(parse_terminate(body).has_ddp);
  EXPECT_EQ(parse_terminate(body).segment_length, 30);
}

TEST(Terminate, ShortBodiesYieldZeros) {
  for (std::size_t n = 0; n < 4; ++n) {
    const TerminateInfo t = parse_terminate(Bytes(n, 0x12));
    EXPECT_EQ(t.layer | t.etype | t.code | t.segment_length, 0);
  }
}

TEST(Terminate, HostileBodiesNeverOverrun) {
  std::vector<Bytes> seeds;
  for (const char* name : {"E1", "E2", "E3", "E4", "E5", "E6", "E7"}) {
    const Bytes u = ulpdu(name);
    seeds.emplace_back(u.begin() + 18, u.end());
  }
  Rng rng(7);
  for (int i = 0; i < 200000; ++i) {
    const Bytes b = test::mutate(rng, seeds[rng.below(seeds.size())]);
    const TerminateInfo t = parse_terminate(b);
    ASSERT_TRUE(!t.has_rdmap || (t.has_ddp && b.size() >= 52));
    ASSERT_TRUE(!t.has_ddp || b.size() >= 20);
    // Building from hostile segments is also safe.
    const Bytes built = build(static_cast<Violation>(rng.below(40)), b);
    ASSERT_LE(built.size(), kMaxTerminate);
  }
}

}  // namespace
}  // namespace urnic::ddp
