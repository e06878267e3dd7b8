#include "ddp_rdma/header.h"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "ddp_rdma/atomic_request.h"
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

Violation violation_of(ByteView bytes) {
  const auto s = parse_segment(bytes);
  return s.ok() ? Violation::None : s.error();
}

Violation with(Bytes bytes, std::size_t at, std::uint8_t value) {
  bytes[at] = value;
  return violation_of(bytes);
}

TEST(Header, RandomHeadersSurviveTheRoundTrip) {
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    SegmentHeader h;
    h.op = static_cast<Opcode>(rng.below(kOpcodes));
    const bool atomic = h.op == Opcode::AtomicRequest || h.op == Opcode::AtomicResponse;
    h.last = rng.chance(0.5) || h.op == Opcode::ReadRequest || h.op == Opcode::Terminate || atomic;
    const auto r32 = [&rng] { return static_cast<std::uint32_t>(rng.next()); };
    if (h.tagged()) {
      h.stag = r32();
      h.to = rng.next();
    } else {
      const bool single = h.op == Opcode::ReadRequest || h.op == Opcode::Terminate || atomic;
      h.qn = h.op == Opcode::ReadRequest      ? kQnReadRequest
             : h.op == Opcode::AtomicRequest  ? kQnReadRequest
             : h.op == Opcode::AtomicResponse ? kQnAtomicResponse
             : h.op == Opcode::Terminate      ? kQnTerminate
                                              : kQnSend;
      h.msn = r32();
      h.mo = single ? 0 : r32() >> 1;
      if (h.op == Opcode::SendInv || h.op == Opcode::SendSeInv) h.inv_stag = r32();
      if (carries_immediate(h.op) && rng.chance(0.5)) {
        h.with_immediate = true;
        h.mo = 0;
        h.immediate = rng.next();
      }
    }
    if (h.op == Opcode::ReadRequest) h.read = {r32(), rng.next(), r32(), r32(), rng.next()};
    if (h.op == Opcode::AtomicResponse) h.atomic_reply = {r32(), rng.next()};

    Bytes b(kMaxHeader);
    const std::uint32_t n = emit_header(h, b.data());
    EXPECT_EQ(n, h.tagged()                       ? kTaggedHeader
                 : h.op == Opcode::ReadRequest    ? kReadRequestHeader
                 : h.with_immediate               ? kUntaggedHeader + kImmediateData
                 : h.op == Opcode::AtomicResponse ? kAtomicResponseHeader
                                                  : kUntaggedHeader);
    b.resize(n);
    const bool none = h.op == Opcode::ReadRequest || h.op == Opcode::AtomicResponse;
    Bytes payload = test::random_bytes(rng, none ? 0 : rng.below(50));
    if (h.op == Opcode::AtomicRequest) {
      payload = test::random_bytes(rng, kAtomicRequest);
      payload[3] &= 0xf2;  // an existing operation
    }
    b.insert(b.end(), payload.begin(), payload.end());
    const auto s = parse_segment(b);
    ASSERT_TRUE(s.ok());
    EXPECT_EQ(s->header.op, h.op);
    EXPECT_EQ(s->header.last, h.last);
    EXPECT_EQ(s->header.stag, h.stag);
    EXPECT_EQ(s->header.to, h.to);
    EXPECT_EQ(s->header.inv_stag, h.inv_stag);
    EXPECT_EQ(s->header.qn, h.qn);
    EXPECT_EQ(s->header.msn, h.msn);
    EXPECT_EQ(s->header.mo, h.mo);
    EXPECT_EQ(s->header.with_immediate, h.with_immediate);
    EXPECT_EQ(s->header.immediate, h.immediate);
    EXPECT_EQ(s->header.atomic_reply.id, h.atomic_reply.id);
    EXPECT_EQ(s->header.atomic_reply.original, h.atomic_reply.original);
    EXPECT_EQ(s->header.read.sink_stag, h.read.sink_stag);
    EXPECT_EQ(s->header.read.sink_to, h.read.sink_to);
    EXPECT_EQ(s->header.read.size, h.read.size);
    EXPECT_EQ(s->header.read.source_stag, h.read.source_stag);
    EXPECT_EQ(s->header.read.source_to, h.read.source_to);
    EXPECT_EQ(to_hex(s->payload), to_hex(payload));
    if (HasFailure()) return;
  }
}

TEST(Header, ReservedBitsAreNeverChecked_RFC5041_4_1) {
  for (const char* name : {"A1", "B1", "C1", "D1", "E3"}) {
    SCOPED_TRACE(name);
    Bytes b = ulpdu(name);
    b[0] |= 0x3c;
    b[1] |= 0x30;
    ASSERT_EQ(violation_of(b), Violation::None);
  }
}

