// Every FPDU of tests/golden/fpdu.txt: parsed into its values, and built from these values byte for
// byte.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "ddp_rdma/atomic_request.h"
#include "ddp_rdma/header.h"
#include "ddp_rdma/terminate.h"
#include "mpa/builder.h"
#include "mpa/fpdu.h"
#include "support/golden.h"

namespace urnic::ddp {
namespace {

using test::Bytes;
using test::from_hex;
using test::to_hex;

struct Vector {
  const char* name;
  SegmentHeader header;
  std::string payload;  // hex
};

SegmentHeader send(Opcode op, std::uint32_t msn, std::uint32_t mo = 0, bool last = true,
                   std::uint32_t inv_stag = 0) {
  SegmentHeader h;
  h.op = op;
  h.last = last;
  h.qn = kQnSend;
  h.msn = msn;
  h.mo = mo;
  h.inv_stag = inv_stag;
  return h;
}

SegmentHeader tagged(Opcode op, std::uint32_t stag, std::uint64_t to, bool last = true) {
  SegmentHeader h;
  h.op = op;
  h.last = last;
  h.stag = stag;
  h.to = to;
  return h;
}

SegmentHeader read_request(const ReadRequest& r) {
  SegmentHeader h = send(Opcode::ReadRequest, 1);
  h.qn = kQnReadRequest;
  h.read = r;
  return h;
}

SegmentHeader immediate(std::uint32_t msn, std::uint64_t data) {
  SegmentHeader h = send(Opcode::Immediate, msn);
  h.with_immediate = true;
  h.immediate = data;
  return h;
}

SegmentHeader atomic_request() {
  SegmentHeader h = send(Opcode::AtomicRequest, 1);
  h.qn = kQnReadRequest;
  return h;
}

std::string payload_of(const AtomicRequest& a) {
  std::uint8_t out[kAtomicRequest];
  emit_atomic_request(a, out);
  return to_hex(out);
}

SegmentHeader atomic_response(const AtomicResponse& a) {
  SegmentHeader h = send(Opcode::AtomicResponse, 1);
  h.qn = kQnAtomicResponse;
  h.atomic_reply = a;
  return h;
}

std::string counting(int from, int to) {
  std::string s;
  for (int i = from; i <= to; ++i) {
    const auto b = static_cast<std::uint8_t>(i);
    s += to_hex({&b, 1});
  }
  return s;
}

std::vector<Vector> vectors() {
  return {
      {"A1", send(Opcode::Send, 1), "68656c6c6f206957415250"},
      {"A2", send(Opcode::SendSeInv, 1, 0, true, 0x00abcd42), "72737021"},
      {"A3", send(Opcode::Send, 2), ""},
      {"B1", tagged(Opcode::Write, 0x12345678, 0x00007f0011223344), counting(0x00, 0x0f)},
      {"B2", tagged(Opcode::Write, 1, 0), ""},
      {"C1", read_request({0x0000a511, 0x1000, 32, 0x00be2204, 0x2000}), ""},
      {"C2", read_request({0, 0, 0, 1, 0}), ""},
      {"D1", tagged(Opcode::ReadResponse, 0x0000a511, 0x1000), counting(0x20, 0x3f)},
      {"D2", tagged(Opcode::ReadResponse, 0, 0), ""},
      {"F1", send(Opcode::Send, 2, 0, false), counting(0x00, 0x17)},
      {"F2", send(Opcode::Send, 2, 24), counting(0x18, 0x1c)},
      {"G1", tagged(Opcode::Write, 0x12345678, 0x00007f0011223344, false), counting(0, 7)},
      {"G2", tagged(Opcode::Write, 0x12345678, 0x00007f001122334c), counting(8, 15)},
      {"H1", atomic_request(),
       payload_of({AtomicCode::CmpSwap, 7, 0x00be2204, 0x2008, 0x1111, ~std::uint64_t{0}, 0x2222,
                   ~std::uint64_t{0}})},
      {"H2", atomic_response({7, 0x2222}), ""},
      {"H3", immediate(1, 0x1122334455667788), ""},
  };
}

// proves: E-53
TEST(Vectors, ValuesToBytes_RFC5040_RFC5041_RFC5044) {
  for (const Vector& v : vectors()) {
    SCOPED_TRACE(v.name);
    const auto want = test::golden("fpdu.txt", v.name).bytes;
    std::uint8_t header[kMaxHeader];
    const std::uint32_t n = emit_header(v.header, header);
    const Bytes payload = from_hex(v.payload);
    const ByteView piece = payload;
    Bytes got(mpa::fpdu_size(n + static_cast<std::uint32_t>(payload.size())));
    const mpa::Built built = mpa::build_fpdu(got.data(), {header, n}, {&piece, 1}, true);
    EXPECT_EQ(built.len, got.size());
    EXPECT_EQ(to_hex(got), to_hex(want));
  }
}

TEST(Vectors, BytesToValues_RFC5040_RFC5041_RFC5044) {
  for (const Vector& v : vectors()) {
    SCOPED_TRACE(v.name);
    const auto g = test::golden("fpdu.txt", v.name);
    const auto s = parse_segment(mpa::ulpdu_of(g.bytes));
    ASSERT_TRUE(s.ok());
    const SegmentHeader& h = s->header;
    EXPECT_EQ(h.op, v.header.op);
    EXPECT_EQ(h.last, v.header.last);
    EXPECT_EQ(h.stag, v.header.stag);
    EXPECT_EQ(h.to, v.header.to);
    EXPECT_EQ(h.inv_stag, v.header.inv_stag);
    EXPECT_EQ(h.qn, v.header.qn);
    EXPECT_EQ(h.msn, v.header.msn);
    EXPECT_EQ(h.mo, v.header.mo);
    EXPECT_EQ(h.with_immediate, v.header.with_immediate);
    EXPECT_EQ(h.immediate, v.header.immediate);
    EXPECT_EQ(h.atomic_reply.id, v.header.atomic_reply.id);
    EXPECT_EQ(h.atomic_reply.original, v.header.atomic_reply.original);
    EXPECT_EQ(h.read.sink_stag, v.header.read.sink_stag);
    EXPECT_EQ(h.read.sink_to, v.header.read.sink_to);
    EXPECT_EQ(h.read.size, v.header.read.size);
    EXPECT_EQ(h.read.source_stag, v.header.read.source_stag);
    EXPECT_EQ(h.read.source_to, v.header.read.source_to);
    EXPECT_EQ(to_hex(s->payload), v.payload);
  }
}

TEST(Vectors, TerminatesToBytes_RFC5040_4_8) {
  Bytes send_msn9 = from_hex("41430000 00000000 00000000 00090000 0000 68656c6c6f206957415250");
  const auto ulpdu = [](const char* name) {
    const auto g = test::golden("fpdu.txt", name);
    const ByteView u = mpa::ulpdu_of(g.bytes);
    return Bytes(u.begin(), u.end());
  };
  for (const auto& [name, violation, offending] :
       {std::tuple{"E1", Violation::TaggedInvalidStag, ulpdu("B1")},
        std::tuple{"E2", Violation::ReadAccess, ulpdu("C1")},
        std::tuple{"E3", Violation::MpaCrc, Bytes()},
        std::tuple{"E4", Violation::UntaggedNoBuffer, send_msn9},
        std::tuple{"E5", Violation::MpaNoRtr, Bytes()}}) {
    SCOPED_TRACE(name);
    std::uint8_t terminate[kMaxTerminate];
    const std::uint32_t n = build_terminate(violation, offending, terminate);
    Bytes got(mpa::fpdu_size(n));
    mpa::build_fpdu(got.data(), {terminate, n}, {}, true);
    EXPECT_EQ(to_hex(got), to_hex(test::golden("fpdu.txt", name).bytes));
  }
}

TEST(Vectors, BytesToTerminates) {
  struct Expect {
    const char* name;
    int layer, etype, code, length;
    bool ddp, rdmap, swapped;
  };
  for (const Expect& e :
       {Expect{"E1", 1, 1, 0, 30, true, false, false}, Expect{"E2", 0, 1, 2, 46, true, true, false},
        Expect{"E3", 2, 0, 2, 0, false, false, false},
        Expect{"E4", 1, 2, 2, 29, true, false, false},
        Expect{"E5", 2, 0, 7, 0, false, false, false}, Expect{"E6", 2, 0, 2, 0, false, false, true},
        Expect{"E7", 1, 2, 2, 11, true, false, true}}) {
    SCOPED_TRACE(e.name);
    const auto g = test::golden("fpdu.txt", e.name);
    const auto s = parse_segment(mpa::ulpdu_of(g.bytes));
    ASSERT_TRUE(s.ok());
    EXPECT_EQ(s->header.op, Opcode::Terminate);
    EXPECT_EQ(s->header.qn, kQnTerminate);
    EXPECT_EQ(s->header.msn, 1u);
    const TerminateInfo t = parse_terminate(
        s->payload, e.layer == 2 && e.code >= 4 ? TerminateWhen::AtSetup : TerminateWhen::Later);
    EXPECT_EQ(t.layer, e.layer);
    EXPECT_EQ(t.etype, e.etype);
    EXPECT_EQ(t.code, e.code);
    EXPECT_EQ(t.segment_length, e.length);
    EXPECT_EQ(t.has_ddp, e.ddp);
    EXPECT_EQ(t.has_rdmap, e.rdmap);
    EXPECT_EQ(t.swapped, e.swapped);
  }
}

TEST(Vectors, EveryGoldenFpduIsTested) {
  EXPECT_EQ(test::read_golden("fpdu.txt").size(), vectors().size() + 7);
}

}  // namespace
}  // namespace urnic::ddp
