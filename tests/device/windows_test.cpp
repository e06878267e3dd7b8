// Memory windows of the public API between two devices.
// proves: E-54
#include "tests/support/wired_ends.h"

namespace urnic {
namespace {

class WindowsOnWire : public test::WiredEnds {
 protected:
  WcStatus bind(QueuePair& qp, const WindowBind& b) {
    SendRequest r;
    r.opcode = Opcode::bind_window;
    r.bind = &b;
    return server.done(qp, r);
  }
  WcStatus read(std::uint64_t from, std::uint32_t rkey, std::uint32_t length = 100) {
    const auto at = reinterpret_cast<std::uint64_t>(client.memory.data());
    return client.done(Opcode::read, {at, length, sink.lkey()}, from, rkey);
  }
  void SetUp() override {
    WiredEnds::SetUp();
    sink = client.add(access_local_write);
    region = server.add(access_local_write | access_bind_window, 0x4000);
  }
  void TearDown() override {
    sink = MemoryRegion();
    region = MemoryRegion();
    WiredEnds::TearDown();
  }
  MemoryRegion sink, region;
};

// proves: E-54
TEST_P(WindowsOnWire, AreBoundUsedInvalidatedAndBoundAgain) {
  MemoryWindow w = *server.device.create_window(server.pd, WindowType::type2);
  EXPECT_EQ(w.type(), WindowType::type2);
  WindowBind b{0x4100, 200, region.lkey(), w.next_rkey(), access_remote_read};
  EXPECT_EQ(b.rkey, w.rkey());
  ASSERT_EQ(bind(server.qp, b), WcStatus::success);
  server.memory[0x100] = 0x5a;
  EXPECT_EQ(read(0x4100, w.rkey(), 200), WcStatus::success);
  EXPECT_EQ(client.memory[0], 0x5a);

  const auto busy = region.deregister();
  ASSERT_FALSE(busy.ok());
  EXPECT_EQ(busy.error().code, Errc::in_use);
  EXPECT_TRUE(region);
  const auto stays = region.reregister({{}, access_local_write, nullptr});
  ASSERT_FALSE(stays.ok());
  EXPECT_EQ(stays.error().code, Errc::in_use);

  // The peer returns it.
  const Sge into{0x4000, 16, region.lkey()};
  ASSERT_TRUE(server.qp.post_receive({9, {&into, 1}}).ok());
  SendRequest back;
  back.opcode = Opcode::send_with_invalidate;
  back.invalidate_rkey = w.rkey();
  EXPECT_EQ(client.done(client.qp, back), WcStatus::success);
  const Completion got = server.wait();
  EXPECT_TRUE(got.invalidated);
  EXPECT_EQ(got.invalidated_rkey, w.rkey());

  b.rkey = w.next_rkey();
  b.access = access_remote_read | access_zero_based;
  ASSERT_EQ(bind(server.qp, b), WcStatus::success);
  EXPECT_EQ(read(0, w.rkey(), 200), WcStatus::success);
  SendRequest invalidate;
  invalidate.opcode = Opcode::local_invalidate;
  invalidate.invalidate_rkey = w.rkey();
  EXPECT_EQ(server.done(server.qp, invalidate), WcStatus::success);
  EXPECT_EQ(read(0, w.rkey()), WcStatus::remote_access);
  EXPECT_TRUE(region.deregister().ok());
  EXPECT_FALSE(region);
}

// proves: E-54
TEST_P(WindowsOnWire, Type1BelongsToTheDomainAndType2ToTheQueuePair) {
  QueuePair at = server.another(), from = client.another();
  join(at, from);
  MemoryWindow one = *server.device.create_window(server.pd, WindowType::type1);
  MemoryWindow two = *server.device.create_window(server.pd, WindowType::type2);
  for (MemoryWindow* w : {&one, &two}) {
    ASSERT_EQ(bind(at, {0x4000, 100, region.lkey(), w->next_rkey(), access_remote_read}),
              WcStatus::success);
  }
  EXPECT_EQ(read(0x4000, one.rkey()), WcStatus::success);
  EXPECT_EQ(read(0x4000, two.rkey()), WcStatus::remote_access);
}

// proves: E-54
TEST_P(WindowsOnWire, AnInvalidBindEndsTheQueuePair) {
  MemoryWindow w = *server.device.create_window(server.pd, WindowType::type1);
  SendRequest nothing;
  nothing.opcode = Opcode::bind_window;
  EXPECT_FALSE(server.qp.post_send(nothing).ok()) << "no WindowBind";
  const std::uint32_t wrong = access_remote_read | 0x10000;
  EXPECT_EQ(bind(server.qp, {0x4000, 100, region.lkey(), w.next_rkey(), wrong}),
            WcStatus::window_bind);
  EXPECT_EQ(server.qp.state(), QpState::error);
}

// proves: E-54
TEST_P(WindowsOnWire, EndWithTheirRegionOrTheirHandle) {
  {
    MemoryWindow w = *server.device.create_window(server.pd, WindowType::type1);
    ASSERT_EQ(bind(server.qp, {0x4000, 100, region.lkey(), w.next_rkey(), access_remote_read}),
              WcStatus::success);
    ASSERT_FALSE(region.deregister().ok());
  }
  EXPECT_TRUE(region.deregister().ok()) << "the window is gone";
  region = server.add(access_bind_window, 0x4000);
  MemoryWindow w = *server.device.create_window(server.pd, WindowType::type1);
  ASSERT_EQ(bind(server.qp, {0x4000, 100, region.lkey(), w.next_rkey(), access_remote_read}),
            WcStatus::success);
  EXPECT_EQ(read(0x4000, w.rkey()), WcStatus::success);
  region = MemoryRegion();
  EXPECT_EQ(read(0x4000, w.rkey()), WcStatus::remote_access);
}

INSTANTIATE_TEST_SUITE_P(Wires, WindowsOnWire, ::testing::Values("memif", "tcp"));

TEST(EmptyHandle, MemoryWindow) {
  MemoryWindow w;
  EXPECT_FALSE(w);
  EXPECT_EQ(w.rkey(), 0u);
  EXPECT_EQ(w.next_rkey(), 0u);
}

}  // namespace
}  // namespace urnic
