// The calls of the engine to InLogic, the hole counters and OutLogic, and its use of their results.
// Their rules are observed through a whole engine, on the shortest path and on the single steps.
#include "tests/iwarp/rx_path.h"

namespace urnic::test {
namespace {

using fastpath::InLogicVariant;
using fastpath::Reason;

struct Wiring : RxPath {
  std::uint32_t attempts() { return p.connection()->context.recovery_attempts; }
  std::uint64_t times(Reason why) const {
    return p.stats().iwarp.reasons[static_cast<std::size_t>(why)];
  }
};

// ---- limited recovery

// proves, L-1, L-6
TEST_F(Wiring, EveryErrorCountsOnceAndNoneDowngradesBeforeTheLimit) {
  for (const auto variant : {InLogicVariant::Fig9, InLogicVariant::Fig10}) {
    HandPeer h;
    ASSERT_TRUE(h.up([&](engine::ConnectParams& c) {
      c.context.variant = variant;
      c.context.max_recovery_attempts = 5;
      c.context.max_same_segment = 0;
    }));
    const Bytes good = h.write(0, Bytes(400, 1));
    const std::uint64_t n = good.size();
    Bytes bad = good;
    bad[100] ^= 1;
    const Bytes part(good.begin(), good.begin() + 100);
    const std::pair<std::uint64_t, Bytes> errors[] = {{0, part},
                                                      {0, joined({good, part})},
                                                      {2 * n, bad},
                                                      {0, joined({bad, good})},
                                                      {2 * n, part}};
    std::uint32_t count = 0;
    for (const auto& [at, bytes] : errors) {
      h.send(at, bytes);
      ++count;
      ASSERT_TRUE(h.fast()) << count;
      EXPECT_EQ(h.connection()->context.recovery_attempts, count);
      EXPECT_EQ(h.rcv_nxt(), 0u);
    }
    EXPECT_TRUE(h.untouched());
    EXPECT_EQ(h.stats().iwarp.recovery_attempts, 5u);
    h.send(0, part);
    EXPECT_FALSE(h.fast());
    EXPECT_EQ(h.rcv_nxt(), 100u) << "stored and acknowledged";
    EXPECT_EQ(h.stats().iwarp.downgrades, 1u);
  }
}

// proves, L-2, L-3, L-9
TEST_F(Wiring, ARecoveryEndsOnlyInOrderAndAfterItsLastError) {
  for (const std::uint32_t iss : {1000u, 0u - 1900u}) {  // the second wraps around among the errors
    SCOPED_TRACE(iss);
    HandPeer h;
    h.iss = iss;
    ASSERT_TRUE(h.up([](engine::ConnectParams& c) { c.context.max_same_segment = 0; }));
    std::vector<Bytes> f;
    for (std::uint64_t i = 0; i < 8; ++i) f.push_back(h.write(i * 1000, Bytes(400, 7)));
    const std::uint64_t n = f[0].size();
    const auto good = [&](std::uint64_t i) { h.send(i * n, f[i]); };
    const auto spoil = [&](std::uint64_t i) {
      Bytes bad = f[i];
      bad[100] ^= 1;
      h.send(i * n, bad);
    };
    const auto attempts = [&] { return h.connection()->context.recovery_attempts; };
    good(0);  // from here on the shortest path is used
    spoil(4);
    spoil(2);  // sent before that one
    ASSERT_EQ(attempts(), 2u);
    good(1);
    good(2);
    good(3);
    EXPECT_EQ(attempts(), 2u) << "not beyond the largest of them";
    good(4);
    EXPECT_EQ(attempts(), 2u) << "it equals it";
    good(6);
    EXPECT_EQ(attempts(), 2u) << "out of order";
    good(5);
    EXPECT_EQ(attempts(), 0u);
    EXPECT_EQ(h.rcv_nxt(), 7 * n);
    // The same without other gaps, by the very next segment.
    spoil(7);
    ASSERT_EQ(attempts(), 1u);
    good(7);
    EXPECT_EQ(attempts(), 1u);
    h.send(8 * n, f[0]);
    EXPECT_EQ(attempts(), 0u);
    EXPECT_EQ(h.stats().iwarp.bytes_slow, 0u);
  }
}

// proves: R-39
TEST_F(Wiring, RepairedErrorsFarApartNeverAddUp) {
  // With Fig 10 only valid segments end a recovery; with Fig 9 the next error does too.
  for (const auto variant : {InLogicVariant::Fig10, InLogicVariant::Fig9}) {
    HandPeer h;
    ASSERT_TRUE(h.up([&](engine::ConnectParams& c) {
      c.context.variant = variant;
      c.context.max_recovery_attempts = 1;
      c.context.max_same_segment = 0;
    }));
    const Bytes good = h.write(0, Bytes(400, 1));
    Bytes bad = good;
    bad[100] ^= 1;
    const std::uint64_t n = good.size();
    std::uint64_t at = 0;
    for (int i = 0; i < 50; ++i) {
      h.send(at, bad);
      ASSERT_TRUE(h.fast()) << i;
      h.send(at, good);
      h.send(at + n, good);
      at += 2 * n;
      ASSERT_EQ(h.rcv_nxt(), at);
    }
    EXPECT_EQ(h.stats().iwarp.recovery_attempts, 50u);
    EXPECT_EQ(h.stats().iwarp.downgrades, 0u);
  }
}

// proves, L-4, L-5
TEST_F(Wiring, ANewRecoveryIgnoresThePreviousOne) {
  up();
  // From two gigabytes ago: as a sequence number it looks newer.
  p.connection()->context.last_recovery_sn = tcp::Seq(p.iss + (1u << 30));
  send_spoiled(0);
  EXPECT_EQ(attempts(), 1u);
  send(0);
  send(1);
  EXPECT_EQ(attempts(), 0u);
  send_spoiled(2);
  send(2);
  EXPECT_EQ(attempts(), 1u);
  send_spoiled(3);
  EXPECT_EQ(attempts(), 1u) << "in order beyond the last: another one begins";
  send(3);
  EXPECT_EQ(attempts(), 1u);
}

// ---- validation

// proves
TEST_F(Wiring, OnePassFindsTheChecksumAndTheFirstError) {
  up();
  // TCP's checksum also covers the bytes after the error. It is correct, so the ULP drops the
  // segment.
  ASSERT_EQ(p.send(0, joined({fpdus[0], spoiled(1), fpdus[2]})).size(), 1u);
  EXPECT_EQ(times(Reason::CrcLater), 1u);
  ASSERT_EQ(p.send(0, joined({spoiled(0), fpdus[1], Bytes{0xff, 0xff, 1, 2}})).size(), 1u);
  EXPECT_EQ(times(Reason::CrcFirst), 1u);
  ASSERT_EQ(p.send(0, joined({fpdus[0], Bytes{0, 0, 0, 0}})).size(), 1u);
  EXPECT_EQ(times(Reason::TooLongLast), 1u) << "four bytes hold no FPDU";
  EXPECT_EQ(p.stats().iwarp.recovery_attempts, 3u);
  // A wrong checksum: TCP itself discards the segment, whatever the CRC is.
  EXPECT_TRUE(p.burst({{0, fpdus[0], true}}).empty());
  EXPECT_TRUE(p.burst({{0, spoiled(0), true}}).empty());
  EXPECT_EQ(p.stats().iwarp.recovery_attempts, 3u);
  EXPECT_TRUE(p.untouched());
  EXPECT_EQ(p.rcv_nxt(), 0u);
}

// ---- messages after holes

// Six Sends in each of their 720 orders: those in order complete in order, and no others.
// proves, H-1, H-2, H-3, H-4, H-5, H-6, H-7
TEST_F(Wiring, SendsInAnyOrderCompleteInMsnOrder) {
  ASSERT_TRUE(p.up());
  constexpr std::uint32_t kEach = 6;
  std::vector<std::uint32_t> order(kEach);
  for (std::uint32_t i = 0; i < kEach; ++i) order[i] = i;
  std::uint64_t at = 0;
  std::uint32_t msn = 1;
  do {
    std::vector<Bytes> m;
    std::vector<std::uint64_t> places;
    for (std::uint32_t i = 0; i < kEach; ++i) {
      ASSERT_TRUE(p.post_receive(msn + i, i * 100, 64));
      places.push_back(at);
      m.push_back(HandPeer::send_message(msn + i, Bytes(1 + i, 3)));
      at += m.back().size();
    }
    bool here[kEach + 1] = {};
    std::size_t complete = 0;
    p.receives().clear();
    for (const std::uint32_t i : order) {
      p.send(places[i], m[i]);
      here[i] = true;
      while (here[complete]) ++complete;
      ASSERT_EQ(p.receives().size(), complete);
    }
    for (std::uint32_t i = 0; i < kEach; ++i) {
      ASSERT_EQ(p.receives()[i].completion.wr_id, msn + i);
      ASSERT_EQ(p.receives()[i].completion.byte_len, 1 + i);
    }
    msn += kEach;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(p.stats().iwarp.bytes_slow, 0u);
}

// ---- Reads

struct Reads : Wiring {
  struct Sink {
    std::uint32_t stag;
    std::uint64_t to;
  };
  std::vector<Sink> sinks;  // of the Read Requests received

  void take(const std::vector<Answer>& answers) {
    constexpr std::size_t kRead = 2 + 18;  // length field and untagged header
    for (const Answer& a : answers) {
      for (std::size_t at = 0; at + kRead <= a.payload.size();) {
        const std::uint8_t* f = a.payload.data() + at;
        if ((f[3] & 0x0f) == 1) sinks.push_back({load_be32(f + kRead), load_be64(f + kRead + 4)});
        at += mpa::fpdu_size(load_be16(f));
      }
    }
  }
  void post(std::uint64_t id, verbs::WrOp op) {
    const verbs::Sge sge{p.to(30000 + id * 100), 50, p.stag};
    verbs::SendWr wr;
    wr.wr_id = id;
    wr.op = op;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, 1};
    wr.rkey = 9;
    ASSERT_EQ(p.node().post_send(*p.qp, wr, p.now), verbs::Post::Ok);
    take(p.pass(Duration::us(10)));
  }
  Bytes response(std::size_t i) {
    return make_fpdu(ddp::test::response_segment(sinks[i].stag, sinks[i].to, Bytes(50, 8)));
  }
};

// proves
TEST_F(Reads, CompleteWhenTheirHoleClosesAllOfThemInPostingOrder) {
  up();
  send(0);  // the engine may send after the first FPDU
  for (std::uint64_t i = 0; i < 3; ++i) post(i, verbs::WrOp::Read);
  ASSERT_EQ(sinks.size(), 3u);
  const std::uint64_t n = response(0).size();
  p.acknowledge(kSize);
  p.send(kSize + n, response(1));
  p.send(kSize + 2 * n, response(2));
  EXPECT_TRUE(p.sends().empty());
  p.send(kSize, response(0));
  ASSERT_EQ(p.sends().size(), 3u);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(p.sends()[i].completion.wr_id, i);
    EXPECT_EQ(p.sends()[i].completion.status, verbs::Status::Success);
    EXPECT_EQ(p.at(30000 + i * 100, 50), Bytes(50, 8));
  }
}

// proves: R-112
TEST_F(Reads, ASendAfterAReadWaitsForItsResponse) {
  up();
  send(0);
  post(1, verbs::WrOp::Read);
  post(2, verbs::WrOp::Send);
  ASSERT_EQ(sinks.size(), 1u);
  p.acknowledge(kSize);
  p.pass(Duration::us(10));
  EXPECT_TRUE(p.sends().empty()) << "acknowledged, but the Read in front is not done";
  p.send(kSize, response(0));
  ASSERT_EQ(p.sends().size(), 2u);
  EXPECT_EQ(p.sends()[0].completion.wr_id, 1u);
  EXPECT_EQ(p.sends()[1].completion.wr_id, 2u);
}

// proves: R-90
TEST_F(Reads, MoreRequestsThanNegotiatedTerminate) {
  for (const std::uint32_t requests : {4u, 5u}) {
    HandPeer h;
    ASSERT_TRUE(h.up([](engine::ConnectParams& c) { c.mpa.ird = 4; }));
    Bytes all;
    for (std::uint32_t i = 1; i <= requests; ++i) testing::append(all, h.read_request(i, 10, 0));
    h.send(0, all);
    EXPECT_EQ(h.stats().iwarp.ddp.terminates_sent, requests - 4);
  }
}

// proves
TEST_F(Reads, RequestsAfterAHoleKeepTheirEntriesAndAreAnsweredTogether) {
  up();
  send(0);
  for (std::size_t i = 0; i < 3; ++i) {
    std::fill_n(p.region.begin() + static_cast<std::ptrdiff_t>(5000 + 100 * i), 10 + i,
                static_cast<std::uint8_t>(0x40 + i));
  }
  std::vector<Bytes> r;
  for (std::uint32_t i = 0; i < 3; ++i) r.push_back(p.read_request(i + 1, 10 + i, 5000 + 100 * i));
  const std::uint64_t n = r[0].size();
  auto a = p.send(kSize + 2 * n, r[2]);
  for (const Answer& x : a) EXPECT_TRUE(x.payload.empty());
  a = p.send(kSize + n, r[1]);
  for (const Answer& x : a) EXPECT_TRUE(x.payload.empty()) << "the first is still missing";
  a = p.send(kSize, r[0]);
  Bytes got;
  for (const Answer& x : a) testing::append(got, x.payload);
  std::size_t at = 0;
  for (std::size_t i = 0; i < 3; ++i) {  // each with the bytes of its request
    ASSERT_LE(at + 2 + 14 + 10 + i, got.size());
    EXPECT_EQ(load_be16(got.data() + at), 14 + 10 + i);
    EXPECT_EQ(got[at + 16], 0x40 + i);
    at += mpa::fpdu_size(load_be16(got.data() + at));
  }
  EXPECT_EQ(p.stats().verbs.read_requests_received, 3u);
}

// ---- the shortest path

// proves: R-87
TEST_F(Wiring, TheShortestPathChecksTheRightToWrite) {
  up();
  send(0);
  Bytes local(1000, 0);
  const std::uint32_t stag =
      p.node().register_memory(local.data(), local.size(), verbs::kLocalWrite | verbs::kRemoteRead);
  p.send(kSize, make_fpdu(ddp::test::write_segment(
                    stag, reinterpret_cast<std::uintptr_t>(local.data()), Bytes(500, 1))));
  EXPECT_EQ(local, Bytes(1000, 0));
  EXPECT_EQ(p.stats().iwarp.ddp.terminates_sent, 1u);
}

// A segment that begins at RCV.NXT and reaches across a hole into a received block is an overlap,
// not the next segment in order.
// proves: H-9, R-9, R-99
TEST_F(Wiring, AnOverlapFromRcvNxtIntoABlockPlacesOnlyNewBytes) {
  up();
  send(0);
  send(2);
  ASSERT_EQ(p.holes(), 1u);
  std::fill(p.region.begin(), p.region.end(), 0);
  p.send(kSize, joined({fpdus[1], fpdus[2], fpdus[3]}));
  EXPECT_EQ(p.rcv_nxt(), 4 * kSize);
  EXPECT_TRUE(placed(1));
  EXPECT_EQ(p.at(2000, kPayload), Bytes(kPayload)) << "placed again";
  EXPECT_TRUE(placed(3));
}

// proves: E-7
TEST_F(Wiring, APendingAckGoesBeforeTheAckOfAnOutOfOrderSegment) {
  up();
  const auto a = p.burst({{0, fpdus[0]}, {2 * kSize, fpdus[2]}});
  ASSERT_EQ(a.size(), 2u);
  EXPECT_EQ(a[0].ack, kSize);
  EXPECT_TRUE(a[0].sack.empty());
  EXPECT_EQ(a[1].ack, kSize);
  EXPECT_EQ(a[1].sack.size(), 1u);
}

// proves: H-1
TEST_F(Wiring, InOrderDataBeforeAnOpenHoleIsAcceptedAndAcknowledged) {
  up();
  send(0);
  send(3);
  const auto a = send(1);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].ack, 2 * kSize);
  EXPECT_TRUE(placed(1));
  EXPECT_EQ(p.holes(), 1u);
  send(2);
  EXPECT_EQ(p.rcv_nxt(), 4 * kSize);
  EXPECT_EQ(p.holes(), 0u);
  std::fill(p.region.begin(), p.region.end(), 0);
  send(3);
  EXPECT_TRUE(p.untouched()) << "not placed again";
  // A message in it is delivered at once. A message of the block beyond the hole waits.
  HandPeer h;
  ASSERT_TRUE(h.up());
  ASSERT_TRUE(h.post_receive(1, 0, 500) && h.post_receive(2, 1000, 500));
  const Bytes w = h.write(5000, Bytes(100, 1)), m1 = HandPeer::send_message(1, Bytes(50, 2)),
              m2 = HandPeer::send_message(2, Bytes(50, 3));
  h.send(w.size() + m1.size() + w.size(), m2);
  h.send(0, w);
  EXPECT_EQ(good_receives(h), 0u);
  h.send(w.size(), m1);
  EXPECT_EQ(good_receives(h), 1u);
  EXPECT_EQ(h.holes(), 1u);
  h.send(w.size() + m1.size(), w);
  EXPECT_EQ(good_receives(h), 2u);
}

