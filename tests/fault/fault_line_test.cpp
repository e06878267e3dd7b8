#include "fault/fault_line.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/crc32c.h"
#include "mpa/startup.h"
#include "support/random_bytes.h"
#include "tcp_frames.h"

namespace urnic::fault {
namespace {

using namespace urnic::test;

Instant at(std::int64_t us) {
  return Instant::from_ns(0) + Duration::us(us);
}

FaultPlan plan(const char* text) {
  const auto p = FaultPlan::parse(text);
  EXPECT_TRUE(p.ok()) << p.error();
  return *p;
}

struct Line {
  explicit Line(const char* text, Direction d = Direction::Rx) : line(plan(text), d, 0, &log) {}
  void push(const Bytes& b, Instant now, std::uint8_t csum = URNIC_CSUM_UNKNOWN) {
    // In two spans, as ports may provide it.
    const std::size_t cut = std::min<std::size_t>(b.size(), 60);
    line.push(ByteView(b).first(cut), ByteView(b).subspan(cut), csum, now);
  }
  // All frames that can leave at `now`.
  std::vector<Frame> take(Instant now) {
    std::vector<Frame> out;
    while (line.ready(now) != 0) out.push_back(line.pop());
    return out;
  }
  std::uint64_t count(FaultKind k) const { return line.counters().of(k); }

  FaultLog log{100000};
  FaultLine line;
};

// Segment i of a stream, `size` bytes each.
Bytes segment(std::uint32_t i, std::size_t size = 100) {
  return tcp_frame({.seq = 1 + i * static_cast<std::uint32_t>(size), .payload = size});
}
std::vector<std::uint32_t> seqs(const std::vector<Frame>& frames) {
  std::vector<std::uint32_t> out;
  for (const Frame& f : frames) out.push_back(view(f).seq);
  return out;
}

TEST(FaultLine, AnEmptyPlanChangesNothing) {
  Line l("");
  EXPECT_TRUE(l.line.transparent());
  const Bytes b = segment(0);
  l.push(b, at(0), URNIC_CSUM_PARTIAL);
  const auto out = l.take(at(0));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].bytes, b);
  EXPECT_EQ(out[0].csum, URNIC_CSUM_PARTIAL);
  EXPECT_TRUE(l.line.transparent());
  EXPECT_TRUE(l.line.next_release().is_never());
}

TEST(FaultLine, LossHasThePlannedProbabilityAndIsCounted) {
  Line l("loss=0.1,seed=5");
  for (std::uint32_t i = 0; i < 10000; ++i) l.push(segment(i, 10), at(i));
  const auto out = l.take(at(10000));
  EXPECT_NEAR(static_cast<double>(l.count(FaultKind::Loss)), 1000, 150);
  EXPECT_EQ(out.size() + l.count(FaultKind::Loss), 10000u);
  const auto records = l.log.records();
  EXPECT_EQ(records.size(), l.count(FaultKind::Loss));
  // The records name exactly the missing segments.
  std::vector<std::uint32_t> all = seqs(out);
  for (const FaultRecord& r : records) {
    EXPECT_TRUE(r.tcp);
    EXPECT_EQ(r.payload, 10u);
    all.push_back(r.seq);
  }
  std::sort(all.begin(), all.end());
  for (std::uint32_t i = 0; i < 10000; ++i) ASSERT_EQ(all[i], 1 + i * 10);
}

TEST(FaultLine, TheSameSeedGivesTheSameFaultsPerDirection) {
  const auto survivors = [](const char* text, Direction d) {
    Line l(text, d);
    for (std::uint32_t i = 0; i < 500; ++i) l.push(segment(i, 10), at(i));
    return seqs(l.take(at(500)));
  };
  const char* text = "loss=0.3,dup=0.1,reorder=0.1,seed=42";
  EXPECT_EQ(survivors(text, Direction::Rx), survivors(text, Direction::Rx));
  EXPECT_NE(survivors(text, Direction::Rx), survivors(text, Direction::Tx));
  EXPECT_NE(survivors(text, Direction::Rx),
            survivors("loss=0.3,dup=0.1,reorder=0.1,seed=43", Direction::Rx));
}

