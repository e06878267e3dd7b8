// Bytes of the sender: FPDUs that are rebuilt from memory, and copies (E-20..E-22).
#include <gtest/gtest.h>

#include "ddp_rdma/sender_fixture.h"

namespace urnic::ddp::test {
namespace {

class Filling : public SenderFixture {
 protected:
  // Resends [begin, begin+len), without comparing it with the first time.
  Bytes resend(std::uint64_t begin, std::uint32_t len) {
    Bytes out(len);
    bool ok = false;
    const std::uint32_t sum = s.fill(StreamOffset(begin), len, out.data(), &ok);
    EXPECT_TRUE(ok);
    EXPECT_EQ(inet_fold(sum), inet_fold(inet_sum(out)));
    return out;
  }
  Bytes sent(std::uint64_t begin, std::uint64_t len) {
    return {wire.log.begin() + static_cast<std::ptrdiff_t>(begin),
            wire.log.begin() + static_cast<std::ptrdiff_t>(begin + len)};
  }
};

// proves: E-21
TEST_F(Filling, LargeWritesAreRebuiltFromMemoryWithoutACopy) {
  ASSERT_EQ(post(WrOp::Write, 1440), verbs::Post::Ok);
  ASSERT_EQ(go(), 1460u);
  EXPECT_EQ(s.kept_chunks(), 0u);
  EXPECT_EQ(resend(0, 1460), sent(0, 1460));
  source[100] ^= 0xff;  // a consumer that breaks the rules sends its change, with a correct CRC
  const Bytes changed = resend(0, 1460);
  EXPECT_NE(changed, sent(0, 1460));
  EXPECT_EQ(mpa::crc_of(changed), crc32c(ByteView(changed).first(1456)));
  EXPECT_EQ(s.kept_chunks(), 0u);
}

// proves: E-22
TEST_F(Filling, SmallAndInlinePayloadIsACopy) {
  ASSERT_EQ(post(WrOp::Write, 256), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Send, 200, 0, kInline), verbs::Post::Ok);
  std::fill(source.begin(), source.begin() + 100, 1);  // Writes are read when sent, inline data is
                                                       // not
  const std::uint32_t n = go();
  std::fill(source.begin(), source.end(), 0);
  EXPECT_EQ(resend(0, n), sent(0, n));
  EXPECT_EQ(fpdus()[0].payload[0], 1);
  EXPECT_NE(fpdus()[1].payload[0], 1);
}

// proves: E-22
TEST_F(Filling, ReadResponsesAreCopies) {
  request_read(3000, 500);
  const std::uint32_t a = go(), b = go();
  EXPECT_EQ(Bytes(fpdus()[0].payload.begin(), fpdus()[0].payload.end()),
            Bytes(source.begin() + 500, source.begin() + 500 + 1440));
  std::fill(source.begin(), source.end(), 0);
  EXPECT_EQ(resend(0, a), sent(0, a));
  EXPECT_EQ(resend(a, b), sent(a, b));
}

// proves: E-22
TEST_F(Filling, PartlyAcknowledgedOrRecutFpduBecomesACopyFirst) {
  ASSERT_EQ(post(WrOp::Write, 1440), verbs::Post::Ok);
  ASSERT_EQ(go(), 1460u);
  ack(700);
  const auto cut = s.cut(StreamOffset(700), 400, kEmss, false);
  EXPECT_EQ(cut.len, 400u);
  EXPECT_EQ(resend(700, 400), sent(700, 400));
  EXPECT_EQ(s.kept_chunks(), 1u);
  std::fill(source.begin(), source.end(), 0);  // from now on the memory is not used
  EXPECT_EQ(resend(1100, 360), sent(1100, 360));
  EXPECT_EQ(resend(701, 33), sent(701, 33));
  ack();
  EXPECT_EQ(s.kept_chunks(), 0u);
}

TEST_F(Filling, AnyRangeThatWasCutCanBeWritten) {
  for (const std::uint32_t len : {700u, 10u, 333u}) {
    ASSERT_EQ(post(WrOp::Write, len), verbs::Post::Ok);
  }
  while (go() != 0) {
  }
  Rng rng(3);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t begin = rng.below(wire.log.size());
    const auto len = static_cast<std::uint32_t>(rng.between(1, wire.log.size() - begin));
    ASSERT_EQ(resend(begin, len), sent(begin, len)) << begin << " +" << len;
  }
}