// proves: E-4
TEST_F(Wiring, AnAcknowledgementInDataOfTheShortestPathCounts) {
  up();
  send(0);
  const verbs::Sge sge{p.to(0), 100, p.stag};
  verbs::SendWr wr;
  wr.flags = verbs::kSignaled;
  wr.sges = {&sge, 1};
  ASSERT_EQ(p.node().post_send(*p.qp, wr, p.now), verbs::Post::Ok);
  p.pass(Duration::us(10));
  ASSERT_NE(p.connection()->tcb.snd.una, p.connection()->tcb.snd.nxt);
  send(1);
  EXPECT_TRUE(placed(1));
  EXPECT_EQ(p.connection()->tcb.snd.una, p.connection()->tcb.snd.nxt);
  EXPECT_EQ(p.sends().size(), 1u);
}

// proves
TEST_F(Wiring, TheShortestPathHandlesOnlySegmentsOfOneFpdu) {
  up();
  send(0);
  EXPECT_EQ(p.send(kSize, joined({fpdus[1], fpdus[2]})).back().ack, 3 * kSize);
  EXPECT_TRUE(placed(1) && placed(2));
  send_spoiled(3);
  EXPECT_EQ(p.rcv_nxt(), 3 * kSize);
  EXPECT_FALSE(placed(3));
  send(3);
  EXPECT_TRUE(placed(3));
  EXPECT_EQ(p.stats().iwarp.bytes_fast, 4 * kSize);
  EXPECT_EQ(p.stats().iwarp.fast, true);
}

}  // namespace
}  // namespace urnic::test