TEST(FaultLine, LossCanComeInBursts) {
  Line l("at=loss:3,loss=0:4");
  for (std::uint32_t i = 0; i < 10; ++i) l.push(segment(i), at(i));
  EXPECT_EQ(seqs(l.take(at(10))), (std::vector<std::uint32_t>{1, 101, 601, 701, 801, 901}));
}

TEST(FaultLine, CorruptionKeepsTheTcpChecksumAndBreaksTheCrc) {
  for (const std::uint8_t state : {URNIC_CSUM_UNKNOWN, URNIC_CSUM_GOOD}) {
    Line l("corrupt=1");
    for (std::uint32_t i = 0; i < 2000; ++i) {
      const Bytes b = tcp_frame({.seq = i, .payload = 1 + i % 300, .v6 = i % 2 == 0, .tsval = i});
      l.push(b, at(i), state);
      const auto out = l.take(at(i));
      ASSERT_EQ(out.size(), 1u);
      const Frame was = frame_of(b);
      const auto v = view(out[0]);
      Frame judged = out[0];
      judged.csum = URNIC_CSUM_UNKNOWN;
      ASSERT_TRUE(tcp_checksum_ok(judged, v));
      ASSERT_NE(crc32c(payload_of(out[0])), crc32c(payload_of(was)));
      // One burst of at most 32 bits; otherwise only the checksum has changed.
      std::size_t first = b.size(), last = 0;
      for (std::size_t k = 0; k < b.size(); ++k) {
        if (b[k] == out[0].bytes[k] || k - v.net.l4_offset - 16 < 2) continue;
        first = std::min(first, k);
        last = k;
      }
      ASSERT_GE(first, v.payload_offset());
      ASSERT_LT(last - first, 4u);
      ASSERT_EQ(l.log.records().back().at, first);
    }
    EXPECT_EQ(l.count(FaultKind::Corrupt), 2000u);
  }
}

TEST(FaultLine, CorruptionNeedsPayload) {
  Line l("corrupt=1");
  const Bytes ack = tcp_frame({.payload = 0}), syn = tcp_frame({.flags = tcp::kSyn});
  l.push(ack, at(0));
  l.push(syn, at(0));
  const auto out = l.take(at(0));
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].bytes, ack);
  EXPECT_EQ(out[1].bytes, syn);
  EXPECT_EQ(l.count(FaultKind::Corrupt), 0u);
}

TEST(FaultLine, BadSumAlwaysBreaksTheChecksumWhateverItsState) {
  for (const std::uint8_t state : {URNIC_CSUM_UNKNOWN, URNIC_CSUM_GOOD, URNIC_CSUM_PARTIAL}) {
    Line l("badsum=1");
    for (std::uint32_t i = 0; i < 1000; ++i) {
      Bytes b = tcp_frame({.seq = i, .payload = i % 50, .v6 = i % 2 == 0});
      if (state == URNIC_CSUM_PARTIAL) store_be16(&b[(i % 2 == 0 ? 54u : 34u) + 16], 0x1234);
      l.push(b, at(i), state);
      const auto out = l.take(at(i));
      ASSERT_EQ(out.size(), 1u);
      ASSERT_EQ(out[0].csum, URNIC_CSUM_UNKNOWN);
      ASSERT_FALSE(tcp_checksum_ok(out[0], view(out[0])));
    }
    EXPECT_EQ(l.count(FaultKind::BadSum), 1000u);
  }
}

TEST(FaultLine, CorruptionAndBadSumExcludeEachOther) {
  Line l("corrupt=0.5,badsum=0.5");
  for (std::uint32_t i = 0; i < 2000; ++i) l.push(segment(i), at(i));
  std::uint64_t bad = 0;
  for (const Frame& f : l.take(at(2000))) bad += !tcp_checksum_ok(f, view(f));
  EXPECT_EQ(bad, l.count(FaultKind::BadSum));
  EXPECT_NEAR(static_cast<double>(l.count(FaultKind::Corrupt)), 1000, 150);
  EXPECT_NEAR(static_cast<double>(bad), 500, 120);
}

TEST(FaultLine, DuplicatesFollowImmediately) {
  Line l("at=dup:2");
  for (std::uint32_t i = 0; i < 3; ++i) l.push(segment(i), at(i));
  EXPECT_EQ(seqs(l.take(at(3))), (std::vector<std::uint32_t>{1, 101, 101, 201}));
}

