#include "fault/resegmenter.h"

#include <gtest/gtest.h>

#include <set>

#include "tcp_frames.h"

namespace urnic::fault {
namespace {

using namespace urnic::test;

Instant at(std::int64_t us) {
  return Instant::from_ns(0) + Duration::us(us);
}

struct Passage {
  std::vector<Frame> out;
  ResegmentStats stats;
};

// Passes `count` segments of `size` bytes through a resegmenter and flushes it at the end.
Passage run(std::uint64_t seed, double p, std::size_t count, std::size_t size, bool v6 = false,
            std::uint32_t mtu = 1500) {
  Resegmenter r{Rng(seed)};
  Passage result;
  std::uint32_t seq = 0xffff0000;  // wraps around on the way
  for (std::size_t i = 0; i < count; ++i) {
    SegmentSpec s{.seq = seq, .payload = size, .v6 = v6, .tsval = 5};
    if (i % 4 == 3) s.flags |= tcp::kPsh;
    if (i + 1 == count) s.flags |= tcp::kFin;
    const Frame f = as_frame(s);
    const auto v = view(f);
    Resegmenter::Rule rule;
    rule.probability = p;
    rule.touch = true;
    rule.mtu = mtu;
    rule.hold = Duration::ms(1);
    r.push(f, &v, rule, at(static_cast<std::int64_t>(i)), result.out);
    seq += static_cast<std::uint32_t>(size);
  }
  r.flush_all(result.out);
  result.stats = r.stats();
  return result;
}

// The stream is unchanged: in order, complete, correct content, FIN only on the last segment.
void expect_same_stream(const Passage& r, std::size_t bytes, std::uint32_t mtu) {
  std::uint32_t seq = 0xffff0000;
  for (std::size_t i = 0; i < r.out.size(); ++i) {
    const auto v = view(r.out[i]);
    ASSERT_EQ(v.seq, seq);
    ASSERT_GT(v.payload_len, 0u);
    ASSERT_LE(v.overhead() - v.net.l3_offset + v.payload_len, mtu);
    ASSERT_EQ(v.has(tcp::kFin), i + 1 == r.out.size());
    expect_sound(r.out[i]);
    seq += v.payload_len;
  }
  ASSERT_EQ(seq, 0xffff0000 + static_cast<std::uint32_t>(bytes));
}

// proves: E-37
TEST(Resegmenter, TheStreamIsUnchangedAndBoundariesMove) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    for (const std::size_t size : {1u, 7u, 300u, 1428u}) {
      const Passage r = run(seed, 0.5, 200, size, seed % 2 == 0);
      expect_same_stream(r, 200 * size, 1500);
      EXPECT_GT(r.stats.joined, 0u);
      if (size > 2) {
        EXPECT_GT(r.stats.cut, 0u);
        // Some segment begins at a new boundary, and some segment spans an old one.
        std::set<std::uint32_t> starts;
        bool spans = false;
        for (const Frame& f : r.out) {
          const auto v = view(f);
          const std::uint32_t from = (v.seq - 0xffff0000) % size;
          starts.insert(from);
          spans = spans || from + v.payload_len > size;
        }
        EXPECT_GT(starts.size(), 5u);
        EXPECT_TRUE(spans);
      }
    }
  }
}

TEST(Resegmenter, ProbabilityZeroChangesNothing) {
  const Passage r = run(3, 0, 50, 1000);
  EXPECT_EQ(r.out.size(), 50u);
  EXPECT_EQ(r.stats.cut + r.stats.joined, 0u);
}

TEST(Resegmenter, SameSeedSameResult) {
  const Passage a = run(9, 0.3, 300, 900), b = run(9, 0.3, 300, 900), c = run(10, 0.3, 300, 900);
  ASSERT_EQ(a.out.size(), b.out.size());
  for (std::size_t i = 0; i < a.out.size(); ++i) EXPECT_EQ(a.out[i].bytes, b.out[i].bytes);
  bool differs = a.out.size() != c.out.size();
  for (std::size_t i = 0; !differs && i < a.out.size(); ++i)
    differs = a.out[i].bytes != c.out[i].bytes;
  EXPECT_TRUE(differs);
}

