// A work request has its place in its queue until its completion, or a later one, has been polled:
// who posts until there is no room never overruns a completion queue of that size.
// proves: E-47
#include "tests/support/wired_ends.h"

namespace urnic {
namespace {

constexpr std::uint32_t kPlaces = 8;

class PlacesOnWire : public test::WiredEnds {
 protected:
  void SetUp() override {
    WiredEnds::SetUp();
    target = server.add(access_local_write | access_remote_write);
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
  // The id after the last, when there is room.
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
      EXPECT_EQ(result.error().code, Errc::no_memory) << result.error().message;
    }
    posted += result.ok();
    return result.ok();
  }
  // What has been posted is at the other end, and as a rule complete.
  void let_go() {
    for (int i = 0; i < 20; ++i) {
      client.device.progress();
      server.device.progress();
      usleep(1000);
    }
  }
  int poll(CompletionQueue& cq, std::size_t most) {
    Completion c[kPlaces];
    for (int tries = 0; tries < 100; ++tries) {
      const int n = cq.poll({c, most});
      for (int i = 0; i < n; ++i) {
        EXPECT_EQ(c[i].status, WcStatus::success);
        last = c[i].wr_id;
      }
      if (n != 0) return n;
      cq.wait(100);
    }
    return 0;
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
    ASSERT_EQ(poll(sends, 1), 1);
    EXPECT_TRUE(post()) << "one polled, one free";
    EXPECT_FALSE(post());
    for (std::uint32_t i = 0; i < kPlaces; ++i) EXPECT_EQ(poll(sends, 1), 1);
    EXPECT_EQ(last + 1, posted);
  }
  EXPECT_EQ(from.state(), QpState::rts);
}

TEST_P(PlacesOnWire, WithoutACompletionGoWithALaterOneOrByThemselves) {
  // None is signalled: nothing could be polled.
  for (int i = 0; i < 100; ++i) {
    if (!post(Opcode::write, 0)) let_go();
  }
  EXPECT_GT(posted, 2 * kPlaces);
  let_go();
  // Behind one that waits to be polled they stay, and go with the next that is.
  ASSERT_TRUE(post());
  for (std::uint32_t i = 2; i < kPlaces; ++i) ASSERT_TRUE(post(Opcode::write, 0));
  ASSERT_TRUE(post());
  let_go();
  EXPECT_FALSE(post(Opcode::write, 0));
  ASSERT_EQ(poll(sends, 1), 1);
  ASSERT_TRUE(post(Opcode::write, 0));
  EXPECT_FALSE(post(Opcode::write, 0)) << "the last one's completion is there still";
  ASSERT_EQ(poll(sends, 1), 1);
  let_go();
  for (std::uint32_t i = 0; i < kPlaces; ++i) EXPECT_TRUE(post());
}

TEST_P(PlacesOnWire, OfReceivesAreFreeWhenTheirCompletionsHaveBeenPolled) {
  const auto receive = [&] { return to.post_receive({7, {}}); };
  for (std::uint32_t i = 0; i < kPlaces; ++i) ASSERT_TRUE(receive().ok());
  const auto no_place = [&] {
    const auto result = receive();
    return !result.ok() && result.error().code == Errc::no_memory;
  };
  EXPECT_TRUE(no_place());
  for (std::uint32_t i = 0; i < kPlaces; ++i) {
    SendRequest empty;
    ASSERT_TRUE(from.post_send(empty).ok());
    ASSERT_EQ(poll(sends, 1), 1);
  }
  let_go();
  EXPECT_TRUE(no_place()) << "used, and not polled";
  ASSERT_EQ(poll(receives, 3), 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(receive().ok());
  EXPECT_TRUE(no_place());
  EXPECT_EQ(to.state(), QpState::rts);
}

TEST_P(PlacesOnWire, AreForgottenByResetAndOutlivedByCompletions) {
  while (post()) {
  }
  let_go();
  ASSERT_TRUE(from.modify(QpState::reset).ok());
  ASSERT_TRUE(from.modify(QpState::init).ok());
  to = other(server, receives);
  join(to, from);
  for (std::uint32_t i = 0; i < kPlaces; ++i) EXPECT_TRUE(post());
  let_go();
  from = QueuePair();
  int left = 0;
  for (int n; (n = poll(sends, kPlaces)) > 0;) {
    if ((left += n) == static_cast<int>(kPlaces)) break;
  }
  EXPECT_EQ(left, static_cast<int>(kPlaces)) << "polled behind the end of their queue";
}

INSTANTIATE_TEST_SUITE_P(Wires, PlacesOnWire, ::testing::Values("memif", "tcp"));

}  // namespace
}  // namespace urnic