TEST(FaultLine, AReorderedFrameIsOvertakenByTheGivenNumber) {
  Line l("at=reorder:2,reorder=0:3");
  for (std::uint32_t i = 0; i < 7; ++i) l.push(segment(i), at(i));
  EXPECT_EQ(seqs(l.take(at(7))), (std::vector<std::uint32_t>{1, 201, 301, 401, 101, 501, 601}));
  EXPECT_EQ(l.count(FaultKind::Reorder), 1u);
}

TEST(FaultLine, AReorderedFrameWaitsNoLongerThanHold) {
  Line l("at=reorder:1,hold=500us");
  l.push(segment(0), at(100));
  EXPECT_TRUE(l.take(at(599)).empty());
  EXPECT_EQ(l.line.next_release(), at(600));
  EXPECT_EQ(l.take(at(600)).size(), 1u);
}

TEST(FaultLine, AFrameReorderedByTimeIsLate) {
  Line l("at=reorder:1,reorder=0:5ms,delay=1ms");
  l.push(segment(0), at(0));
  l.push(segment(1), at(10));
  EXPECT_EQ(l.line.next_release(), at(1010));
  EXPECT_EQ(seqs(l.take(at(5999))), (std::vector<std::uint32_t>{101}));
  EXPECT_EQ(seqs(l.take(at(6000))), (std::vector<std::uint32_t>{1}));
}

TEST(FaultLine, DelayIsExact) {
  Line l("delay=2ms");
  l.push(segment(0), at(0));
  l.push(segment(1), at(500));
  EXPECT_EQ(l.line.next_release(), at(2000));
  EXPECT_TRUE(l.take(at(1999)).empty());
  EXPECT_EQ(l.take(at(2000)).size(), 1u);
  EXPECT_EQ(l.line.next_release(), at(2500));
  EXPECT_EQ(l.take(at(2500)).size(), 1u);
  EXPECT_FALSE(l.line.transparent());  // has a plan
  EXPECT_EQ(l.line.backlog(), 0u);
}

TEST(FaultLine, JitterStaysWithinItsLimitsAndKeepsTheOrder) {
  Line l("delay=1ms,jitter=500us");
  std::uint32_t next = 0;
  for (std::int64_t us = 0; us < 100000; us += 10) {
    if (us % 100 == 0) l.push(segment(static_cast<std::uint32_t>(us / 100)), at(us));
    for (const Frame& f : l.take(at(us))) {
      ASSERT_EQ(view(f).seq, 1 + next * 100);
      const std::int64_t sent = next * 100;
      ASSERT_GE(us, sent + 1000);
      ASSERT_LE(us, sent + 1510);
      ++next;
    }
  }
  EXPECT_GT(next, 900u);
}

TEST(FaultLine, TheRateSpacesFramesByTheirLength) {
  Line l("rate=8mbit");  // one byte per microsecond
  const Bytes b = segment(0, 946);
  ASSERT_EQ(b.size(), 1000u);
  l.push(b, at(0));
  l.push(b, at(0));
  EXPECT_TRUE(l.take(at(999)).empty());
  EXPECT_EQ(l.take(at(1000)).size(), 1u);
  EXPECT_TRUE(l.take(at(1999)).empty());
  EXPECT_EQ(l.take(at(2000)).size(), 1u);
  l.push(b, at(10000));  // unused time does not accumulate
  EXPECT_TRUE(l.take(at(10999)).empty());
  EXPECT_EQ(l.take(at(11000)).size(), 1u);
}

TEST(FaultLine, AFullQueueDropsNewFrames) {
  Line l("rate=8mbit,limit=5");
  for (std::uint32_t i = 0; i < 12; ++i) l.push(segment(i), at(0));
  EXPECT_EQ(l.count(FaultKind::Overflow), 7u);
  EXPECT_EQ(seqs(l.take(at(1000000))), (std::vector<std::uint32_t>{1, 101, 201, 301, 401}));
}

