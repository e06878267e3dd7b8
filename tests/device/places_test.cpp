// A work request occupies a place in its queue until its completion, or a later one, has been
// polled: a program that posts until there is no room never overruns a completion queue of that
// size.
// proves: E-47
#include "tests/support/wired_ends.h"

namespace urnic {
namespace {

constexpr std::uint32_t kPlaces = 8;

class PlacesOnWire : public test::WiredEnds {
 protected:
  void SetUp() override {
    WiredEnds::SetUp();
    target = server.add(test::kAllRights);
    source = client.add(access_local_write);
    sends = *client.device.create_cq(kPlaces);
    receives = *server.device.create_cq(kPlaces);
    to = other(server, receives);
    from = other(client, sends);
    join(to, from);
  }
  void TearDown() override {
    from = QueuePair();
    to = QueuePair();
    sends = receives = CompletionQueue();
    target = MemoryRegion();
    source = MemoryRegion();
    WiredEnds::TearDown();
  }
  static QueuePair other(End& end, const CompletionQueue& cq) {
    QpOptions o;
    o.send_cq = o.receive_cq = cq;
    o.max_send = o.max_receive = kPlaces;
    return *end.device.create_qp(end.pd, o);
  }
  // Posts with the next id, if there is room.
  bool post(Opcode op = Opcode::write, std::uint32_t flags = send_signaled) {
    const Sge sge{reinterpret_cast<std::uint64_t>(client.memory.data()), 8, source.lkey()};
    SendRequest r;
    r.wr_id = posted;
    r.opcode = op;
    r.flags = flags;
    r.sges = {&sge, 1};
    r.remote_address = target.remote_address();
    r.rkey = target.rkey();
    const auto result = from.post_send(r);
    if (!result.ok()) {
      EXPECT_EQ(result.error().code, Errc::queue_full) << result.error().message;
    }
    posted += result.ok();
    return result.ok();
  }
  // Lets the posted requests arrive at the other end; usually they are complete then.
  void let_go() {
    for (int i = 0; i < 20; ++i) {
      client.device.progress();
      server.device.progress();
      usleep(1000);
    }
  }
  // Polls `n` completions; fewer when no more arrived.
  std::size_t poll(CompletionQueue& cq, std::size_t n) {
    Completion c[kPlaces];
    std::size_t got = 0;
    test::soon([&] {
      const int more = cq.poll({c, n - got});
      for (int i = 0; i < more; ++i) {
        EXPECT_EQ(c[i].status, WcStatus::success);
        last = c[i].wr_id;
      }
      got += more > 0 ? static_cast<std::size_t>(more) : 0;
      return got == n;
    });
    return got;
  }
  // Posts when a request that needs no poll is complete and frees its place.
  bool post_soon(std::uint32_t flags = send_signaled) {
    return test::soon([&] { return post(Opcode::write, flags); });
  }
  MemoryRegion target, source;
  CompletionQueue sends, receives;
  QueuePair from, to;
  std::uint64_t posted = 0, last = 0;
};

TEST_P(PlacesOnWire, OfSendsAreFreeWhenTheirCompletionsHaveBeenPolled) {
  for (int round = 0; round < 5; ++round) {
    const std::uint64_t before = posted;
    for (int tries = 0; tries < 10; ++tries) {
      while (post()) {
      }
      let_go();
    }
    ASSERT_EQ(posted - before, kPlaces) << "complete, and not polled";
    ASSERT_EQ(poll(sends, 1), 1u);
    EXPECT_TRUE(post()) << "one polled, one free";
    EXPECT_FALSE(post());
    for (std::uint32_t i = 0; i < kPlaces; ++i) EXPECT_EQ(poll(sends, 1), 1u);
    EXPECT_EQ(last + 1, posted);
  }
  EXPECT_EQ(from.state(), QpState::rts);
}

TEST_P(PlacesOnWire, WithoutACompletionAreFreedByALaterOneOrByThemselves) {
  // None is signalled: there is nothing to poll.
  while (posted <= 10 * kPlaces) ASSERT_TRUE(post_soon(0));
  // After a request whose completion is not polled they stay occupied, and are freed by the next
  // polled completion.
  ASSERT_TRUE(post_soon());
  for (std::uint32_t i = 2; i < kPlaces; ++i) ASSERT_TRUE(post_soon(0));
  ASSERT_TRUE(post_soon());
  let_go();
  EXPECT_FALSE(post(Opcode::write, 0));
  ASSERT_EQ(poll(sends, 1), 1u);
  ASSERT_TRUE(post(Opcode::write, 0));
  EXPECT_FALSE(post(Opcode::write, 0)) << "the last one's completion is there still";
  ASSERT_EQ(poll(sends, 1), 1u);
  for (std::uint32_t i = 0; i < kPlaces; ++i) EXPECT_TRUE(post_soon());
}

TEST_P(PlacesOnWire, OfReceivesAreFreeWhenTheirCompletionsHaveBeenPolled) {
  const auto receive = [&] { return to.post_receive({7, {}}); };
  for (std::uint32_t i = 0; i < kPlaces; ++i) ASSERT_TRUE(receive().ok());
  const auto no_place = [&] {
    const auto result = receive();
    return !result.ok() && result.error().code == Errc::queue_full;
  };
  EXPECT_TRUE(no_place());
  for (std::uint32_t i = 0; i < kPlaces; ++i) {
    SendRequest empty;
    ASSERT_TRUE(from.post_send(empty).ok());
    ASSERT_EQ(poll(sends, 1), 1u);
  }
  let_go();
  EXPECT_TRUE(no_place()) << "used, and not polled";
  ASSERT_EQ(poll(receives, 3), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(receive().ok());
  EXPECT_TRUE(no_place());
  EXPECT_EQ(to.state(), QpState::rts);
}

TEST_P(PlacesOnWire, AreFreedByResetAndOutlivedByCompletions) {
  while (post()) {
  }
  let_go();
  ASSERT_TRUE(from.modify(QpState::reset).ok());
  ASSERT_TRUE(from.modify(QpState::init).ok());
  to = other(server, receives);
  join(to, from);
  for (std::uint32_t i = 1; i < kPlaces; ++i) EXPECT_TRUE(post());
  EXPECT_TRUE(post(Opcode::read));
  // When the Read has its response, all are complete.
  ASSERT_TRUE(test::soon([&] { return from.stats().verbs.read_response_bytes_received == 8; }));
  from = QueuePair();
  EXPECT_EQ(poll(sends, kPlaces), kPlaces) << "polled behind the end of their queue";
}

INSTANTIATE_TEST_SUITE_P(Wires, PlacesOnWire, ::testing::Values("memif", "tcp"));

}  // namespace
}  // namespace urnic
