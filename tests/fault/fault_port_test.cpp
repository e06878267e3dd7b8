#include "faulty_port.h"

namespace urnic::fault {
namespace {

using namespace urnic::test;

TEST_F(FaultPortTest, IdlePlansPassEverything) {
  open("", "");
  EXPECT_STREQ(a.kind(), "fault");
  EXPECT_EQ(a.info().max_frame, b.info().max_frame);
  for (std::uint32_t i = 0; i < 100; ++i) {
    EXPECT_TRUE(send(a, segment(i)));
    EXPECT_TRUE(send(b, segment(i)));
  }
  EXPECT_EQ(receive(a).size(), 100u);
  EXPECT_EQ(receive(b).size(), 100u);
  EXPECT_EQ(control->counters(Direction::Rx).delivered, 100u);
  EXPECT_EQ(control->counters(Direction::Tx).delivered, 100u);
  EXPECT_EQ(a.stats().rx_frames, 100u);
}

TEST_F(FaultPortTest, EachDirectionHasItsOwnPlan) {
  open("at=loss:2", "at=dup:3");
  for (std::uint32_t i = 0; i < 4; ++i) {
    send(a, segment(i), i % 2 == 0);
    send(b, segment(i));
  }
  EXPECT_EQ(receive(a), (std::vector<Bytes>{segment(0), segment(2), segment(3)}));
  EXPECT_EQ(receive(b),
            (std::vector<Bytes>{segment(0), segment(1), segment(2), segment(2), segment(3)}));
  EXPECT_EQ(control->counters(Direction::Rx).of(FaultKind::Loss), 1u);
  EXPECT_EQ(control->counters(Direction::Tx).of(FaultKind::Duplicate), 1u);
  const auto records = control->records();
  ASSERT_EQ(records.size(), 2u);
}

TEST_F(FaultPortTest, CorruptionOnSendLeavesTheSendersMemoryAlone) {
  open("", "corrupt=1");
  Bytes bytes = segment(0);
  const Bytes before = bytes;
  ASSERT_TRUE(send(a, bytes, true));  // the payload is in the second span
  EXPECT_EQ(bytes, before);
  const auto got = receive(b);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_NE(got[0], before);
  const Frame f = frame_of(got[0]);
  EXPECT_TRUE(tcp_checksum_ok(f, view(f)));
}

TEST_F(FaultPortTest, ACompletelyLostBurstDoesNotHideTheNext) {
  open("loss=0:40,at=loss:1", "");
  for (std::uint32_t i = 0; i < 50; ++i) ASSERT_TRUE(send(b, segment(i)));
  port::Frame f[8];
  ASSERT_EQ(a.rx_burst(0, f, 8), 8u);  // the first after 40 lost ones
  EXPECT_EQ(load_be32(f[0].data[0] + 38), 1 + 100 * 40u);
  a.rx_release(0, f, 8);
  EXPECT_EQ(receive(a).size(), 2u);
  EXPECT_EQ(control->counters(Direction::Rx).of(FaultKind::Loss), 40u);
}

TEST_F(FaultPortTest, LossOnSendReturnsBuffers) {
  open("", "loss=1", {.max_frame = 2000, .ring = 4});
  for (std::uint32_t i = 0; i < 100; ++i) ASSERT_TRUE(send(a, segment(i)));
  EXPECT_TRUE(receive(b).empty());
  control->set_plan(Direction::Tx, {});
  ASSERT_TRUE(send(a, segment(7)));
  EXPECT_EQ(receive(b), std::vector<Bytes>{segment(7)});
}

TEST_F(FaultPortTest, FramesReturnedUnsentAreNotSent) {
  open("", "at=loss:9");
  port::Frame f[3];
  ASSERT_EQ(a.tx_reserve(0, 1000, f, 3), 3u);
  const Bytes bytes = segment(0);
  for (port::Frame& one : f) {
    std::memcpy(one.data[0], bytes.data(), bytes.size());
    one.len[0] = static_cast<std::uint32_t>(bytes.size());
  }
  f[1].len[0] = 0;
  a.tx_commit(0, f, 3);
  EXPECT_EQ(receive(b).size(), 2u);
}

TEST_F(FaultPortTest, DelaysFollowTheGivenClock) {
  open("delay=1ms", "delay=2ms");
  send(a, segment(0));
  send(b, segment(1));
  EXPECT_TRUE(receive(a).empty());
  EXPECT_EQ(control->next_release(), Instant::from_ns(1001000));
  EXPECT_EQ(control->backlog(), 2u);
  EXPECT_FALSE(a.arm(0));  // nothing to do yet; the owner of a virtual clock uses next_release
  a.disarm(0);
  now_ns = 1001000;
  EXPECT_EQ(receive(a), std::vector<Bytes>{segment(1)});
  EXPECT_TRUE(receive(b).empty());
  now_ns = 2001000;
  receive(a);  // any call moves due frames
  EXPECT_EQ(receive(b), std::vector<Bytes>{segment(0)});
  EXPECT_TRUE(control->next_release().is_never());
}

TEST_F(FaultPortTest, PhasesCanBeChangedWithFramesInsideAndOutside) {
  open("", "");
  send(b, segment(0));
  port::Frame f;
  ASSERT_EQ(a.rx_burst(0, &f, 1), 1u);  // lent by the inner port
  port::Frame t;
  ASSERT_EQ(a.tx_reserve(0, 200, &t, 1), 1u);  // reserved at the inner port
  control->set_plan(Direction::Rx, plan("delay=1ms"));
  control->set_plan(Direction::Tx, plan("loss=1"));
  a.rx_release(0, &f, 1);
  const Bytes bytes = segment(7);
  std::memcpy(t.data[0], bytes.data(), bytes.size());
  t.len[0] = static_cast<std::uint32_t>(bytes.size());
  a.tx_commit(0, &t, 1);
  EXPECT_EQ(receive(b), std::vector<Bytes>{bytes});
  EXPECT_EQ(control->plan(Direction::Tx).loss, 1);
  send(a, bytes);
  EXPECT_TRUE(receive(b).empty());
  send(b, segment(1));
  EXPECT_TRUE(receive(a).empty());
  control->set_plan(Direction::Rx, {});
  send(b, segment(2));
  EXPECT_TRUE(receive(a).empty());  // it must not overtake the delayed frame
  now_ns += 1000000;
  EXPECT_EQ(receive(a), (std::vector<Bytes>{segment(1), segment(2)}));
  send(b, segment(3));
  EXPECT_EQ(receive(a), std::vector<Bytes>{segment(3)});
}

TEST_F(FaultPortTest, AFullInnerPortPushesBack) {
  open("", "at=dup:100000", {.max_frame = 2000, .ring = 4});
  std::uint32_t sent = 0;
  while (sent < 5000 && send(a, segment(sent))) ++sent;
  EXPECT_GT(sent, 4u);
  EXPECT_LT(sent, 500u);
  std::vector<Bytes> all;
  for (int turn = 0; turn < 1000 && all.size() < sent; ++turn) {
    for (Bytes& x : receive(b)) all.push_back(std::move(x));
    receive(a);
  }
  ASSERT_EQ(all.size(), sent);
  for (std::uint32_t i = 0; i < sent; ++i) EXPECT_EQ(all[i], segment(i));
}

TEST_F(FaultPortTest, ASlowUserDoesNotMakeTheLineOverflow) {
  open("dup=0.001,limit=50", "");
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_TRUE(send(b, segment(i)));
  std::size_t got = 0;
  port::Frame f;
  while (a.rx_burst(0, &f, 1) == 1) {
    a.rx_release(0, &f, 1);
    ++got;
  }
  EXPECT_EQ(control->counters(Direction::Rx).of(FaultKind::Overflow), 0u);
  EXPECT_GE(got, 1000u);
}

TEST_F(FaultPortTest, QueuesAreSeparate) {
  open("at=loss:1", "", {.max_frame = 2000, .ring = 16, .queues = 2});
  EXPECT_EQ(a.info().queues, 2u);
  for (unsigned q = 0; q < 2; ++q) {
    port::Frame f;
    ASSERT_EQ(b.tx_reserve(q, 60, &f, 1), 1u);
    b.tx_commit(q, &f, 1);
    EXPECT_EQ(a.rx_burst(q, &f, 1), 0u);
    a.rx_release(q, &f, 0);
  }
  EXPECT_EQ(control->counters(Direction::Rx).of(FaultKind::Loss), 2u);
}

TEST_F(FaultPortTest, WatcherSeesEveryRecord) {
  auto [inner, other] = port::make_memory_pair();
  std::vector<FaultRecord> seen;
  FaultOptions o;
  o.rx = plan("corrupt=1");
  o.clock = {[](void* p) { return *static_cast<std::uint64_t*>(p); }, &now_ns, false};
  o.log_capacity = 2;
  o.watch = [&](const FaultRecord& r) { seen.push_back(r); };
  auto made = wrap_faults(std::move(inner), o);
  for (std::uint32_t i = 0; i < 5; ++i) send(other, segment(i));
  EXPECT_EQ(receive(made.port).size(), 5u);
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen[3].seq, 301u);
  EXPECT_EQ(seen[3].kind, FaultKind::Corrupt);
  EXPECT_EQ(made.control->records().size(), 2u);  // bounded
}

}  // namespace
}  // namespace urnic::fault
