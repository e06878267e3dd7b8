// Real traffic of the Linux kernel's iWARP, read by our parsers and counted as tshark does.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ddp_rdma/siw_captures.h"
#include "ddp_rdma/terminate.h"
#include "mpa/builder.h"

namespace urnic::ddp::siw_captures {
namespace {

TEST(Captures, EveryFpduOfLinuxSiwIsParsedAndCountedAsByTshark) {
  for (const Expected& e : expected()) {
    SCOPED_TRACE(e.file);
    const Capture capture = load(e.file);
    EXPECT_EQ(capture.connections.size(), e.connections);
    for (const Connection& c : capture.connections) EXPECT_EQ(c.crc, e.crc);
    expect_counts(count(capture), e.counts);
  }
}

// The builder makes the same bytes from the parsed values (siw also sends a CRC field of 0 when CRC
// is off). Only the pad may differ: in some short FPDUs siw leaves old bytes there, and the CRC
// covers them.
TEST(Captures, EveryFpduIsRebuiltByteForByte) {
  std::size_t whole = 0;
  for (const Expected& e : expected()) {
    SCOPED_TRACE(e.file);
    const Capture capture = load(e.file);
    for (const Connection& c : capture.connections) {
      for (const Fpdu& f : c.fpdus) {
        std::uint8_t header[kMaxHeader];
        const std::uint32_t n = emit_header(f.segment.header, header);
        Bytes again(f.bytes.size());
        const auto built =
            mpa::build_fpdu(again.data(), {header, n}, {&f.segment.payload, 1}, c.crc);
        ASSERT_EQ(built.len, f.bytes.size());
        const std::size_t pad = mpa::kLengthField + mpa::ulpdu_of(f.bytes).size();
        const bool zero = std::all_of(f.bytes.begin() + pad, f.bytes.end() - mpa::kCrcField,
                                      [](std::uint8_t b) { return b == 0; });
        const std::size_t compared = zero ? again.size() : pad;
        ASSERT_EQ(to_hex(ByteView(again).first(compared)),
                  to_hex(ByteView(f.bytes).first(compared)));
        whole += zero;
      }
    }
  }
  EXPECT_GT(whole, 280u);
}

TEST(Captures, StartupFramesAreUnderstoodAndRebuilt_RFC6581_9) {
  for (const Expected& e : expected()) {
    SCOPED_TRACE(e.file);
    for (const Connection& c : load(e.file).connections) {
      EXPECT_EQ(c.request.revision, 2);
      EXPECT_TRUE(c.request.enhanced && c.reply.enhanced);
      EXPECT_LE(c.reply.ord, c.request.ird);
      for (const auto* f : {&c.request, &c.reply}) {
        EXPECT_FALSE(f->markers);
        EXPECT_FALSE(f->reject);
        EXPECT_EQ(f->reserved, 0);
        EXPECT_EQ(f->private_len, 0);
      }
    }
  }
  const auto p2p = load("siw-siw-rping-p2p-rtr-write-and-read-offered.pcap");
  ASSERT_EQ(p2p.connections.size(), 1u);
  const Connection& c = p2p.connections[0];
  EXPECT_TRUE(c.request.peer_to_peer && c.reply.peer_to_peer);
  EXPECT_EQ(c.request.rtr, mpa::kRtrWrite | mpa::kRtrRead);
  // Our initiator reads siw's Reply like siw itself: the first FPDU is the Write RTR.
  const auto agreement = mpa::read_reply(c.request, c.reply, {});
  ASSERT_TRUE(agreement.ok());
  EXPECT_EQ(agreement->rtr, mpa::kRtrWrite);
  ASSERT_FALSE(c.fpdus.empty());
  EXPECT_EQ(c.fpdus[0].segment.header.op, Opcode::Write);
  EXPECT_TRUE(c.fpdus[0].segment.payload.empty());
}

// Requests and responses match: all responses of a Read carry its sink STag, in order and without a
// gap.
TEST(Captures, ReadResponsesMatchTheirReadRequests) {
  const auto capture = load("siw-siw-ib_read_bw-default-16K-n8.pcap");
  std::uint64_t asked = 0, answered = 0;
  for (const Connection& c : capture.connections) {
    std::vector<ReadRequest> reads;
    for (const Fpdu& f : c.fpdus) {
      if (f.segment.header.op == Opcode::ReadRequest) reads.push_back(f.segment.header.read);
    }
    std::size_t current = 0;
    std::uint64_t filled = 0;
    for (const Fpdu& f : c.fpdus) {
      const SegmentHeader& h = f.segment.header;
      if (h.op != Opcode::ReadResponse) continue;
      ASSERT_LT(current, reads.size());
      EXPECT_EQ(h.stag, reads[current].sink_stag);
      EXPECT_EQ(h.to, reads[current].sink_to + filled);
      filled += f.segment.payload.size();
      EXPECT_EQ(h.last, filled == reads[current].size);
      if (!h.last) continue;
      asked += reads[current].size;
      answered += filled;
      filled = 0;
      ++current;
    }
    EXPECT_EQ(current, reads.size());
  }
  EXPECT_EQ(asked, 8u * 16384);
  EXPECT_EQ(answered, 8u * 16384);
}

TEST(Captures, SiwsTerminateIsParsedAsSiwMeansIt_RFC5040_4_8) {
  const auto capture = load("siw-terminate-no-recv-buffer.pcap");
  ASSERT_EQ(capture.connections.size(), 1u);
  for (const Fpdu& f : capture.connections[0].fpdus) {
    if (f.segment.header.op != Opcode::Terminate) continue;
    const TerminateInfo t = parse_terminate(f.segment.payload);
    EXPECT_TRUE(t.swapped);
    EXPECT_EQ(t.layer, 1);
    EXPECT_EQ(t.etype, 2);
    EXPECT_EQ(t.code, 2);
    EXPECT_TRUE(t.has_ddp);
    EXPECT_FALSE(t.has_rdmap);
  }
}

}  // namespace
}  // namespace urnic::ddp::siw_captures
