// Runs of FPDUs from one message: the same bytes, sums and ledger as with cut() and fill().
#include <gtest/gtest.h>

#include "ddp_rdma/sender_fixture.h"

namespace urnic::ddp::test {
namespace {

class Running : public SenderFixture {
 protected:
  // Sends everything, with a run wherever one may begin, of at most `most` segments. Returns the
  // number of segments sent in runs.
  std::uint32_t drain(std::uint32_t most) {
    std::uint32_t n = 0;
    for (;;) {
      SendRun run;
      if (most != 0 && s.begin_run(StreamOffset(wire.log.size()), kEmss, &run)) {
        EXPECT_GT(run.left, 0u);
        for (std::uint32_t i = 0; i < most && run.left != 0; ++i, ++n) {
          Bytes segment(run.wire + 16, 0xEE);
          std::uint32_t sum = 0;
          EXPECT_TRUE(s.next_of_run(&run, segment.data(), &sum));
          for (std::size_t k = run.wire; k < segment.size(); ++k) EXPECT_EQ(segment[k], 0xEE);
          segment.resize(run.wire);
          EXPECT_EQ(inet_fold(sum), inet_fold(inet_sum(segment)));
          wire.log.insert(wire.log.end(), segment.begin(), segment.end());
          wire.edges.push_back(wire.log.size());
        }
      }
      if (go() == 0) return n;
    }
  }
  void post_mix() {
    ASSERT_EQ(post(WrOp::Write, 30000, 1), verbs::Post::Ok);
    ASSERT_EQ(post(WrOp::Send, 20001, 2, kSignaled | kSolicited, 7), verbs::Post::Ok);
    ASSERT_EQ(post(WrOp::Write, 1440, 3), verbs::Post::Ok);
    ASSERT_EQ(post(WrOp::Write, 1441, 4, kSignaled, 3), verbs::Post::Ok);
    ASSERT_EQ(post(WrOp::SendInv, 4000, 5), verbs::Post::Ok);
    ASSERT_EQ(post(WrOp::Write, 200, 6), verbs::Post::Ok);
  }
};

class Twins : public ::testing::Test {
 protected:
  struct Twin : Running {
    using Running::drain;
    using Running::ids;
    using Running::post_mix;
    using Running::s;
    using Running::wire;
    void TestBody() override {}
    void finish() { ack(); }
    std::uint32_t resend(std::uint64_t begin, std::uint32_t len) { return again(begin, len); }
  };
};

// proves: E-20, E-24
TEST_F(Twins, ARunEqualsTheSingleSteps) {
  for (const bool crc : {true, false}) {
    Twin plain, runs, short_runs;
    for (Twin* t : {&plain, &runs, &short_runs}) {
      t->s.start(crc);
      t->post_mix();
    }
    EXPECT_EQ(plain.drain(0), 0u);
    // All segments except the first of each message, which begins it, and the last.
    EXPECT_EQ(runs.drain(1000), 19u + 12u + 1u);
    EXPECT_GT(short_runs.drain(2), 15u);
    for (Twin* t : {&runs, &short_runs}) {
      EXPECT_EQ(t->wire.log, plain.wire.log);
      EXPECT_EQ(t->s.ledger_size(), plain.s.ledger_size());
      EXPECT_EQ(t->s.kept_chunks(), plain.s.kept_chunks());
      // Retransmission keeps the boundaries of the run (E-24), and the same bytes.
      EXPECT_EQ(t->resend(3 * 1460, 1460), 1460u);
      EXPECT_EQ(t->resend(4 * 1460 + 8, 1452), 1452u);
      t->finish();
      EXPECT_EQ(t->ids(), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6}));
      EXPECT_TRUE(t->s.idle());
    }
  }
}

TEST_F(Running, OnlyTheMiddleOfAMessageInOnePieceOfMemoryIsARun) {
  SendRun run;
  const auto may = [&] { return s.begin_run(StreamOffset(wire.log.size()), kEmss, &run); };
  ASSERT_EQ(post(WrOp::Write, 1440 * 3), verbs::Post::Ok);
  EXPECT_FALSE(may());  // has not begun
  ASSERT_EQ(go(), 1460u);
  ASSERT_TRUE(may());
  EXPECT_EQ(run.left, 1u);                                  // the last one has another header
  EXPECT_FALSE(s.begin_run(StreamOffset(0), kEmss, &run));  // sent before
  s.stop();  // a Terminate will be sent: nothing more of the message
  EXPECT_FALSE(may());
}

// proves: E-25
TEST_F(Running, MemoryThatWasDeregisteredIsNotRead) {
  ASSERT_EQ(post(WrOp::Write, 1440 * 4), verbs::Post::Ok);
  ASSERT_EQ(go(), 1460u);
  s.detach_region(key);
  SendRun run;
  EXPECT_FALSE(s.begin_run(StreamOffset(1460), kEmss, &run));
}

// proves: E-22
TEST_F(Running, ReadResponsesAreCopiedOneByOne) {
  request_read(1440 * 4);
  ASSERT_EQ(go(), 1460u);
  SendRun run;
  EXPECT_FALSE(s.begin_run(StreamOffset(1460), kEmss, &run));
}

}  // namespace
}  // namespace urnic::ddp::test