TEST(Header, InvalidateStagIsIgnoredInOtherOpcodes_RFC5040_4_1) {
  Bytes b = ulpdu("A1");
  b[3] = 0xab;
  EXPECT_EQ(parse_segment(b)->header.inv_stag, 0u);
}

TEST(Header, DdpVersionIsCheckedFirst_RFC5041_7_1) {
  for (const std::uint8_t dv : {0, 2, 3}) {
    EXPECT_EQ(with(ulpdu("B1"), 0, 0xc0 | dv), Violation::TaggedVersion);
    EXPECT_EQ(with(ulpdu("A1"), 0, 0x40 | dv), Violation::UntaggedVersion);
    const Bytes two = {static_cast<std::uint8_t>(0x80 | dv), 0xff};
    EXPECT_EQ(violation_of(two), Violation::TaggedVersion);
  }
}

TEST(Header, RdmapVersionOtherThanOne_RFC5040_4_1) {
  for (const std::uint8_t rv : {0x00, 0x80, 0xc0}) {
    EXPECT_EQ(with(ulpdu("B1"), 1, rv), Violation::RdmapVersion);
    EXPECT_EQ(with(ulpdu("A1"), 1, rv | 3), Violation::RdmapVersion);
  }
}

TEST(Header, UnknownOpcodesAreUnexpected) {
  for (std::uint8_t op = kOpcodes; op < 16; ++op) {
    EXPECT_EQ(with(ulpdu("A1"), 1, 0x40 | op), Violation::UnexpectedOpcode) << int{op};
    EXPECT_EQ(with(ulpdu("B1"), 1, 0x40 | op), Violation::UnexpectedOpcode) << int{op};
  }
}

// Also with bytes that changed after the check.
// proves: E-53
TEST(Header, AnAtomicRequestIsReadAsItWasWritten) {
  Rng rng(7306);
  for (int i = 0; i < 1000; ++i) {
    Bytes b = test::random_bytes(rng, kAtomicRequest), again(kAtomicRequest);
    const AtomicRequest a = parse_atomic_request(b);
    emit_atomic_request(a, again.data());
    const std::uint32_t code = b[3] & 0x0f;
    store_be32(b.data(), code == 0 ? 0 : 2);
    ASSERT_EQ(to_hex(again), to_hex(b));
  }
}

// proves: E-53
TEST(Header, AtomicsAreOfOneSegmentAndOneLength) {
  for (const char* name : {"H1", "H2"}) {
    const Bytes whole = ulpdu(name);
    EXPECT_EQ(violation_of(whole), Violation::None);
    Bytes b = whole;
    b.pop_back();
    EXPECT_EQ(violation_of(b), Violation::StreamCatastrophic);
    b = whole;
    b.push_back(0);
    EXPECT_EQ(violation_of(b), Violation::UntaggedTooLong);
    EXPECT_EQ(with(whole, 0, 0x01), Violation::UntaggedTooLong) << "not the last segment";
    EXPECT_EQ(with(whole, 17, 8), Violation::UntaggedMo);
  }
  for (const std::uint8_t code : {1, 3, 15}) {
    EXPECT_EQ(with(ulpdu("H1"), 21, code), Violation::UnexpectedOpcode) << "no such operation";
  }
  EXPECT_EQ(with(ulpdu("H1"), 21, 0xf2), Violation::None) << "reserved bits";
}

// proves: E-53
TEST(Header, ImmediateDataIsTheBeginningOfItsMessageInOnePiece) {
  const Bytes whole = ulpdu("H3");
  for (std::size_t n = 18; n < 26; ++n) {
    EXPECT_EQ(violation_of(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n))),
              Violation::StreamCatastrophic);
  }
  for (std::uint8_t mo = 1; mo < 8; ++mo) EXPECT_EQ(with(whole, 17, mo), Violation::UntaggedMo);
  Bytes b = whole;
  b[17] = 8;  // the payload after it begins here
  const auto s = parse_segment(b);
  ASSERT_TRUE(s.ok());
  EXPECT_FALSE(s->header.with_immediate);
  EXPECT_EQ(s->header.mo, 0u);
  EXPECT_EQ(s->payload.size(), 8u);
}

TEST(Header, OpcodeMustSuitTheBufferModel_RFC5040_4_1) {
  for (std::uint8_t op = 0; op < kOpcodes; ++op) {
    const bool tagged = op == 0 || op == 2;
    EXPECT_EQ(with(ulpdu("B1"), 1, 0x40 | op),
              tagged ? Violation::None : Violation::UnexpectedOpcode)
        << int{op};
    if (tagged) {
      EXPECT_EQ(with(ulpdu("A1"), 1, 0x40 | op), Violation::UnexpectedOpcode) << int{op};
    }
  }
}