// proves: E-37
TEST(FaultLine, ResegmentationKeepsTheStream) {
  Line l("reseg=0.5,seed=3");
  std::int64_t us = 0;
  std::uint32_t seq = 1;
  std::vector<Frame> all;
  for (std::uint32_t i = 0; i < 500; ++i) {
    l.push(segment(i, 777), at(us += 5));
    for (Frame& f : l.take(at(us))) all.push_back(std::move(f));
  }
  for (Frame& f : l.take(at(us + 10000))) all.push_back(std::move(f));
  for (const Frame& f : all) {
    ASSERT_EQ(view(f).seq, seq);
    expect_sound(f);
    EXPECT_LE(f.bytes.size(), 14u + 20 + 20 + 777);  // not larger than the largest seen
    seq += view(f).payload_len;
  }
  EXPECT_EQ(seq, 1 + 500 * 777u);
  EXPECT_GT(l.count(FaultKind::Cut), 50u);
  EXPECT_GT(l.count(FaultKind::Join), 50u);
}

TEST(FaultLine, ExactCutMakesPieces) {
  Line l("at=cut:2");
  for (std::uint32_t i = 0; i < 3; ++i) l.push(segment(i), at(i));
  const auto out = l.take(at(3));
  EXPECT_GT(out.size(), 3u);
  EXPECT_EQ(view(out[0]).payload_len, 100u);
  EXPECT_LT(view(out[1]).payload_len, 100u);
  EXPECT_EQ(l.count(FaultKind::Cut), 1u);
}

TEST(FaultLine, NonTcpFramesHaveTheSameFaults) {
  Line l("loss=1");
  Bytes arp(42);
  store_be16(&arp[12], 0x0806);
  l.push(arp, at(0));
  EXPECT_EQ(l.count(FaultKind::Loss), 1u);
  EXPECT_FALSE(l.log.records()[0].tcp);
  // Unless the plan applies only to payload.
  Line p("loss=1,payload_only=0,corrupt=1,badsum=1,reseg=1,dup=1,reorder=1");
  p.push(arp, at(0));
  p.push(tcp_frame({.payload = 0}), at(0));
  EXPECT_EQ(p.take(at(0)).size(), 2u);
  p.push(segment(0), at(0));
  EXPECT_EQ(p.count(FaultKind::Loss), 1u);
  EXPECT_EQ(p.line.counters().eligible, 1u);
}

TEST(FaultLine, PayloadOnlyHasAThreshold) {
  Line l("loss=1,payload_only=64");
  l.push(segment(0, 64), at(0));
  l.push(segment(1, 65), at(0));
  EXPECT_EQ(l.take(at(0)).size(), 1u);
}

TEST(FaultLine, AfterProtectsTheBeginningOfEachStream) {
  Line l("loss=1,after=1000");
  l.push(tcp_frame({.seq = 0xfffffe00, .flags = tcp::kSyn}), at(0));
  std::uint32_t seq = 0xfffffe01;
  std::size_t passed = 0;
  for (int i = 0; i < 30; ++i, seq += 100) {
    l.push(tcp_frame({.seq = seq, .payload = 100}), at(i));
    passed += l.take(at(i)).size();
  }
  EXPECT_EQ(passed, 1u + 10);
  EXPECT_EQ(l.line.counters().spared, 11u);
  // A stream whose beginning was not seen is not protected.
  l.push(tcp_frame({.seq = 5, .payload = 10, .src_port = 9}), at(100));
  EXPECT_TRUE(l.take(at(100)).empty());
}

TEST(FaultLine, SkipHandshakeProtectsSynAndMpaStartUp) {
  for (const std::size_t private_data : {0u, 100u}) {
    Line l("loss=1,skip_handshake");
    mpa::StartupOptions options;
    const Bytes data(private_data, 7);
    std::uint8_t start[mpa::kFrameHeader + mpa::kMaxPrivateData];
    const std::uint32_t len = mpa::emit_frame(mpa::make_request(options, data), start);
    l.push(tcp_frame({.seq = 100, .flags = tcp::kSyn}), at(0));
    l.push(tcp_frame({.seq = 101}), at(1));
    Bytes request = tcp_frame({.seq = 101, .payload = len});
    std::copy(start, start + len, request.begin() + 54);
    l.push(request, at(2));
    EXPECT_EQ(l.take(at(2)).size(), 3u);
    l.push(tcp_frame({.seq = 101 + len, .payload = 50}), at(3));
    EXPECT_TRUE(l.take(at(3)).empty());
  }
}

