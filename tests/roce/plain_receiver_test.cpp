// The fast path of Writes against the full path: two sides get the same frames, good, damaged and
// wrong in every way, and only one of them may use the fast path. All observable state must be the
// same after each frame.
#include "tests/roce/both_ways.h"

namespace urnic::roce::both_ways {
namespace {

// proves: IB-2, IB-18, IB-27
TEST_P(PlainReceive, AcceptsExactlyTheFramesOfTheFullPath) {
  int wrong = 0, ended = 0, kept = 0;
  std::uint64_t gaps = 0;
  for (int i = 0; i < 6000; ++i) {
    Packet p = next();
    const bool spoilt = rng_.below(8) == 0;
    if (spoilt) spoil(&p, &rng_);
    const std::uint64_t before = view_.requests;
    ASSERT_TRUE(give(p)) << "packet " << i;
    if (view_.state != QpState::Rts) {
      both([](End& e) { e.up_anew(); });
      start_anew();
      ASSERT_TRUE(same());
      ++ended;
      continue;
    }
    wrong += view_.requests == before;
    kept += view_.gaps != gaps;
    gaps = view_.gaps;
    // A spoiled packet may have been accepted as another one: both begin again. So they do if
    // packets held past a gap were accepted with it.
    const std::uint64_t took = view_.requests - before;
    if (!spoilt && took == 1) taken(p);
    if (took > 1 || (spoilt && took != 0)) {
      both([](End& e) { e.up_anew(); });
      start_anew();
      ASSERT_TRUE(same());
    }
  }
  EXPECT_GT(with_.short_ways(), 2000);
  EXPECT_GT(wrong, 200);
  EXPECT_GT(ended, 50);
  EXPECT_GT(kept, 20);
}

// A packet after a Write in the same burst is checked against the prediction.
// proves: IB-2, IB-18, IB-27, S-10
TEST_P(PlainReceive, AcceptsExactlyTheFramesOfTheFullPathInBursts) {
  most_packets_ = 9;
  int ended = 0;
  std::uint64_t wrong = 0, packets = 0, marked = 0;
  for (int i = 0; i < 1500; ++i) {
    std::vector<Packet> burst(1 + rng_.below(12));
    bool all_right = true;
    for (Packet& p : burst) {
      p = next();
      taken(p);
      if (rng_.below(15) == 0) p.tos = 3;  // CE, which is not an error
      if (rng_.below(30) != 0) continue;
      spoil(&p, &rng_);
      all_right = false;
    }
    const std::uint64_t before = view_.requests;
    ASSERT_TRUE(give(burst)) << "burst " << i;
    packets += burst.size();
    wrong += burst.size() - (view_.requests - before);
    marked += view_.marked;
    ended += view_.state != QpState::Rts;
    if (all_right && view_.state == QpState::Rts) continue;
    both([](End& e) { e.up_anew(); });
    start_anew();
    ASSERT_TRUE(same());
  }
  EXPECT_GT(static_cast<std::uint64_t>(with_.short_ways()), packets / 2);
  EXPECT_GT(wrong, 400u);
  EXPECT_GT(marked, 10u);
  EXPECT_GT(ended, 30);
}

// A middle packet at or after the end of the message is handled as if it came alone.
// proves: IB-27
TEST_P(PlainReceive, InBurstsAcceptsNothingBeyondTheEndOfTheMessage) {
  for (const std::uint32_t packets : {2u, 3u, 5u}) {
    for (const std::uint32_t beyond : {0u, 1u}) {
      length_ = left_ = packets * kPmtu;
      offset_ = 0;
      std::vector<Packet> burst;
      for (std::uint32_t i = 0; i < packets; ++i) {
        burst.push_back(next());
        taken(burst.back());
      }
      burst.back().op = Operation::WriteMiddle;
      if (beyond != 0) {
        burst.push_back(burst.back());
        burst.back().psn = psn_;
      }
      ASSERT_TRUE(give(burst)) << packets << " packets, " << beyond << " beyond";
      both([](End& e) { e.up_anew(); });
      start_anew();
    }
  }
}

// An invalid request invalidates the prediction from the Write before it.
// proves: IB-18
TEST_P(PlainReceive, AcceptsNothingAfterAnInvalidRequest) {
  most_packets_ = 9;
  for (int i = 0; i < 20; ++i) {
    const Packet p = next();
    ASSERT_TRUE(give(p));
    taken(p);
  }
  while (left_ == 0 || left_ < 5 * kPmtu) {
    const Packet p = next();
    ASSERT_TRUE(give(p));
    taken(p);
  }
  std::vector<Packet> burst(4, next());
  for (int i = 0; i < 2; ++i) {
    burst[i] = next();
    taken(burst[i]);
  }
  burst[2] = burst[3] = next();
  burst[2].op = Operation::WriteFirst;  // within a message, and with a flow of its own
  burst[2].port = 0xc123;
  const std::uint64_t before = view_.requests;
  ASSERT_TRUE(give(burst));
  EXPECT_EQ(view_.requests, before + 2);
  EXPECT_NE(view_.state, QpState::Rts);
}

// proves: IB-2
TEST_P(PlainReceive, ChecksTheStateOfTheQueuePairEachTime) {
  for (int i = 0; i < 20; ++i) {
    const Packet p = next();
    ASSERT_TRUE(give(p));
    taken(p);
  }
  both([](End& e) { e.move_to(QpState::Error); });
  const std::uint64_t before = view_.requests;
  ASSERT_TRUE(give(next()));
  EXPECT_EQ(view_.requests, before);
  EXPECT_EQ(view_.drops[static_cast<std::size_t>(ib::Drop::WrongState)], 1u);
}

// proves: IB-19
TEST_P(PlainReceive, ChecksAccessRightsEachTime) {
  for (int i = 0; i < 20; ++i) {
    const Packet p = next();
    ASSERT_TRUE(give(p));
    taken(p);
  }
  both([](End& e) {
    QpChange change;
    change.to = QpState::Rts;
    change.mask |= verbs::kQpAttrAccess;
    change.access = verbs::kRemoteRead;
    e.modify(change);
  });
  ASSERT_TRUE(give(next()));
  EXPECT_NE(view_.state, QpState::Rts);
}

TEST_P(PlainReceive, LeavesFramesInTwoPiecesToTheFullPath) {
  const Packet p = next();
  ASSERT_TRUE(give(p));
  taken(p);
  const Packet q = next();
  EXPECT_FALSE(with_.takes_in_pieces({q}, 100));
  ASSERT_TRUE(give(q));
}

// With the same headers as those before, it still has two pieces.
// proves: IB-2
TEST_P(PlainReceive, LeavesFramesInTwoPiecesToTheFullPathInBursts) {
  length_ = left_ = kPmtu;
  const Packet p = next();
  ASSERT_TRUE(give(p));  // the flow is known
  taken(p);
  length_ = left_ = 5 * kPmtu;
  std::vector<Packet> burst;
  for (int i = 0; i < 4; ++i) {
    burst.push_back(next());
    burst.back().ack = false;
    taken(burst.back());
  }
  EXPECT_FALSE(with_.takes_in_pieces(burst, 150));
}

// proves: IB-23
TEST_P(PlainReceive, ChecksTheRegionOfAWriteForEachPacket) {
  Packet p = next();
  ASSERT_TRUE(give(p));
  both([](End& e) { e.up_anew(); });
  start_anew();
  p = {};
  p.op = Operation::WriteFirst;
  p.psn = psn_;
  p.offset = kMemory - kPmtu;
  p.dma_length = 2 * kPmtu;
  p.payload = kPmtu;
  ASSERT_TRUE(give(p));
  const std::uint64_t before = view_.requests;
  p.op = Operation::WriteLast;
  ++p.psn;
  ASSERT_TRUE(give(p));
  EXPECT_EQ(view_.requests, before);
  EXPECT_EQ(view_.refusals, 1u);
}

// A NAK that is due for lack of a receive is canceled by the packet that arrives in its place.
// proves: IB-18
TEST_P(PlainReceive, ChecksForAPendingNak) {
  Packet send;
  send.op = Operation::SendOnly;  // without payload: the receives have no room
  for (int i = 0; i < 8; ++i, ++psn_) {
    send.psn = psn_;
    ASSERT_TRUE(give(send));
  }
  ASSERT_EQ(view_.requests, 8u);
  const Packet write = next();
  ASSERT_EQ(write.psn, psn_);
  send.psn = psn_;
  const Rng payload(rng_.next());
  both([&](End& e) { e.give(send, write, payload); });
  ASSERT_TRUE(same());
  EXPECT_EQ(view_.requests, 9u);
}

// Another queue pair on the same flow is checked separately.
// proves: IB-2
TEST_P(PlainReceive, AcceptsOnlyPacketsOfItsPeer) {
  for (int i = 0; i < 4; ++i) {
    const Packet p = next();
    ASSERT_TRUE(give(p));
    taken(p);
  }
  both([](End& e) { e.another(9); });
  Packet p = next();
  p.number_error = with_.qp->number() ^ with_.other->number();
  p.op = Operation::WriteOnly;
  p.dma_length = p.payload;
  p.psn = with_.first_psn();
  Packet first = p;  // from its own peer: a responder exists from now on
  first.host = 9;
  ASSERT_TRUE(give(first));
  ASSERT_TRUE(give(next()));  // the fast path is for our peer again
  ++p.psn;
  ASSERT_TRUE(give(p));
  EXPECT_EQ(view_.drops[static_cast<std::size_t>(ib::Drop::WrongAddress)], 1u);
}

}  // namespace
}  // namespace urnic::roce::both_ways