TEST(Header, OpcodeMustSuitTheQueue_RFC5040_4_1) {
  for (std::uint8_t op : {1, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
    for (std::uint8_t qn = 0; qn < 5; ++qn) {
      Bytes b = op == 1    ? ulpdu("C1")
                : op == 7  ? ulpdu("E3")
                : op == 10 ? ulpdu("H1")
                : op == 11 ? ulpdu("H2")
                           : ulpdu("A1");
      b[1] = 0x40 | op;
      b[9] = qn;
      const std::uint8_t right = op == 1 || op == 10 ? 1 : op == 7 ? 2 : op == 11 ? 3 : 0;
      EXPECT_EQ(violation_of(b), qn == right ? Violation::None
                                 : qn > 3    ? Violation::UntaggedQn
                                             : Violation::UnexpectedOpcode)
          << int{op} << " on " << int{qn};
    }
  }
  EXPECT_EQ(with(ulpdu("A1"), 6, 0x80), Violation::UntaggedQn);  // the high byte of QN counts
}

TEST(Header, SegmentsShorterThanTheirHeaderAreMalformed) {
  for (const char* name : {"A3", "B2", "C1"}) {
    const Bytes whole = ulpdu(name);
    for (std::size_t n = 0; n < whole.size(); ++n) {
      const Bytes part(whole.begin(), whole.begin() + n);
      EXPECT_EQ(violation_of(part), Violation::StreamCatastrophic) << name << " " << n;
    }
  }
}

TEST(Header, ReadRequestHasExactlyItsSize_RFC5040_4_4) {
  Bytes b = ulpdu("C1");
  b.push_back(0);
  EXPECT_EQ(violation_of(b), Violation::UntaggedTooLong);
}

TEST(Header, ReadRequestAndTerminateAreOneSegment) {
  for (const char* name : {"C1", "E3"}) {
    EXPECT_EQ(with(ulpdu(name), 0, 0x01), Violation::UntaggedTooLong) << name;
    EXPECT_EQ(with(ulpdu(name), 17, 1), Violation::UntaggedMo) << name;
  }
}

TEST(Header, MessageOffsetAndLengthStayBelowTwoToThe32_RFC5041_5_2) {
  Bytes b = ulpdu("A1");  // 11 bytes
  store_be32(b.data() + 14, 0xffffffff - 11);
  EXPECT_EQ(violation_of(b), Violation::None);
  store_be32(b.data() + 14, 0xffffffff - 10);
  EXPECT_EQ(violation_of(b), Violation::UntaggedTooLong);
}

TEST(Header, ZeroLengthSegmentsHaveAnEmptyPayload) {
  for (const char* name : {"A3", "B2", "D2"}) {
    const Bytes b = ulpdu(name);
    const auto s = parse_segment(b);
    ASSERT_TRUE(s.ok()) << name;
    EXPECT_TRUE(s->payload.empty()) << name;
    EXPECT_TRUE(s->header.last) << name;
  }
}

TEST(Header, TerminateWithoutItsHeaderIsStillATerminate) {
  Bytes b = ulpdu("E3");
  b.resize(kUntaggedHeader);
  ASSERT_EQ(violation_of(b), Violation::None);
  EXPECT_EQ(parse_segment(b)->header.op, Opcode::Terminate);
}

TEST(Header, HostileUlpdusNeverOverrunAndParseConsistently) {
  std::vector<Bytes> seeds;
  for (const auto& g : test::read_golden("fpdu.txt")) {
    const ByteView u = mpa::ulpdu_of(g.bytes);
    seeds.emplace_back(u.begin(), u.end());
  }
  Rng rng(5040);
  std::uint64_t accepted = 0;
  for (int i = 0; i < 200000; ++i) {
    const Bytes b = rng.chance(0.1) ? test::random_bytes(rng, rng.below(80))
                                    : test::mutate(rng, seeds[rng.below(seeds.size())]);
    const auto s = parse_segment(b);
    if (!s.ok()) {
      ASSERT_NE(s.error(), Violation::None);
      ASSERT_LT(s.error(), Violation::kCount);
      continue;
    }
    ++accepted;
    // The parsed header, emitted again, equals the input except for bits that are not checked.
    Bytes again(kMaxHeader);
    again.resize(emit_header(s->header, again.data()));
    ASSERT_EQ(again.size() + s->payload.size(), b.size());
    Bytes expect(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(again.size()));
    expect[0] &= 0xc3;
    expect[1] &= 0xcf;
    if (!s->header.tagged() && s->header.inv_stag == 0) store_be32(expect.data() + 2, 0);
    ASSERT_EQ(to_hex(again), to_hex(expect));
    ASSERT_TRUE(s->payload.empty() || s->payload.data() + s->payload.size() == b.data() + b.size());
  }
  EXPECT_GT(accepted, 20000u);
}

}  // namespace
}  // namespace urnic::ddp