TEST(FaultLine, SkipHandshakeDoesNotProtectOtherProtocols) {
  Line l("loss=1,skip_handshake");
  l.push(tcp_frame({.seq = 100, .flags = tcp::kSyn}), at(0));
  l.push(tcp_frame({.seq = 101, .payload = 100}), at(1));
  EXPECT_EQ(l.take(at(1)).size(), 1u);
  EXPECT_EQ(l.count(FaultKind::Loss), 1u);
}

TEST(FaultLine, PlansChangeWhileFramesFlow) {
  Line l("delay=1ms");
  l.push(segment(0), at(0));
  l.line.set_plan(plan("at=loss:2"));
  l.push(segment(1), at(10));
  l.push(segment(2), at(10));
  l.push(segment(3), at(10));
  EXPECT_EQ(l.count(FaultKind::Loss), 1u);  // the second since the change
  // The delayed frame keeps its time, and the others do not overtake it.
  EXPECT_EQ(seqs(l.take(at(1000))), (std::vector<std::uint32_t>{1, 101, 301}));
  l.line.set_plan({});
  EXPECT_TRUE(l.line.transparent());
}

// The segment to be duplicated and delayed is held for joining; the new plan has neither fault.
TEST(FaultLine, ANewPlanInheritsNothingOfTheOldOne) {
  Line l("at=dup:1+reorder:1,reseg=1,hold=1ms,seed=3");
  std::uint32_t sent = 0;
  for (; l.line.backlog() == 0 && sent < 100; ++sent) {
    l.line.set_plan(plan("at=dup:1+reorder:1,reseg=1,hold=1ms,seed=3"));
    l.push(segment(2 * sent), at(sent));
    (void)l.take(at(sent));
  }
  ASSERT_NE(l.line.backlog(), 0u);
  const auto twice = l.count(FaultKind::Duplicate), late = l.count(FaultKind::Reorder);
  l.line.set_plan(plan("at=loss:1000"));
  (void)l.take(at(10000));
  l.push(segment(500), at(10001));
  (void)l.take(at(20000));
  EXPECT_EQ(l.count(FaultKind::Duplicate), twice);
  EXPECT_EQ(l.count(FaultKind::Reorder), late);
}

// Working in place is only an optimization: the same frames and seed give the same faults.
TEST(FaultLine, WorkingInPlaceGivesTheSameResult) {
  const char* text = "loss=0.1:2,corrupt=0.2,badsum=0.2,at=corrupt:5,skip_handshake,seed=6";
  Line through(text), in_place(text);
  EXPECT_TRUE(in_place.line.in_place());
  for (const char* other : {"dup=0.1", "reorder=0.1", "reseg=0.1", "delay=1us", "jitter=1us",
                            "rate=1gbit", "at=dup:1", "at=cut:1", "at=reorder:1"}) {
    EXPECT_FALSE(Line(other).line.in_place()) << other;
  }
  Rng rng(6);
  std::uint32_t seq = 100;
  for (int i = 0; i < 3000; ++i) {
    const std::size_t size = rng.below(200);
    Bytes b = tcp_frame({.seq = seq, .payload = size, .v6 = i % 3 == 0, .tsval = 1});
    if (i == 0) b = tcp_frame({.seq = seq - 1, .flags = tcp::kSyn, .v6 = true});
    if (rng.chance(0.05)) b = random_bytes(rng, rng.between(1, 100));
    seq += static_cast<std::uint32_t>(size);
    through.push(b, at(i));
    const auto expected = through.take(at(i));

    urnic_frame f{};
    const std::size_t cut =
        rng.chance(0.5) ? b.size() : std::min<std::size_t>(b.size(), i % 3 == 0 ? 86 : 66);
    const Bytes first(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(cut));
    const Bytes second(b.begin() + static_cast<std::ptrdiff_t>(cut), b.end());
    f.data[0] = const_cast<std::uint8_t*>(first.data());
    f.len[0] = static_cast<std::uint32_t>(first.size());
    f.data[1] = const_cast<std::uint8_t*>(second.data());
    f.len[1] = static_cast<std::uint32_t>(second.size());
    Frame changed;
    switch (in_place.line.inspect(f, at(i), &changed)) {
      case FaultLine::Fate::Lost:
        ASSERT_TRUE(expected.empty());
        break;
      case FaultLine::Fate::Pass:
        ASSERT_EQ(expected.size(), 1u);
        ASSERT_EQ(expected[0].bytes, b);
        break;
      case FaultLine::Fate::Change:
        ASSERT_EQ(expected.size(), 1u);
        ASSERT_EQ(expected[0].bytes, changed.bytes);
        ASSERT_NE(changed.bytes, b);
        break;
    }
  }
  EXPECT_EQ(through.line.counters().injected, in_place.line.counters().injected);
  EXPECT_EQ(through.line.counters().delivered, in_place.line.counters().delivered);
  EXPECT_EQ(through.line.counters().spared, in_place.line.counters().spared);
  EXPECT_GT(in_place.count(FaultKind::Corrupt), 100u);
}