TEST_F(Filling, ACutFpduIsReadFromItsSourceOnce) {
  ASSERT_EQ(post(WrOp::Write, 1440), verbs::Post::Ok);
  EXPECT_EQ(go(100, true), 100u);
  std::fill(source.begin(), source.end(), 0);  // between the two parts
  EXPECT_EQ(go(), 1360u);
  EXPECT_EQ(fpdus().size(), 1u) << "the CRC is that of all its bytes";
}

// proves: E-24
TEST_F(Filling, RetransmissionKeepsTheOriginalBoundaries) {
  for (const std::uint32_t len : {1000u, 300u, 40u, 1440u, 5u}) {
    ASSERT_EQ(post(WrOp::Write, len), verbs::Post::Ok);
  }
  while (go() != 0) {
  }
  std::uint64_t at = 0;
  for (const std::uint64_t edge : wire.edges) {
    const auto len = static_cast<std::uint32_t>(edge - at);
    EXPECT_EQ(s.cut(StreamOffset(at), len, kEmss, false).len, len);
    // With more room, whole FPDUs, never a part of one.
    const auto more = s.cut(StreamOffset(at), len + 10, kEmss, false).len;
    EXPECT_EQ(more, len);
    at = edge;
  }
  EXPECT_EQ(s.cut(StreamOffset(0), 700, 700, false).len, 700u) << "the MSS has shrunk";
}

TEST_F(Filling, WithoutCrcTheFieldIsZero) {
  End plain(config());
  plain.stream.sender.start(false);
  Wire w;
  std::vector<std::uint8_t> bytes(3000, 7);
  const std::uint32_t stag = plain.add(bytes, 0);
  const Sge sge{End::address(bytes.data()), 3000, stag};
  SendWr wr;
  wr.sges = {&sge, 1};
  ASSERT_EQ(plain.stream.sq.post(wr), verbs::Post::Ok);
  while (send_new(plain, w, 1460, 1460) != 0) {
  }
  EXPECT_EQ(load_be32(w.log.data() + 1456), 0u);
}

TEST_F(Filling, PiecesOfAnyLengthAndAlignment) {
  Rng rng(8);
  for (int round = 0; round < 200; ++round) {
    std::vector<Sge> sges;
    Bytes want;
    for (int k = 0; k < 4; ++k) {
      const auto len = static_cast<std::uint32_t>(rng.below(rng.chance(0.5) ? 5 : 1500));
      const std::uint64_t offset = rng.below(10000);
      sges.push_back({at(offset), len, key});
      want.insert(want.end(), source.begin() + static_cast<std::ptrdiff_t>(offset),
                  source.begin() + static_cast<std::ptrdiff_t>(offset + len));
    }
    SendWr wr;
    wr.sges = sges;
    ASSERT_EQ(end.stream.sq.post(wr), verbs::Post::Ok);
    const std::size_t from = wire.log.size();
    while (go() != 0) {
    }
    Bytes got;
    for (const auto& f : fpdus(from)) got.insert(got.end(), f.payload.begin(), f.payload.end());
    ASSERT_EQ(got, want);
    if (rng.chance(0.5))
      again(from, static_cast<std::uint32_t>(rng.between(1, wire.log.size() - from)));
    ack();
  }
}

