// The faults of a stream as a function of (plan, records, now).
#include "fault/stream_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "mpa/fpdu.h"
#include "mpa/startup.h"

namespace urnic::fault {
namespace {

using Bytes = std::vector<std::uint8_t>;

Instant at_us(std::int64_t us) {
  return Instant() + Duration::us(us);
}

// An FPDU with this many bytes of ULPDU.
Bytes fpdu(std::uint32_t ulpdu, std::uint8_t seed = 1) {
  Bytes b(mpa::fpdu_size(ulpdu), 0);
  store_be16(b.data(), static_cast<std::uint16_t>(ulpdu));
  for (std::uint32_t i = 0; i < ulpdu; ++i) b[2 + i] = static_cast<std::uint8_t>(seed + i * 3);
  const std::uint32_t crc = crc32c(ByteView(b).first(b.size() - mpa::kCrcField));
  for (unsigned i = 0; i < 4; ++i) b[b.size() - 4 + i] = static_cast<std::uint8_t>(crc >> (8 * i));
  return b;
}

bool has_good_crc(ByteView b) {
  return crc32c(b.first(b.size() - mpa::kCrcField)) == mpa::crc_of(b);
}

Bytes start_up() {
  mpa::StartupFrame f;
  f.private_len = 16;
  Bytes b(mpa::kFrameHeader + mpa::kMaxPrivateData);
  b.resize(mpa::emit_frame(f, b.data()));
  return b;
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct StreamLineTest : testing::Test {
  void plan(const std::string& text) {
    const auto p = FaultPlan::parse(text, Carrier::Stream);
    ASSERT_TRUE(p.ok()) << p.error();
    log.emplace(100000);
    all.emplace(*p, &*log);
    line = all->open();
  }
  // One record, in two pieces of memory.
  std::size_t send(Bytes record, Instant now) {
    const std::size_t half = record.size() / 3;
    const iovec pieces[] = {{record.data(), half}, {record.data() + half, record.size() - half}};
    const auto n = static_cast<std::uint32_t>(record.size());
    return line->send(pieces, {&n, 1}, now);
  }
  // What the socket gets until nothing more is due, piece by piece.
  std::vector<Bytes> take(Instant now) {
    std::vector<Bytes> out;
    for (ByteView b; !(b = line->due(now)).empty();) {
      out.emplace_back(b.begin(), b.end());
      line->passed(b.size());
    }
    return out;
  }
  std::uint64_t count(FaultKind k, Direction d = Direction::Tx) { return all->counters(d).of(k); }
  std::vector<std::uint64_t> offsets(FaultKind k) {
    std::vector<std::uint64_t> out;
    for (const FaultRecord& r : log->records()) {
      if (r.kind == k) out.push_back(r.seq);
    }
    return out;
  }

  std::optional<FaultLog> log;
  std::optional<StreamFaults> all;
  std::unique_ptr<kernel_tcp::FaultyStream> line;
  const Instant t0 = at_us(1000);
};

TEST_F(StreamLineTest, WithoutAFaultARecordLeavesAtOnceAndUnchanged) {
  plan("corrupt=0,seed=4");
  EXPECT_EQ(send(fpdu(100), t0), fpdu(100).size());
  EXPECT_FALSE(line->empty());
  EXPECT_EQ(take(t0), std::vector<Bytes>{fpdu(100)});
  EXPECT_TRUE(line->empty());
  EXPECT_TRUE(line->next_due().is_never());
  EXPECT_EQ(all->counters(Direction::Tx).frames, 1u);
  EXPECT_EQ(all->counters(Direction::Tx).delivered, 1u);
}

TEST_F(StreamLineTest, ASocketThatTakesAPartGetsTheRestLater) {
  plan("delay=0s");
  send(fpdu(50), t0);
  const Bytes all_of_it = fpdu(50);
  line->passed(7);
  const ByteView rest = line->due(t0);
  EXPECT_EQ(Bytes(rest.begin(), rest.end()), Bytes(all_of_it.begin() + 7, all_of_it.end()));
  EXPECT_EQ(all->counters(Direction::Tx).delivered, 0u);
  line->passed(rest.size());
  EXPECT_EQ(all->counters(Direction::Tx).delivered, 1u);
}

// proves: E-48
TEST_F(StreamLineTest, ALostRecordAndAllAfterItComeAfterTheRetransmission) {
  plan("at=loss:2,rto=50ms");
  send(fpdu(10, 1), t0);
  send(fpdu(10, 2), t0);
  send(fpdu(10, 3), t0 + Duration::ms(1));
  EXPECT_EQ(take(t0 + Duration::ms(1)), std::vector<Bytes>{fpdu(10, 1)});
  EXPECT_EQ(line->next_due(), t0 + Duration::ms(50));
  EXPECT_TRUE(take(t0 + Duration::ms(49)).empty());
  EXPECT_EQ(take(t0 + Duration::ms(50)), (std::vector<Bytes>{fpdu(10, 2), fpdu(10, 3)}));
  EXPECT_EQ(count(FaultKind::Loss), 1u);
  EXPECT_EQ(offsets(FaultKind::Loss), std::vector<std::uint64_t>{fpdu(10).size()});
}

// TCP repairs losses of the same time together, and a path that stands still twice stands longer.
// proves: E-48
TEST_F(StreamLineTest, LossesOverlapAndStallsFollowEachOther) {
  plan("at=loss:1+loss:2,rto=50ms");
  send(fpdu(10), t0);
  send(fpdu(10), t0 + Duration::ms(3));
  EXPECT_EQ(take(t0 + Duration::ms(53)).size(), 2u);
  plan("at=stall:1+stall:2,stall=0:50ms");
  send(fpdu(10), t0);
  send(fpdu(10), t0 + Duration::ms(3));
  EXPECT_EQ(take(t0 + Duration::ms(99)).size(), 1u);
  EXPECT_EQ(take(t0 + Duration::ms(100)).size(), 1u);
  EXPECT_EQ(count(FaultKind::Stall), 2u);
}

TEST_F(StreamLineTest, TheUsualTimes) {
  plan("at=loss:1");
  send(fpdu(10), t0);
  EXPECT_EQ(line->next_due(), t0 + Duration::ms(200));
  plan("at=stall:1");
  send(fpdu(10), t0);
  EXPECT_EQ(line->next_due(), t0 + Duration::ms(500));
}

TEST_F(StreamLineTest, DelayAndJitterKeepTheOrder) {
  plan("delay=2ms,jitter=3ms,seed=9");
  std::vector<Bytes> sent;
  bool jitter = false;
  for (std::uint8_t i = 0; i < 100; ++i) {
    const Instant now = t0 + Duration::us(10 * i);
    sent.push_back(fpdu(20, i));
    send(sent.back(), now);
    jitter |= line->next_due() != t0 + Duration::ms(2);
  }
  EXPECT_TRUE(jitter);
  EXPECT_TRUE(take(t0 + Duration::us(1999)).empty());
  std::vector<Bytes> got = take(t0 + Duration::ms(3));
  EXPECT_LT(got.size(), 100u);
  for (Bytes& b : take(t0 + Duration::ms(7))) got.push_back(std::move(b));
  EXPECT_EQ(got, sent);
}

TEST_F(StreamLineTest, TheConnectionsShareTheLine) {
  plan("rate=8mbit");  // one byte takes a microsecond
  const auto other = all->open();
  send(Bytes(1000, 0), t0);
  Bytes b(500, 0);
  const iovec piece{b.data(), b.size()};
  const std::uint32_t n = 500;
  other->send({&piece, 1}, {&n, 1}, t0);
  EXPECT_EQ(line->next_due(), t0 + Duration::us(1000));
  EXPECT_EQ(other->next_due(), t0 + Duration::us(1500));
}

// proves: E-48
TEST_F(StreamLineTest, OnlyTheCrcSeesACorruptedFpdu) {
  plan("corrupt=1,skip_handshake,seed=3");
  send(start_up(), t0);
  EXPECT_EQ(take(t0), std::vector<Bytes>{start_up()});
  for (std::uint32_t n = 1; n < 200; ++n) {
    const Bytes clean = fpdu(n);
    send(clean, t0);
    const std::vector<Bytes> got = take(t0);
    ASSERT_EQ(got.size(), 1u);
    ASSERT_EQ(got[0].size(), clean.size());
    EXPECT_EQ(load_be16(got[0].data()), n) << "the peer finds its end";
    EXPECT_FALSE(has_good_crc(got[0])) << n;
    std::size_t first = clean.size(), last = 0;
    for (std::size_t i = 0; i < clean.size(); ++i) {
      if (clean[i] == got[0][i]) continue;
      first = std::min(first, i);
      last = i;
    }
    EXPECT_LE(last - first, 3u);
    EXPECT_EQ(log->records().back().at, first);
  }
  EXPECT_EQ(count(FaultKind::Corrupt), 199u);
}

// proves: E-48
TEST_F(StreamLineTest, AStartUpFrameHasNoCrcSoItIsNotCorrupted) {
  plan("corrupt=1");
  send(start_up(), t0);
  EXPECT_EQ(take(t0), std::vector<Bytes>{start_up()});
  EXPECT_EQ(count(FaultKind::Corrupt), 0u);
}

TEST_F(StreamLineTest, AnyFpduOfARecordIsCorrupted) {
  plan("corrupt=1,seed=5");
  send(start_up(), t0);
  take(t0);
  bool first = false, second = false;
  for (int i = 0; i < 50; ++i) {
    const Bytes a = fpdu(40), b = fpdu(60);
    send(a + b, t0);
    const Bytes got = take(t0).at(0);
    const bool bad_a = !has_good_crc(ByteView(got).first(a.size()));
    const bool bad_b = !has_good_crc(ByteView(got).subspan(a.size()));
    EXPECT_NE(bad_a, bad_b);
    first |= bad_a;
    second |= bad_b;
  }
  EXPECT_TRUE(first && second);
}

TEST_F(StreamLineTest, ACutRecordLeavesInPieces) {
  plan("reseg=1,hold=4ms,seed=2");
  std::size_t most = 0;
  Instant now = t0;
  for (int i = 0; i < 50; ++i) {
    send(fpdu(100), now);
    std::vector<Bytes> pieces = take(now);
    ASSERT_EQ(pieces.size(), 1u) << "the next one comes later";
    while (!line->empty()) {
      EXPECT_EQ(line->next_due(), now + Duration::ms(4));
      now = now + Duration::ms(4);
      for (Bytes& b : take(now)) pieces.push_back(std::move(b));
    }
    EXPECT_GE(pieces.size(), 2u);
    most = std::max(most, pieces.size());
    Bytes whole;
    for (const Bytes& b : pieces) whole = whole + b;
    EXPECT_EQ(whole, fpdu(100));
  }
  EXPECT_EQ(most, 3u);
  EXPECT_EQ(count(FaultKind::Cut), 50u);
  EXPECT_EQ(all->counters(Direction::Tx).delivered, 50u);
}

TEST_F(StreamLineTest, AnExactCutIsWhereItWasRequested) {
  plan("at=cut:2,cut_at=3-10,hold=0s");
  send(fpdu(30), t0);
  send(fpdu(30), t0);
  const std::vector<Bytes> got = take(t0);
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[0], fpdu(30));
  EXPECT_EQ(got[1].size(), 3u);
  EXPECT_EQ(got[2].size(), 7u);
  EXPECT_EQ(got[1] + got[2] + got[3], fpdu(30));
}

TEST_F(StreamLineTest, ACutBehindTheEndIsNone) {
  plan("reseg=1,cut_at=60-70,hold=0s");
  send(Bytes(60, 1), t0);
  EXPECT_EQ(take(t0).size(), 1u);
  EXPECT_EQ(count(FaultKind::Cut), 0u);
  send(Bytes(65, 1), t0);
  EXPECT_EQ(take(t0).size(), 2u);
  EXPECT_EQ(count(FaultKind::Cut), 1u);
}

TEST_F(StreamLineTest, AResetComesAfterTheRecordsBeforeIt) {
  plan("at=reset:2,delay=1ms");
  send(fpdu(10, 1), t0);
  send(fpdu(10, 2), t0);
  EXPECT_EQ(send(fpdu(10, 3), t0), fpdu(10).size()) << "lost with the connection";
  EXPECT_FALSE(line->reset_is_due(t0));
  const Instant later = t0 + Duration::ms(1);
  EXPECT_FALSE(line->reset_is_due(later)) << "a record is before it";
  EXPECT_EQ(take(later), std::vector<Bytes>{fpdu(10, 1)});
  EXPECT_TRUE(line->reset_is_due(later));
  EXPECT_FALSE(line->empty());
  EXPECT_EQ(count(FaultKind::Reset), 1u);
}

TEST_F(StreamLineTest, TheEndIsUnderWayLikeARecord) {
  plan("delay=2ms");
  send(fpdu(10), t0);
  const Instant closed = t0 + Duration::us(30);
  EXPECT_FALSE(line->end_is_due(closed));
  take(t0 + Duration::ms(2));
  EXPECT_EQ(line->next_due(), closed + Duration::ms(2));
  EXPECT_FALSE(line->end_is_due(t0 + Duration::ms(2)));
  EXPECT_TRUE(line->end_is_due(closed + Duration::ms(2)));
  EXPECT_TRUE(line->next_due().is_never());
  plan("at=stall:1,stall=0:50ms");
  send(fpdu(10), t0);
  EXPECT_FALSE(line->end_is_due(closed));
  EXPECT_FALSE(line->end_is_due(t0 + Duration::ms(60))) << "the record is before it";
  take(t0 + Duration::ms(60));
  EXPECT_TRUE(line->end_is_due(t0 + Duration::ms(60)));
}

TEST_F(StreamLineTest, AClosedWindowOpensAfterItsTime) {
  plan("at=close_window:2,close_window=0:30ms,skip_handshake");
  const Bytes all_bytes = start_up() + fpdu(10) + fpdu(20) + fpdu(30);
  // The second FPDU begins here; its length field is complete two bytes later.
  const std::size_t second = start_up().size() + fpdu(10).size();
  for (std::size_t i = 0; i < all_bytes.size(); ++i) {
    const Instant now = t0 + Duration::us(static_cast<std::int64_t>(i));
    line->received(ByteView(all_bytes).subspan(i, 1), now);
    const bool closed = i >= second + 1;
    EXPECT_EQ(line->window_opens() > now, closed) << i;
  }
  EXPECT_EQ(line->window_opens(),
            t0 + Duration::us(static_cast<std::int64_t>(second + 1)) + Duration::ms(30));
  EXPECT_EQ(count(FaultKind::CloseWindow, Direction::Rx), 1u);
  EXPECT_EQ(count(FaultKind::CloseWindow, Direction::Tx), 0u);
  EXPECT_EQ(all->counters(Direction::Rx).frames, 4u);
  EXPECT_EQ(all->counters(Direction::Rx).spared, 1u);
}

TEST_F(StreamLineTest, RecordsReceivedDoNotDependOnTheParts) {
  std::vector<std::uint64_t> seen[2];
  Bytes stream = start_up();
  for (std::uint32_t i = 0; i < 500; ++i) stream = stream + fpdu(i % 90);
  for (const std::size_t part : {1u, 777u}) {
    plan("close_window=0.1,seed=8");
    for (std::size_t at = 0; at < stream.size(); at += part) {
      line->received(ByteView(stream).subspan(at, std::min(part, stream.size() - at)), t0);
    }
    seen[part == 1] = offsets(FaultKind::CloseWindow);
    EXPECT_EQ(all->counters(Direction::Rx).frames, 501u);
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_GT(seen[0].size(), 20u);
}

TEST_F(StreamLineTest, TheBeginningIsSpared) {
  plan("loss=1,skip_handshake");
  send(start_up(), t0);
  EXPECT_EQ(take(t0).size(), 1u);
  send(fpdu(10), t0);
  EXPECT_EQ(take(t0).size(), 0u);
  EXPECT_EQ(all->counters(Direction::Tx).spared, 1u);
  plan("loss=1,after=100");
  send(Bytes(60, 0), t0);
  send(Bytes(60, 0), t0);
  EXPECT_EQ(take(t0).size(), 2u) << "both begin before byte 100";
  send(Bytes(60, 0), t0);
  EXPECT_EQ(take(t0).size(), 0u);
  plan("loss=1,payload_only=60");
  send(Bytes(60, 0), t0);
  EXPECT_EQ(take(t0).size(), 1u);
  send(Bytes(61, 0), t0);
  EXPECT_EQ(take(t0).size(), 0u);
}

TEST_F(StreamLineTest, ExactFaultsCountTheRecordsOfAllConnections) {
  plan("at=reset:3");
  const auto other = all->open();
  send(fpdu(10), t0);
  send(fpdu(10), t0);
  Bytes b = fpdu(10);
  const iovec piece{b.data(), b.size()};
  const auto n = static_cast<std::uint32_t>(b.size());
  other->send({&piece, 1}, {&n, 1}, t0);
  EXPECT_TRUE(other->reset_is_due(t0));
  EXPECT_EQ(take(t0).size(), 2u);
  EXPECT_FALSE(line->reset_is_due(t0));
}

TEST_F(StreamLineTest, TheSameSeedHasTheSameFaults) {
  const auto run = [&](const char* seed, bool second) {
    plan(std::string("loss=0.02,corrupt=0.03,stall=0.02,reseg=0.05,hold=0s,seed=") + seed);
    if (second) {  // another connection is the first
      send(fpdu(10), t0);
      line = all->open();
    }
    send(start_up(), t0);
    for (int i = 0; i < 2000; ++i) {
      send(fpdu(40), t0);
      take(Instant::never());
    }
    std::vector<std::pair<FaultKind, std::uint32_t>> out;
    for (const FaultRecord& r : log->records()) out.emplace_back(r.kind, r.seq);
    return out;
  };
  const auto first = run("1", false);
  EXPECT_EQ(run("1", false), first);
  EXPECT_NE(run("2", false), first);
  EXPECT_NE(run("1", true), first);
  EXPECT_GT(first.size(), 150u);
  EXPECT_LT(first.size(), 400u);
}

TEST_F(StreamLineTest, EachKindComesAsOftenAsItsProbability) {
  plan("loss=0.1,corrupt=0.1,stall=0.1,reseg=0.1,rto=1us,hold=0s,seed=6");
  send(start_up(), t0);
  for (int i = 0; i < 5000; ++i) {
    send(fpdu(40), t0);
    take(Instant::never());
  }
  EXPECT_NEAR(static_cast<double>(count(FaultKind::Loss)), 500, 80);
  for (const FaultKind k : {FaultKind::Corrupt, FaultKind::Stall, FaultKind::Cut}) {
    EXPECT_NEAR(static_cast<double>(count(k)), 450, 80) << "a lost record has no other fault";
  }
}

TEST_F(StreamLineTest, SomeStreamOfAnotherKindDoesNoHarm) {
  plan("corrupt=1,reseg=1,hold=0s,close_window=1");
  Rng rng(7);
  for (int i = 0; i < 2000; ++i) {
    Bytes b(1 + rng.below(60));
    for (auto& byte : b) byte = static_cast<std::uint8_t>(rng.next());
    line->received(b, t0);
    const std::size_t n = b.size();
    EXPECT_EQ(send(std::move(b), t0), n);
    std::size_t out = 0;
    for (const Bytes& piece : take(t0)) out += piece.size();
    EXPECT_EQ(out, n);
  }
}

TEST(StreamLine, AFullLineTakesNoRecordUntilOneLeft) {
  StreamFaults all(*FaultPlan::parse("delay=1ms", Carrier::Stream));
  const auto line = all.open();
  Bytes bytes(65536, 7);
  const iovec piece{bytes.data(), bytes.size()};
  const std::uint32_t length = 65536;
  std::size_t n = 0;
  while (n < 1000 && line->send({&piece, 1}, {&length, 1}, at_us(1)) != 0) ++n;
  EXPECT_EQ(n, 64u);
  const Instant later = at_us(1001);
  ASSERT_EQ(line->due(later).size(), 65536u);
  line->passed(65536);
  EXPECT_EQ(line->send({&piece, 1}, {&length, 1}, later), 65536u);
  EXPECT_EQ(line->send({&piece, 1}, {&length, 1}, later), 0u);
}

}  // namespace
}  // namespace urnic::fault