TEST(FaultLine, EveryFrameIsAccountedFor) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Line l("");
    FaultPlan p = plan(
        "loss=0.1:2,dup=0.1,reorder=0.1:4,corrupt=0.1,badsum=0.1,delay=100us,jitter=1ms,"
        "rate=200mbit,limit=40");
    p.seed = seed;
    l.line.set_plan(p);
    Rng rng(seed);
    std::int64_t us = 0;
    std::uint64_t out = 0;
    for (std::uint32_t i = 0; i < 5000; ++i) {
      us += static_cast<std::int64_t>(rng.below(60));
      l.push(segment(i, rng.between(1, 1400)), at(us));
      out += l.take(at(us)).size();
      ASSERT_GT(l.line.next_release(), at(us));
      ASSERT_EQ(l.line.next_release().is_never(), l.line.backlog() == 0);
    }
    // A caller that follows next_release gets all frames out.
    while (l.line.backlog() != 0) {
      ASSERT_FALSE(l.line.next_release().is_never());
      out += l.take(l.line.next_release()).size();
    }
    const FaultCounters& c = l.line.counters();
    EXPECT_EQ(c.frames, 5000u);
    EXPECT_EQ(c.delivered, out);
    EXPECT_EQ(out, c.frames + c.of(FaultKind::Duplicate) - c.of(FaultKind::Loss) -
                       c.of(FaultKind::Overflow));
    for (const FaultKind k : {FaultKind::Loss, FaultKind::Duplicate, FaultKind::Reorder,
                              FaultKind::Corrupt, FaultKind::BadSum, FaultKind::Overflow}) {
      EXPECT_GT(c.of(k), 0u) << fault_kind_name(k);
    }
  }
}

TEST(FaultLine, HostileFramesAreHarmless) {
  constexpr std::uint64_t kSeed = 31;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  Line l("loss=0.05,dup=0.05,reorder=0.1,corrupt=0.3,badsum=0.3,reseg=0.5,skip_handshake,seed=2");
  const Bytes seeds[] = {tcp_frame({.payload = 40, .tsval = 3}),
                         tcp_frame({.seq = 41, .payload = 400}),
                         tcp_frame({.payload = 40, .v6 = true, .vlan = 3, .padding = 9}),
                         tcp_frame({.flags = tcp::kSyn})};
  std::int64_t us = 0;
  for (int i = 0; i < 100000; ++i) {
    Bytes b = rng.chance(0.3) ? seeds[rng.below(4)] : mutate(rng, seeds[rng.below(4)]);
    if (b.size() > 34 && b[12] == 8 && b[14] == 0x45) {
      store_be16(&b[24], 0);
      store_be16(&b[24], inet_checksum(net::ipv4_header_sum(&b[14], 20)));
    }
    l.push(b, at(us += 10), static_cast<std::uint8_t>(rng.below(3)));
    for (Frame& f : l.take(at(us))) l.line.recycle(std::move(f));
  }
  EXPECT_GT(l.count(FaultKind::Join), 10u);
  EXPECT_GT(l.count(FaultKind::Cut), 1000u);
}

}  // namespace
}  // namespace urnic::fault