TEST_F(Filling, StreamsLongerThanFourGigabytes) {
  StreamConfig c = config();
  c.max_send_wr = 16;
  End far(c);
  far.stream.sender.start(false);
  std::vector<std::uint8_t> bytes(1 << 20, 0x3c);
  const std::uint32_t stag = far.add(bytes, 0);
  std::vector<Sge> sges(4, {End::address(bytes.data()), 1 << 20, stag});
  SendWr wr;
  wr.op = WrOp::Write;
  wr.sges = sges;
  constexpr std::uint32_t kBig = 65495;
  Bytes first(kBig), second(kBig);
  std::uint64_t at = 0, una = 0;
  bool crossed = false;
  while (at < (1ull << 32) + 10000000) {
    far.stream.sq.post(wr);
    const auto cut = far.stream.sender.cut(StreamOffset(at), kBig, kBig, false);
    ASSERT_NE(cut.len, 0u);
    bool ok = false;
    far.stream.sender.fill(StreamOffset(at), cut.len, first.data(), &ok);
    ASSERT_TRUE(ok);
    at += cut.len;
    if (at >> 32 != una >> 32) {  // in flight across the 4 GiB boundary
      ASSERT_EQ(far.stream.sender.cut(StreamOffset(at - cut.len), cut.len, kBig, false).len,
                cut.len);
      far.stream.sender.fill(StreamOffset(at - cut.len), cut.len, second.data(), &ok);
      ASSERT_TRUE(ok);
      ASSERT_EQ(first, second);
      crossed = true;
    }
    if (at - una > 20000000) {
      una += 10000000;
      far.stream.sender.acked(StreamOffset(una), far.sink());
    }
  }
  EXPECT_TRUE(crossed);
  far.stream.sender.acked(StreamOffset(at), far.sink());
  EXPECT_EQ(far.stream.sender.ledger_size(), 0u);
}

TEST_F(Filling, AMissingRegionIsDetected) {
  std::vector<std::uint8_t> bytes(2000);
  const std::uint32_t stag = end.add(bytes, 0);
  const Sge sge{End::address(bytes.data()), 1000, stag};
  SendWr wr;
  wr.sges = {&sge, 1};
  ASSERT_EQ(end.stream.sq.post(wr), verbs::Post::Ok);
  const std::uint32_t n = go();
  ASSERT_TRUE(end.memory.deregister(stag));  // without detach_region
  Bytes out(n);
  bool ok = true;
  s.fill(StreamOffset(0), n, out.data(), &ok);
  EXPECT_FALSE(ok);
}

TEST_F(Filling, AnUnsentFpduWithoutSourceIsRemovedBeforeTheTerminate) {
  std::vector<std::uint8_t> bytes(2000);
  for (int round = 0; round < 2; ++round) {
    End other(config());
    Wire w;
    other.stream.set_limits(4, 4);
    other.stream.sender.start(true);
    const std::uint32_t mine = other.add(source, 0);
    const std::uint32_t gone = other.add(bytes, kRemoteRead);
    SendWr wr;
    const Sge good{at(0), 100, mine}, bad{End::address(bytes.data()), 1000, gone};
    wr.sges = {&good, 1};
    ASSERT_EQ(other.stream.sq.post(wr), verbs::Post::Ok);
    if (round == 0) {
      wr.sges = {&bad, 1};
      ASSERT_EQ(other.stream.sq.post(wr), verbs::Post::Ok);
    } else {
      const Bytes u = read_request(1, 1000, gone, End::address(bytes.data()));
      const Admission a = Admitter(other.stream, true).next(u);
      ASSERT_EQ(deliver(other.stream, place(other.stream, a), other.sink()), Violation::None);
    }
    Sender& sender = other.stream.sender;
    const auto cut = sender.cut(StreamOffset(0), kEmss, kEmss, false);
    ASSERT_GT(cut.len, 1000u) << "both FPDUs";
    ASSERT_TRUE(other.memory.deregister(gone));
    Bytes out(cut.len);
    bool ok = true;
    sender.fill(StreamOffset(0), cut.len, out.data(), &ok);
    EXPECT_FALSE(ok);
    EXPECT_TRUE(sender.failed());
    EXPECT_EQ(sender.failure_header().size(), round == 0 ? 0u : 46u);
    const Bytes t = terminate_segment(sender.failure());
    sender.stop();
    sender.queue_ulpdu(t);
    flush(other.stream, flush_status(sender.failure()), other.sink());
    while (send_new(other, w, kEmss, kEmss) != 0) {
    }
    ByteView u;
    std::uint32_t size = 0;
    ASSERT_TRUE(fpdu_at(w, 0, &u, &size));
    EXPECT_EQ(u.size(), 118u);
    ASSERT_TRUE(fpdu_at(w, size, &u, &size));
    EXPECT_EQ(Bytes(u.begin(), u.end()), t);
    sender.acked(StreamOffset(w.log.size()), other.sink());
    EXPECT_EQ(sender.kept_chunks(), 0u);
    EXPECT_EQ(sender.ledger_size(), 0u);
  }
}

