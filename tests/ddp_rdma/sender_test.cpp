// Cutting in the sender: FPDU sizes, packing, limits, failures.
#include "ddp_rdma/sender.h"

#include <gtest/gtest.h>

#include "ddp_rdma/sender_fixture.h"

namespace urnic::ddp::test {
namespace {

class Sending : public SenderFixture {
 protected:
  using SenderFixture::SenderFixture;
};

TEST_F(Sending, OneFpduPerSegmentSizedByTheMulpdu) {
  // iwarp-wire 1.7: EMSS, payload of a Write, of a Send.
  const std::uint32_t rows[][3] = {{536, 516, 512},
                                   {1448, 1428, 1424},
                                   {1460, 1440, 1436},
                                   {8948, 8928, 8924},
                                   {8960, 8940, 8936}};
  for (const auto& [emss, write, send] : rows) {
    for (const WrOp op : {WrOp::Write, WrOp::Send}) {
      const std::size_t from = wire.log.size();
      ASSERT_EQ(post(op, 20000), verbs::Post::Ok);
      while (send_new(end, wire, emss, emss) != 0) {
      }
      const auto f = fpdus(from);
      std::uint32_t offset = 0;
      for (std::size_t i = 0; i < f.size(); ++i) {
        const SegmentHeader& h = f[i].header;
        const std::uint32_t most = op == WrOp::Write ? write : send;
        EXPECT_EQ(f[i].payload.size(), std::min(most, 20000 - offset));
        EXPECT_EQ(op == WrOp::Write ? h.to - 0x1000 : h.mo, offset);
        EXPECT_EQ(h.last, i + 1 == f.size());
        offset += static_cast<std::uint32_t>(f[i].payload.size());
      }
      EXPECT_EQ(offset, 20000u);
      ack();
    }
  }
}

TEST_F(Sending, SendOf2048AtMulpdu1500) {  // the example of RFC 5041, 5.3
  ASSERT_EQ(post(WrOp::Send, 2048), verbs::Post::Ok);
  const std::uint32_t emss = 1508;  // MULPDU 1502: two more bytes fit
  while (send_new(end, wire, emss, emss) != 0) {
  }
  const auto f = fpdus();
  ASSERT_EQ(f.size(), 2u);
  EXPECT_EQ(f[0].payload.size(), 1484u);
  EXPECT_EQ(f[1].header.mo, 1484u);
}

TEST_F(Sending, HeadersOfEveryOperation) {
  ASSERT_EQ(post(WrOp::Send, 4), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Send, 4, 0, kSolicited), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::SendInv, 4), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::SendInv, 4, 0, kSolicited), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 4), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Read, 40), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 0), verbs::Post::Ok);
  ASSERT_GT(go(), 0u);
  const auto f = fpdus();
  ASSERT_EQ(f.size(), 7u);
  const Opcode want[] = {Opcode::Send,  Opcode::SendSe,      Opcode::SendInv, Opcode::SendSeInv,
                         Opcode::Write, Opcode::ReadRequest, Opcode::Write};
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(f[i].header.op, want[i]);
    EXPECT_TRUE(f[i].header.last);
    if (i < 4) {
      EXPECT_EQ(f[i].header.msn, i + 1);
    }
  }
  EXPECT_EQ(f[0].header.inv_stag, 0u);
  EXPECT_EQ(f[2].header.inv_stag, 0x9876u);
  EXPECT_EQ(f[4].header.stag, 0x4321u);
  EXPECT_EQ(f[4].header.to, 0x1000u);
  EXPECT_EQ(f[5].header.msn, 1u);
  EXPECT_EQ(f[5].header.qn, kQnReadRequest);
  EXPECT_EQ(f[5].header.read.size, 40u);
  EXPECT_EQ(f[5].header.read.source_stag, 0x4321u);
  EXPECT_EQ(f[5].header.read.source_to, 0x1000u);
  EXPECT_NE(f[5].header.read.sink_stag, 0u);
}

TEST_F(Sending, SmallMessagesArePackedWhole) {
  for (int i = 0; i < 20; ++i) ASSERT_EQ(post(WrOp::Write, 64), verbs::Post::Ok);
  EXPECT_EQ(go(), 17u * 84) << "as many as fit";
  EXPECT_FALSE(push);
  EXPECT_EQ(go(), 3u * 84);
  EXPECT_TRUE(push) << "E-7: the last message ends here";
}

TEST_F(Sending, AMessageThatDoesNotFitBeginsTheNextSegment) {
  ASSERT_EQ(post(WrOp::Write, 1000), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 1000), verbs::Post::Ok);
  EXPECT_EQ(go(), mpa::fpdu_size(1014));
  EXPECT_EQ(go(), mpa::fpdu_size(1014));
}