TEST(Resegmenter, HeldBytesAreReleasedAtTheirDeadline) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Resegmenter r{Rng(seed)};
    std::vector<Frame> out;
    const Frame f = as_frame({.seq = 5, .payload = 100});
    const auto v = view(f);
    Resegmenter::Rule rule;
    rule.probability = 1;
    rule.touch = true;
    rule.hold = Duration::us(700);
    r.push(f, &v, rule, at(1000), out);
    if (r.held() == 0) continue;
    EXPECT_EQ(r.next_deadline(), at(1700));
    const std::size_t before = out.size();
    r.flush(at(1699), out);
    EXPECT_EQ(out.size(), before);
    r.flush(at(1700), out);
    EXPECT_EQ(out.size(), before + 1);
    EXPECT_EQ(r.held(), 0u);
    EXPECT_TRUE(r.next_deadline().is_never());
    return;
  }
  FAIL() << "no seed held anything";
}

TEST(Resegmenter, SpecialSegmentsPassInOrderAndReleaseHeldBytes) {
  for (const SegmentSpec& special :
       {SegmentSpec{.seq = 105, .payload = 0}, SegmentSpec{.seq = 105, .flags = tcp::kRst},
        SegmentSpec{.seq = 105, .payload = 3, .flags = tcp::kSyn},
        SegmentSpec{.seq = 105, .payload = 3, .flags = tcp::kAck | tcp::kUrg},
        SegmentSpec{.seq = 500, .payload = 3}, SegmentSpec{.seq = 5, .payload = 100}}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Resegmenter r{Rng(seed)};
      std::vector<Frame> out;
      Resegmenter::Rule rule;
      rule.probability = 1;
      rule.touch = true;
      rule.hold = Duration::s(1);
      const Frame f = as_frame({.seq = 5, .payload = 100});
      const auto v = view(f);
      r.push(f, &v, rule, at(0), out);
      const Frame s = as_frame(special);
      const auto vs = view(s);
      rule.probability = 0;
      r.push(s, &vs, rule, at(1), out);
      EXPECT_EQ(r.held(), 0u);
      EXPECT_EQ(out.back().bytes, s.bytes);  // untouched
      std::size_t bytes = 0;
      for (std::size_t i = 0; i + 1 < out.size(); ++i) bytes += view(out[i]).payload_len;
      EXPECT_EQ(bytes, 100u);
    }
  }
}

TEST(Resegmenter, WrongChecksumsAreNotRepaired) {
  Resegmenter r{Rng(1)};
  for (int i = 0; i < 50; ++i) {
    Frame f = as_frame({.seq = static_cast<std::uint32_t>(1 + i * 100), .payload = 100});
    const auto v = view(f);
    f.bytes.back() ^= 1;
    std::vector<Frame> out;
    Resegmenter::Rule rule;
    rule.probability = 1;
    rule.touch = true;
    r.push(f, &v, rule, at(0), out);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].bytes, f.bytes);
  }
}

TEST(Resegmenter, FlowsAreNotMixed) {
  Resegmenter r{Rng(4)};
  std::vector<Frame> out;
  std::map<std::uint16_t, std::uint32_t> next;
  Resegmenter::Rule rule;
  rule.probability = 0.7;
  rule.touch = true;
  rule.hold = Duration::s(1);
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const auto port = static_cast<std::uint16_t>(1000 + i % 400);  // more than can be held
    const Frame f = as_frame({.seq = 1 + i / 400 * 50, .payload = 50, .src_port = port});
    const auto v = view(f);
    r.push(f, &v, rule, at(i), out);
    EXPECT_LE(r.held(), 256u);
  }
  r.flush_all(out);
  for (const Frame& f : out) {
    const auto v = view(f);
    auto& seq = next.try_emplace(v.src().port, 1u).first->second;
    ASSERT_EQ(v.seq, seq);
    expect_sound(f);
    seq += v.payload_len;
  }
  EXPECT_EQ(next.size(), 400u);
  for (const auto& [port, seq] : next) EXPECT_EQ(seq, 251u);
}

}  // namespace
}  // namespace urnic::fault