TEST_F(Filling, InvalidatedRegionCanStillBeRetransmitted) {
  std::vector<std::uint8_t> bytes(2000, 9);
  const std::uint32_t stag = end.add(bytes, kRemoteRead);
  const Sge sge{End::address(bytes.data()), 1000, stag};
  SendWr wr;
  wr.sges = {&sge, 1};
  ASSERT_EQ(end.stream.sq.post(wr), verbs::Post::Ok);
  const std::uint32_t n = go();
  ASSERT_EQ(end.memory.invalidate(stag, kPd), MemoryTable::Invalidate::Ok);
  EXPECT_EQ(resend(0, n), sent(0, n));
}

// ---- views instead of bytes

class Viewing : public Filling {
 protected:
  static constexpr std::uint32_t kLarge = 65536;
  Viewing() { s.start(false); }
  // The bytes of a view, after the first `skip` of them.
  static Bytes bytes(const FpduView& v, std::uint32_t skip) {
    Bytes out(v.head.begin(), v.head.begin() + v.head_bytes);
    for (std::uint32_t i = 0; i < v.count; ++i) {
      out.insert(out.end(), v.pieces[i].begin(), v.pieces[i].end());
    }
    out.insert(out.end(), v.tail.begin(), v.tail.begin() + v.tail_bytes);
    out.erase(out.begin(), out.begin() + skip);
    return out;
  }
  SegmentCut cut(std::uint64_t begin) { return s.cut(StreamOffset(begin), kLarge, kLarge, false); }
  bool view(std::uint64_t begin, std::uint32_t len) {
    return s.view(StreamOffset(begin), len, 4096, &seen, &skip);
  }
  FpduView seen;
  std::uint32_t skip = 0;
};

TEST_F(Viewing, HoldTheBytesThatFillWritesWithoutACopy) {
  for (const std::uint32_t n : {4096u, 5001u, 30002u, 60003u}) {
    ASSERT_EQ(post(WrOp::Write, n, n), verbs::Post::Ok);
    const std::uint64_t begin = wire.log.size();
    const std::uint32_t len = cut(begin).len;
    ASSERT_TRUE(view(begin, len));
    EXPECT_EQ(skip, 0u);
    const Bytes viewed = bytes(seen, skip);
    EXPECT_EQ(viewed, resend(begin, len));
    EXPECT_EQ(seen.pieces[0].data(), source.data());  // in the consumer's memory
    // The rest of it, if the kernel took only a part.
    ASSERT_TRUE(view(begin + 1000, len - 1000));
    EXPECT_EQ(bytes(seen, skip), Bytes(viewed.begin() + 1000, viewed.end()));
    EXPECT_EQ(s.kept_chunks(), 0u);
    wire.log.insert(wire.log.end(), viewed.begin(), viewed.end());
  }
  ack();
  EXPECT_EQ(ids(), (Ids{4096, 5001, 30002, 60003}));
}

// proves: E-20, E-22
TEST_F(Viewing, AreNotGivenWithACrcOrOfKeptOrSeveralFpdus) {
  ASSERT_EQ(post(WrOp::Write, 200), verbs::Post::Ok);
  const std::uint32_t small = cut(0).len;
  EXPECT_FALSE(s.view(StreamOffset(0), small, 1, &seen, &skip));
  wire.log.resize(small);
  ASSERT_EQ(post(WrOp::Write, 5000), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 5000), verbs::Post::Ok);
  const std::uint32_t two = cut(small).len;
  EXPECT_FALSE(view(small, two));
  s.start(true);
  EXPECT_FALSE(view(small, two / 2));
}

// proves: E-25
TEST_F(Viewing, AreNotGivenForARegionThatIsGone) {
  ASSERT_EQ(post(WrOp::Write, 9000), verbs::Post::Ok);
  const std::uint32_t len = cut(0).len;
  s.detach_region(key);
  EXPECT_FALSE(view(0, len));  // a copy now
  const Bytes copied = resend(0, len);
  std::fill(source.begin(), source.end(), 0);
  EXPECT_EQ(resend(0, len), copied);
}

TEST_F(Viewing, AreGivenForReadResponsesToo) {
  request_read(8000, 500);
  const std::uint32_t len = cut(0).len;
  ASSERT_TRUE(view(0, len));
  EXPECT_EQ(bytes(seen, 0), resend(0, len));
}

}  // namespace
}  // namespace urnic::ddp::test