// proves: E-24
TEST_F(Sending, NoFpduIsCutForATemporarilySmallWindow) {
  ASSERT_EQ(post(WrOp::Write, 5000), verbs::Post::Ok);
  EXPECT_EQ(go(1000), 0u);
  EXPECT_EQ(wire.log.size(), 0u);
  EXPECT_EQ(go(), 1460u) << "1440 and 20";
}

TEST_F(Sending, APermanentlySmallWindowMakesSmallerFpdus) {
  ASSERT_EQ(post(WrOp::Write, 5000), verbs::Post::Ok);
  EXPECT_EQ(go(500, true), 500u);
  EXPECT_EQ(fpdus()[0].payload.size(), 480u) << "still whole and aligned";
  EXPECT_EQ(go(136, true), 136u);
  EXPECT_EQ(go(135, true), 135u) << "below MULPDU 128 alignment is given up";
  EXPECT_EQ(go(), 1460u - 135u) << "the rest of that FPDU, then aligned again";
  EXPECT_EQ(go(), 1460u);
  const auto f = fpdus();
  EXPECT_EQ(f.back().payload.size(), 1440u);
}

TEST_F(Sending, ZeroWindowProbeIsOneByte) {
  ASSERT_EQ(post(WrOp::Send, 100), verbs::Post::Ok);
  EXPECT_EQ(go(1, true), 1u);
  EXPECT_EQ(again(0, 1), 1u);
  EXPECT_EQ(go(), mpa::fpdu_size(118) - 1);
  EXPECT_EQ(fpdus().size(), 1u);
}

TEST_F(Sending, AnMssBelowTheSmallestFpduEndsAlignment) {
  ASSERT_EQ(post(WrOp::Write, 300), verbs::Post::Ok);
  std::uint32_t n = 0;
  while ((n = send_new(end, wire, 88, 88)) != 0) EXPECT_LE(n, 88u);
  EXPECT_EQ(fpdus().back().header.last, true);
}

TEST_F(Sending, SegmentMayBeLongerThanTheMss) {
  ASSERT_EQ(post(WrOp::Write, 5000), verbs::Post::Ok);
  EXPECT_EQ(send_new(end, wire, 65535, kEmss), 3 * 1460u + mpa::fpdu_size(14 + 680));
  EXPECT_EQ(fpdus().size(), 4u);
}

class PackingPartly : public Sending {
 protected:
  static StreamConfig partial() {
    StreamConfig c = config();
    c.pack_partial = true;
    return c;
  }
  PackingPartly() : Sending(partial()) {}
};

TEST_F(PackingPartly, MessageBeginsInTheRoomThatIsLeft) {
  ASSERT_EQ(post(WrOp::Write, 1000), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 1000), verbs::Post::Ok);
  EXPECT_EQ(go(), 1460u);
  EXPECT_EQ(go(), mpa::fpdu_size(14 + 580));
  const auto f = fpdus();
  ASSERT_EQ(f.size(), 3u);
  EXPECT_EQ(f[1].payload.size(), 420u);
}

TEST_F(PackingPartly, DoesNotBeginInLessThanTheSmallestMulpdu) {
  ASSERT_EQ(post(WrOp::Write, 1310), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 1000), verbs::Post::Ok);
  EXPECT_EQ(go(), mpa::fpdu_size(14 + 1310));
}

// ---- estimates

TEST_F(Sending, NothingIsAvailableWhenNothingCanBeCut) {
  EXPECT_EQ(s.available().value(), 0u);
  ASSERT_EQ(post(WrOp::Write, 100, 0, kSignaled), verbs::Post::Ok);
  EXPECT_EQ(s.available().value(), mpa::fpdu_size(114));
  go();
  EXPECT_EQ(s.available().value(), mpa::fpdu_size(114));
}

TEST_F(Sending, EstimateIsEnoughForEverySegment) {
  const std::uint64_t seed = 31337;
  SCOPED_TRACE(seed);
  Rng rng(seed);
  std::uint32_t emss = 1460;
  for (int i = 0; i < 5000; ++i) {
    if (rng.chance(0.4)) {
      post(static_cast<WrOp>(rng.below(3)), static_cast<std::uint32_t>(rng.below(5000)));
    }
    if (rng.chance(0.1)) emss = static_cast<std::uint32_t>(rng.between(140, 9000));
    s.execute_due();
    const std::uint64_t from = wire.log.size(), to = s.available().value();
    if (to > from) {
      const auto limit = static_cast<std::uint32_t>(std::min<std::uint64_t>(emss, to - from));
      ASSERT_NE(send_segment(end, wire, from, limit, emss), 0u) << "stuck";
    }
    if (rng.chance(0.3)) ack();
  }
}

