// Admission: the checks of RFC 5041, 7 and RFC 5040, 7. Admission changes nothing.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "ddp_rdma/plain_write.h"
#include "ddp_rdma/segments.h"
#include "support/random_bytes.h"

namespace urnic::ddp::test {
namespace {

class Admitting : public StreamFixture {};

// proves: R-87
TEST_F(Admitting, WriteNeedsStagBoundsAndRights) {
  const std::uint64_t va = address(bytes.data());
  const Admission a = admit(write_segment(key, va + 10, Bytes(100)));
  EXPECT_EQ(a.what, Admit::Place);
  EXPECT_EQ(a.direct, bytes.data() + 10);
  EXPECT_EQ(a.segment.payload.size(), 100u);
  EXPECT_EQ(a.segment.header.op, Opcode::Write);
  EXPECT_EQ(refused(write_segment(key ^ 1, va, Bytes(1))), Violation::TaggedInvalidStag);
  EXPECT_EQ(refused(write_segment(key, va, Bytes(4097))), Violation::TaggedBounds);
  EXPECT_EQ(refused(write_segment(source_key, address(source.data()), Bytes(1))),
            Violation::WriteAccess);
  EXPECT_EQ(refused(write_segment(key, ~0ull, Bytes(2))), Violation::TaggedToWrap);
}

// The Admitter admits the same segments as the inline path, to the same destination, and decides
// about all others.
// proves: R-87
TEST_F(Admitting, PlainWritesAreAdmittedLikeAllOthers) {
  const std::uint64_t va = address(bytes.data());
  const auto in_line = [&](const Bytes& ulpdu) {
    PlainWrite w;
    if (!admit_plain_write(s, ulpdu, &w)) return false;
    const Admission a = Admitter(s, true).next(ulpdu);
    EXPECT_EQ(a.what, Admit::Place);
    EXPECT_EQ(a.segment.header.op, Opcode::Write);
    EXPECT_EQ(a.direct, w.to);
    EXPECT_EQ(a.behind, w.behind);
    EXPECT_EQ(a.segment.payload.data(), w.payload.data());
    EXPECT_EQ(a.segment.payload.size(), w.payload.size());
    return true;
  };
  EXPECT_TRUE(in_line(write_segment(key, va, Bytes(1))));
  EXPECT_TRUE(in_line(write_segment(key, va, Bytes(4096))));
  EXPECT_TRUE(in_line(write_segment(key, va + 4095, Bytes(1))));
  EXPECT_FALSE(in_line(write_segment(key, va + 4096, Bytes(1)))) << "bounds";
  EXPECT_FALSE(in_line(write_segment(key, va - 1, Bytes(2)))) << "base";
  EXPECT_FALSE(in_line(write_segment(key, va, Bytes(4097)))) << "length";
  EXPECT_FALSE(in_line(write_segment(key, ~0ull, Bytes(2)))) << "wrap";
  EXPECT_FALSE(in_line(write_segment(key ^ 1, va, Bytes(1)))) << "key";
  EXPECT_FALSE(in_line(write_segment(source_key, address(source.data()), Bytes(1)))) << "rights";
  EXPECT_FALSE(in_line(write_segment(key, va, {}))) << "nothing to place";
  EXPECT_FALSE(in_line(send_segment_of(1, 0, Bytes(5))));
  EXPECT_FALSE(in_line({}));
  Bytes w = write_segment(key, va, Bytes(4));
  w[0] ^= 2;
  EXPECT_FALSE(in_line(w)) << "DDP version";
  w[0] ^= 2;
  w[1] ^= 0x80;
  EXPECT_FALSE(in_line(w)) << "RDMAP version";
  w.resize(kTaggedHeader - 1);
  EXPECT_FALSE(in_line(w)) << "cut short";
}

// proves: E-55
TEST_F(Admitting, RightsMissingAtTheQueuePairAreRefusedWhateverTheRegionAllows) {
  const Bytes write = write_segment(key, address(bytes.data()), Bytes(10));
  PlainWrite w;
  ASSERT_TRUE(admit_plain_write(s, write, &w));
  s.remote_access = kRemoteRead | verbs::kRemoteAtomic;
  EXPECT_EQ(refused(write), Violation::WriteAccess);
  EXPECT_EQ(refused(write, false), Violation::WriteAccess);
  EXPECT_FALSE(admit_plain_write(s, write, &w));
  EXPECT_EQ(refused(write_segment(key ^ 1, address(bytes.data()), Bytes(10))),
            Violation::TaggedInvalidStag)
      << "of a key that names nothing no more is told than before";
  s.reset();
  EXPECT_TRUE(admit_plain_write(s, write, &w)) << "another life";
}

TEST_F(Admitting, ZeroLengthTaggedIsNotChecked) {
  EXPECT_EQ(admit(write_segment(0, 0, {})).what, Admit::Place);
  EXPECT_EQ(admit(write_segment(0xFFFFFFFF, ~0ull, {})).what, Admit::Place);
}

TEST_F(Admitting, MalformedHeadersAreViolations) {
  Bytes w = write_segment(key, address(bytes.data()), Bytes(4));
  w[0] ^= 2;
  EXPECT_EQ(refused(w), Violation::TaggedVersion);
  w[0] ^= 2;
  w[1] = 0x48;
  EXPECT_EQ(refused(w), Violation::UnexpectedOpcode);
  w.resize(3);
  EXPECT_EQ(admit(w).what, Admit::Violate);
  EXPECT_EQ(admit({}).what, Admit::Violate);
}

// proves
TEST_F(Admitting, SendNeedsItsReceive) {
  EXPECT_EQ(admit(send_segment_of(1, 0, Bytes(5))).what, Admit::NoReceive);
  post_receive(1, 0, 100);
  EXPECT_EQ(admit(send_segment_of(1, 0, Bytes(5))).what, Admit::Place);
  EXPECT_EQ(admit(send_segment_of(2, 0, Bytes(5)), false).what, Admit::NoReceive)
      << "out of order: the WQE of that MSN";
  EXPECT_EQ(admit(send_segment_of(5000, 0, Bytes(5)), false).what, Admit::NoReceive)
      << "a sender without credits may be far ahead";
  post_receive(2, 100, 100);
  EXPECT_EQ(admit(send_segment_of(2, 0, Bytes(5)), false).what, Admit::Place);
}

TEST_F(Admitting, SendMsnMustBeTheNextInOrder) {
  for (int i = 0; i < 4; ++i) post_receive(1, 0, 100);
  EXPECT_EQ(refused(send_segment_of(2, 0, Bytes(5))), Violation::UntaggedMsnRange);
  EXPECT_EQ(refused(send_segment_of(0, 0, Bytes(5))), Violation::UntaggedMsnRange);
  EXPECT_EQ(refused(send_segment_of(0, 0, Bytes(5)), false), Violation::UntaggedMsnRange);
  ASSERT_EQ(take(send_segment_of(1, 0, Bytes(5))), Violation::None);
  EXPECT_EQ(refused(send_segment_of(1, 0, Bytes(5))), Violation::UntaggedMsnRange);
  EXPECT_EQ(refused(send_segment_of(1, 0, Bytes(5)), false), Violation::UntaggedMsnRange);
  EXPECT_EQ(admit(send_segment_of(2, 0, Bytes(5))).what, Admit::Place);
}

TEST_F(Admitting, SeveralMessagesInOneSegmentAreCounted) {
  post_receive(1, 0, 100);
  post_receive(2, 100, 100);
  const Bytes a = send_segment_of(1, 0, Bytes(5), false), b = send_segment_of(1, 5, Bytes(5)),
              c = send_segment_of(2, 0, Bytes(5)), d = send_segment_of(3, 0, Bytes(5)),
              r = read_request(1, 0, 0, 0), r2 = read_request(2, 0, 0, 0);
  Admitter admitter(s, true);
  EXPECT_EQ(admitter.next(a).what, Admit::Place);
  EXPECT_EQ(admitter.next(b).what, Admit::Place);
  EXPECT_EQ(admitter.next(r).what, Admit::Place);
  EXPECT_EQ(admitter.next(c).what, Admit::Place);
  EXPECT_EQ(admitter.next(r2).what, Admit::Place);
  EXPECT_EQ(admitter.next(d).what, Admit::NoReceive);
  // None of this has changed the stream.
  EXPECT_EQ(s.next_send_msn(), 1u);
  EXPECT_EQ(s.next_read_msn(), 1u);
  EXPECT_EQ(admit(a).what, Admit::Place);
  EXPECT_EQ(bytes, Bytes(4096));
}

// proves: R-117
TEST_F(Admitting, MessageLongerThanTheReceiveIsAViolation) {
  post_receive(1, {{address(bytes.data()), 60, key}, {address(bytes.data() + 100), 40, key}});
  EXPECT_EQ(admit(send_segment_of(1, 0, Bytes(100))).what, Admit::Place);
  EXPECT_EQ(refused(send_segment_of(1, 0, Bytes(101))), Violation::UntaggedTooLong);
  EXPECT_EQ(refused(send_segment_of(1, 90, Bytes(11)), false), Violation::UntaggedTooLong);
  EXPECT_EQ(refused(send_segment_of(1, 101, Bytes(1)), false), Violation::UntaggedMo);
  EXPECT_EQ(admit(send_segment_of(1, 100, {}), false).what, Admit::Place);
}

TEST_F(Admitting, OffsetsOfASendAreContiguousInOrder) {
  post_receive(1, 0, 1000);
  post_receive(2, 1000, 1000);
  EXPECT_EQ(refused(send_segment_of(1, 10, Bytes(5))), Violation::UntaggedMo);
  put(send_segment_of(1, 0, Bytes(10), false));
  EXPECT_EQ(refused(send_segment_of(1, 11, Bytes(5))), Violation::UntaggedMo);
  EXPECT_EQ(refused(send_segment_of(1, 0, Bytes(5))), Violation::UntaggedMo);
  ASSERT_EQ(take(send_segment_of(1, 10, Bytes(5))), Violation::None);
  EXPECT_EQ(refused(send_segment_of(2, 15, Bytes(5))), Violation::UntaggedMo);
  EXPECT_EQ(admit(send_segment_of(2, 0, Bytes(5))).what, Admit::Place);
}

TEST_F(Admitting, NoFalseAlarmAfterAClosedHole) {
  // Message 1 arrives in three segments: the first in order, the last out of order, then the
  // middle, which closes the hole. Message 2 does the same, and message 3 arrives in order.
  for (int i = 0; i < 3; ++i) post_receive(1, 0, 1000);
  put(send_segment_of(1, 0, Bytes(10), false));
  MessageCounts hole = put(send_segment_of(1, 20, Bytes(10)), false);
  hole += put(send_segment_of(2, 0, Bytes(10), false), false);
  put(send_segment_of(1, 10, Bytes(10), false));
  ASSERT_EQ(deliver_counts(hole), Violation::None);
  ASSERT_EQ(take(send_segment_of(2, 10, Bytes(10))), Violation::None);
  EXPECT_EQ(refused(send_segment_of(3, 1, Bytes(10))), Violation::UntaggedMo);
  ASSERT_EQ(take(send_segment_of(3, 0, Bytes(10))), Violation::None);
  EXPECT_EQ(done.size(), 3u);
}

TEST_F(Admitting, OffsetsAreCheckedAgainAfterTheHole) {
  for (int i = 0; i < 3; ++i) post_receive(1, 0, 1000);
  // Message 2 arrives out of order as a whole. Message 1 fills the hole, and 3 follows.
  const MessageCounts hole = put(send_segment_of(2, 0, Bytes(10)), false);
  ASSERT_EQ(take(send_segment_of(1, 0, Bytes(10))), Violation::None);
  ASSERT_EQ(deliver_counts(hole), Violation::None);
  EXPECT_EQ(refused(send_segment_of(3, 10, Bytes(10))), Violation::UntaggedMo);
}

TEST_F(Admitting, ReceiveWhoseMemoryIsGoneIsALocalError) {
  post_receive(1, {{address(bytes.data()), 10, key}, {address(bytes.data()), 10, 0xbad00}});
  EXPECT_EQ(admit(send_segment_of(1, 0, Bytes(10), false)).what, Admit::Place)
      << "the bad piece is not touched";
  EXPECT_EQ(refused(send_segment_of(1, 0, Bytes(11))), Violation::LocalCatastrophic);
  post_receive(2, {{address(source.data()), 10, source_key}});
  EXPECT_EQ(refused(send_segment_of(2, 0, Bytes(1)), false), Violation::LocalCatastrophic)
      << "no local write";
}

// proves: R-90
TEST_F(Admitting, ReadRequestsMeetTheNegotiatedLimit) {
  for (std::uint32_t m = 1; m <= 4; ++m) {
    EXPECT_EQ(admit(read_request(m, 0, 0, 0), false).what, Admit::Place);
  }
  EXPECT_EQ(refused(read_request(5, 0, 0, 0), false), Violation::ReadQueueFull);
  EXPECT_EQ(refused(read_request(2, 0, 0, 0)), Violation::UntaggedMsnRange);
  EXPECT_EQ(refused(read_request(0, 0, 0, 0), false), Violation::UntaggedMsnRange);
  for (std::uint32_t m = 1; m <= 4; ++m) {
    ASSERT_EQ(take(read_request(m, 0, 0, 0)), Violation::None);
  }
  EXPECT_EQ(refused(read_request(5, 0, 0, 0)), Violation::ReadQueueFull);
  // After one response was acknowledged, one more request may arrive.
  ASSERT_EQ(transmit(20).size(), 20u);
  EXPECT_EQ(refused(read_request(5, 0, 0, 0)), Violation::ReadQueueFull);
  s.sender.acked(StreamOffset(20), [](const Completion&) {});
  EXPECT_EQ(admit(read_request(5, 0, 0, 0)).what, Admit::Place);
}

TEST_F(Admitting, ReadResponseBelongsToTheOldestRead) {
  EXPECT_EQ(refused(response_segment(1, 0, {})), Violation::UnexpectedOpcode);
  const std::uint32_t a = start_read(1, 0, 100), b = start_read(2, 200, 100);
  EXPECT_EQ(refused(response_segment(b, 0, Bytes(100))), Violation::TaggedInvalidStag);
  EXPECT_EQ(refused(response_segment(key, address(bytes.data()), Bytes(100))),
            Violation::TaggedInvalidStag);
  EXPECT_EQ(refused(response_segment(a, 0, Bytes(50))), Violation::TaggedBounds)
      << "ends too early";
  EXPECT_EQ(refused(response_segment(a, 1, Bytes(99))), Violation::TaggedBounds) << "a gap";
  EXPECT_EQ(refused(response_segment(a, 0, {})), Violation::TaggedBounds) << "nothing came";
  EXPECT_EQ(refused(response_segment(a, 0, Bytes(101))), Violation::TaggedBounds);
  EXPECT_EQ(admit(response_segment(b, 0, Bytes(100)), false).what, Admit::Place)
      << "out of order any open read";
  EXPECT_EQ(refused(response_segment(b, 0, Bytes(50)), false), Violation::TaggedBounds)
      << "but as long as that read";
  const Bytes first = response_segment(a, 0, Bytes(40), false),
              second = response_segment(a, 40, Bytes(60)),
              third = response_segment(b, 0, Bytes(100)), more = response_segment(b, 0, {});
  Admitter admitter(s, true);
  EXPECT_EQ(admitter.next(first).what, Admit::Place);
  EXPECT_EQ(admitter.next(second).what, Admit::Place);
  EXPECT_EQ(admitter.next(third).what, Admit::Place);
  EXPECT_EQ(admitter.next(more).violation, Violation::UnexpectedOpcode);
}

TEST_F(Admitting, NoFalseAlarmForAReadResponseThatArrivedOutOfOrder) {
  const std::uint32_t a = start_read(1, 0, 100);
  put(response_segment(a, 0, Bytes(10), false));
  const MessageCounts hole = put(response_segment(a, 60, Bytes(40)), false);
  put(response_segment(a, 10, Bytes(50), false));
  EXPECT_EQ(deliver_counts(hole), Violation::None);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wr_id, 1u);
  // A response that a downgrade has forgotten arrives again in order.
  const std::uint32_t b = start_read(2, 0, 100);
  put(response_segment(b, 60, Bytes(40)), false);
  put(response_segment(b, 0, Bytes(60), false));
  EXPECT_EQ(take(response_segment(b, 60, Bytes(40))), Violation::None);
  EXPECT_EQ(done.size(), 2u);
}

TEST_F(Admitting, TerminateIsAlwaysAdmitted_Q25) {
  EXPECT_EQ(admit(terminate_segment(Violation::MpaCrc)).what, Admit::Place);
  EXPECT_EQ(admit(terminate_segment(Violation::MpaCrc), false).what, Admit::Place);
}

// Whatever a peer sends: admission does no harm, and admitted segments can be placed and delivered.
TEST_F(Admitting, HostileSegmentsNeitherCrashNorOverrun) {
  const std::uint64_t seed = 20240611;
  SCOPED_TRACE(seed);
  Rng rng(seed);
  std::size_t admitted = 0, delivered = 0;
  for (int round = 0; round < 200; ++round) {
    MemoryTable memory;
    SharedState state{&memory};
    auto config = this->config();
    Stream stream(config, &state);
    stream.set_limits(4, 4);
    stream.sender.start(true);
    Bytes target(512), origin(512);
    const std::uint32_t t = memory.register_memory(
        kPd, target.data(), target.size(), kLocalWrite | kRemoteWrite | kRemoteRead | kZeroBased);
    std::uint64_t position = 0;
    MessageCounts behind;
    for (int i = 0; i < 100; ++i) {
      if (rng.chance(0.2)) {
        const Sge sge{rng.below(256), static_cast<std::uint32_t>(rng.below(256)), t};
        stream.rq.post({1, {&sge, 1}});
      }
      if (rng.chance(0.1)) {
        const Sge sge{rng.below(256), static_cast<std::uint32_t>(rng.below(256)), t};
        SendWr wr;
        wr.op = WrOp::Read;
        wr.sges = {&sge, 1};
        stream.sq.post(wr);
        const auto cut = stream.sender.cut(StreamOffset(position), 1460, 1460, false);
        Bytes out(cut.len);
        bool ok;
        stream.sender.fill(StreamOffset(position), cut.len, out.data(), &ok);
        position += cut.len;
      }
      Bytes u;
      const Bytes payload(rng.below(100));
      const auto msn = stream.next_send_msn() + static_cast<std::uint32_t>(rng.below(3)) - 1;
      const auto rmsn = stream.next_read_msn() + static_cast<std::uint32_t>(rng.below(3)) - 1;
      switch (rng.below(5)) {
        case 0:
          u = write_segment(t, rng.below(600), payload, rng.chance(0.5));
          break;
        case 1:
          u = send_segment_of(msn, static_cast<std::uint32_t>(rng.below(200)), payload,
                              rng.chance(0.5), static_cast<Opcode>(rng.between(3, 6)), t);
          break;
        case 2:
          u = read_request(rmsn, static_cast<std::uint32_t>(rng.below(600)), t, 0);
          break;
        case 3: {
          auto c = stream.sender.outstanding_reads();
          std::uint32_t sink = 1, size = 0;
          stream.sender.next_read(&c, &sink, &size);
          u = response_segment(sink, rng.below(300), payload, rng.chance(0.5));
          break;
        }
        default:
          u = terminate_segment(Violation::MpaCrc);
      }
      if (rng.chance(0.3)) u = urnic::test::mutate(rng, u);
      const bool in_order = rng.chance(0.6);
      Admitter admitter(stream, in_order);
      const Admission a = admitter.next(u);
      if (a.what != Admit::Place) continue;
      ++admitted;
      const MessageCounts counts = place(stream, a);
      const auto ignore = [&](const Completion&) { ++delivered; };
      Violation v = Violation::None;
      if (in_order) {
        v = deliver(stream, counts, ignore);
      } else {
        behind += counts;
      }
      if (rng.chance(0.1)) {
        if (v == Violation::None) v = deliver(stream, behind, ignore);
        behind = {};
      }
      if (v != Violation::None) {
        flush(stream, flush_status(v), ignore);
        EXPECT_EQ(stream.rq.posted(), 0u);
        break;
      }
      const auto cut = stream.sender.cut(StreamOffset(position), 1460, 1460, false);
      Bytes out(cut.len);
      bool ok;
      stream.sender.fill(StreamOffset(position), cut.len, out.data(), &ok);
      position += cut.len;
      if (rng.chance(0.5)) stream.sender.acked(StreamOffset(position), ignore);
    }
  }
  EXPECT_GT(admitted, 1000u);
  EXPECT_GT(delivered, 100u);
}

}  // namespace
}  // namespace urnic::ddp::test