TEST_F(Sending, EstimateIsExactForOneMss) {
  for (const std::uint32_t len : {0u, 1u, 1440u, 1441u, 100000u}) {
    ASSERT_EQ(post(WrOp::Write, len), verbs::Post::Ok);
    ASSERT_EQ(post(WrOp::Send, len), verbs::Post::Ok);
  }
  request_read(10000);
  go();  // the sender knows the MSS now
  const std::uint64_t estimate = s.available().value();
  while (go() != 0) {
  }
  EXPECT_EQ(wire.log.size(), estimate);
}

// ---- failures

TEST_F(Sending, BadLocalKeyEndsTheStreamWithItsOwnStatus) {
  ASSERT_EQ(post(WrOp::Write, 3000, 1), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Send, 10, 2, 0, 0, 0xbad00), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Send, 10, 3), verbs::Post::Ok);
  while (go() != 0) {
  }
  EXPECT_EQ(fpdus().size(), 3u) << "what came before it goes out";
  EXPECT_TRUE(s.failed());
  EXPECT_EQ(s.failure(), Violation::LocalCatastrophic);
  EXPECT_TRUE(s.failure_header().empty());
  flush(end.stream, flush_status(s.failure()), end.sink());
  ASSERT_EQ(end.completions.size(), 3u);
  EXPECT_EQ(end.completions[0].status, Status::Flushed);
  EXPECT_EQ(end.completions[1].status, Status::LocalProtection);
  EXPECT_EQ(end.completions[2].status, Status::Flushed);
}

TEST_F(Sending, ReadSinkNeedsLocalWriteOnly) {
  std::vector<std::uint8_t> plain(100);
  const std::uint32_t read_only = end.add(plain, 0), writable = end.add(plain, kLocalWrite);
  const Sge sge{End::address(plain.data()), 10, writable};
  SendWr wr;
  wr.op = WrOp::Read;
  wr.sges = {&sge, 1};
  ASSERT_EQ(end.stream.sq.post(wr), verbs::Post::Ok);
  EXPECT_EQ(go(), 52u);
  const Sge bad{End::address(plain.data()), 10, read_only};
  wr.sges = {&bad, 1};
  ASSERT_EQ(end.stream.sq.post(wr), verbs::Post::Ok);
  EXPECT_EQ(go(), 0u);
  EXPECT_TRUE(s.failed());
}

TEST_F(Sending, AFailedResponseReportsItsRequestAndThePointReached) {
  const std::uint32_t stag = end.add(source, kRemoteRead);
  const Bytes u = read_request(1, 3000, stag, at(100));
  const Admission a = Admitter(end.stream, true).next(u);
  ASSERT_EQ(deliver(end.stream, place(end.stream, a), end.sink()), Violation::None);
  EXPECT_EQ(go(), 1460u);
  ASSERT_EQ(end.memory.invalidate(stag, kPd), MemoryTable::Invalidate::Ok);
  EXPECT_EQ(go(), 0u);
  EXPECT_EQ(s.failure(), Violation::ReadInvalidStag);
  const auto h = parse_segment(s.failure_header());
  ASSERT_TRUE(h.ok());
  EXPECT_EQ(h->header.read.source_to, at(100) + 1440);
  EXPECT_EQ(h->header.read.size, 3000u - 1440);
  EXPECT_EQ(h->header.read.sink_to, 77u + 1440);
  EXPECT_EQ(h->header.msn, 1u);
  // Bytes sent before can still be retransmitted (E-22).
  EXPECT_EQ(again(0, 1460), 1460u);
}

TEST_F(Sending, InvalidCallsReturnNothing) {
  ASSERT_EQ(post(WrOp::Write, 100), verbs::Post::Ok);
  go();
  Bytes out(1000);
  bool ok = true;
  EXPECT_EQ(s.cut(StreamOffset(5000), 100, kEmss, true).len, 0u) << "beyond the end";
  s.fill(StreamOffset(100), 100, out.data(), &ok);
  EXPECT_FALSE(ok);
  ack();
  EXPECT_EQ(s.cut(StreamOffset(0), 100, kEmss, true).len, 0u) << "acknowledged";
  s.fill(StreamOffset(0), 100, out.data(), &ok);
  EXPECT_FALSE(ok);
}

}  // namespace
}  // namespace urnic::ddp::test
