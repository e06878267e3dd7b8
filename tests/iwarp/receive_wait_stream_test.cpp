// Sends without a posted receive, over the kernel's TCP, through the public API, if the consumer
// lets them wait (receive_wait_ms). Also over a memif between SLOW connections.
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "iwarp/stream_ends.h"

namespace urnic {
namespace {

using namespace stream_test;
using Clock = std::chrono::steady_clock;

// A wire, and two devices on it.
struct WaitOver : ::testing::TestWithParam<const char*> {
  void SetUp() override { open_with("60000"); }
  void TearDown() override {
    a.reset();
    b.reset();
    client = server = Device();
    if (!directory.empty()) std::filesystem::remove_all(directory);
  }
  void open_with(const char* wait_ms) {
    const bool memif = std::string(GetParam()) == "memif";
    if (memif) {
      char name[] = "/tmp/urnic-wait-XXXXXX";
      ASSERT_NE(mkdtemp(name), nullptr);
      directory = name;
    }
    const auto settings = [&](const char* role, std::string* port) {
      *port = memif ? "memif:socket=" + directory + "/w.sock,role=" + role : "tcp";
      return Settings{{"port", port->c_str()},
                      {"connection_type", memif ? "slow" : "fast"},
                      {"receive_wait_ms", wait_ms}};
    };
    std::string one, two;
    server = open(settings("server", &one));
    client = open(settings("client", &two));
    ASSERT_TRUE(server && client);
    ASSERT_TRUE(server.wait_link(10000));
    a = std::make_unique<End>(client, 4 << 20);
    b = std::make_unique<End>(server, 4 << 20);
    join(server, *b, *a, memif ? "10.77.0.1" : "127.0.0.1");
    a->fill(3);
  }
  // Posts Sends of 8 KiB.
  void send(std::size_t first, std::size_t n) {
    for (std::size_t i = first; i < first + n; ++i) {
      const Sge from = a->sge(i * kBytes, kBytes);
      ASSERT_TRUE(a->qp.post_send(a->request(Opcode::send, from, i)).ok());
    }
  }
  void receive(std::size_t i) {
    const Sge into = b->sge(i * kBytes, kBytes);
    ASSERT_TRUE(b->qp.post_receive({i, {&into, 1}}).ok());
  }
  // True once the wait has begun.
  bool waits() {
    return test::soon([&] {
      if (b->qp.stats().iwarp.receive_waits != 0) return true;
      Completion c[1];
      b->cq.poll(c);
      return false;
    });
  }

  void expect_no_connection() {
    EXPECT_TRUE(test::soon([&] { return server.stats().connections.empty(); }));
  }

  static constexpr std::uint32_t kBytes = 8192;
  std::string directory;
  Device server, client;
  std::unique_ptr<End> a, b;
};

// proves: R-116
TEST_P(WaitOver, MoreThanTheWindowWaitsAndArrivesCompleteAndInOrder) {
  constexpr std::size_t kSends = 400;
  std::jthread sender([&] {
    bool all = true;
    for (std::size_t i = 0; i < kSends && all; i += 50) {
      send(i, 50);
      for (std::size_t k = 0; k < 50 && all; ++k) all = a->wait().status == WcStatus::success;
    }
    EXPECT_TRUE(all);
  });
  ASSERT_TRUE(waits());
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  for (std::size_t i = 0; i < kSends; ++i) {
    receive(i);
    const Completion c = b->wait();
    ASSERT_EQ(c.status, WcStatus::success) << i;
    ASSERT_EQ(c.wr_id, i);
    ASSERT_EQ(std::memcmp(b->memory.data() + i * kBytes, a->memory.data() + i * kBytes, kBytes), 0);
  }
}

// proves: R-116
TEST_P(WaitOver, SendingContinuesDuringTheWait) {
  send(0, 20);
  ASSERT_TRUE(waits());
  const Sge into = a->sge(1 << 20, 500), from = b->sge(0, 500);
  b->fill(9);
  ASSERT_TRUE(a->qp.post_receive({1000, {&into, 1}}).ok());
  ASSERT_TRUE(b->qp.post_send(b->request(Opcode::send, from, 1)).ok());
  for (;;) {
    const Completion c = a->wait();
    ASSERT_EQ(c.status, WcStatus::success);
    if (c.wr_id != 1000) continue;
    EXPECT_EQ(std::memcmp(a->memory.data() + (1 << 20), b->memory.data(), 500), 0);
    break;
  }
}

// proves: R-116
TEST_P(WaitOver, TheOrderlyEndComesAfterTheWaitingData) {
  send(0, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(a->wait().status, WcStatus::success);
  ASSERT_TRUE(waits());
  a->qp.disconnect();
  Event e;
  b->events.wait(&e, 300);
  EXPECT_EQ(b->qp.state(), QpState::rts) << "what waits comes first";
  for (std::size_t i = 0; i < 3; ++i) {
    receive(i);
    EXPECT_EQ(b->wait().status, WcStatus::success);
  }
  EXPECT_EQ(b->ending().kind, EventKind::disconnected);
  EXPECT_EQ(a->ending().kind, EventKind::disconnected);
}

// More data waits than the inbox and the window hold, so the engine does not read up to the RST.
// proves: R-116
TEST_P(WaitOver, AResetByThePeerEndsTheWait) {
  send(0, 100);
  ASSERT_TRUE(waits());
  const auto begin = Clock::now();
  a->qp = QueuePair();
  EXPECT_EQ(b->ending().kind, EventKind::failed);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(40)) << "before the wait is over";
}

// proves: R-116
TEST_P(WaitOver, DisconnectAndDestructionEndTheWait) {
  send(0, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(a->wait().status, WcStatus::success);
  ASSERT_TRUE(waits());
  b->qp.disconnect();
  const Event here = b->ending(), there = a->ending();
  EXPECT_EQ(here.kind, EventKind::disconnected) << here.error.message;
  EXPECT_EQ(there.kind, EventKind::disconnected) << there.error.message;
  b->qp = QueuePair();
  EXPECT_EQ(server.stats().connections.size(), 0u);
}

// The waiting data will not be received any more, and must not delay anything.
// proves: R-116
TEST_P(WaitOver, DestructionAfterADisconnectDropsTheWaitingData) {
  send(0, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(a->wait().status, WcStatus::success);
  ASSERT_TRUE(waits());
  b->qp.disconnect();
  b->qp = QueuePair();
  const Event there = a->ending();
  EXPECT_EQ(there.kind, EventKind::disconnected) << there.error.message;
  expect_no_connection();
}

// The peer has closed in the meantime: its FIN is after the waiting data.
// proves: R-116
TEST_P(WaitOver, DestructionWithThePeersFinAfterTheWaitingData) {
  send(0, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(a->wait().status, WcStatus::success);
  ASSERT_TRUE(waits());
  a->qp.disconnect();
  Event e;
  EXPECT_FALSE(b->events.wait(&e, 200));
  b->qp.disconnect();
  b->qp = QueuePair();
  const Event there = a->ending();
  EXPECT_EQ(there.kind, EventKind::disconnected) << there.error.message;
  expect_no_connection();
}

// proves: R-116, E-50
TEST_P(WaitOver, DestructionWhileASendWaitsIsAnAbort) {
  send(0, 3);
  ASSERT_TRUE(waits());
  b->qp = QueuePair();
  const Event there = a->ending();
  EXPECT_EQ(there.kind, EventKind::failed);
  EXPECT_EQ(there.error.code, Errc::reset) << there.error.message;
  expect_no_connection();
}

INSTANTIATE_TEST_SUITE_P(Wires, WaitOver, ::testing::Values("tcp", "memif"));

struct ShortWaitOver : WaitOver {
  void SetUp() override { open_with("300"); }
};

// proves: R-116
TEST_P(ShortWaitOver, TheSettingBoundsTheWait) {
  send(0, 3);
  ASSERT_TRUE(waits());
  const Event e = b->ending();
  EXPECT_EQ(e.kind, EventKind::failed);
  EXPECT_NE(e.error.message.find("no buffer"), std::string::npos) << e.error.message;
  EXPECT_EQ(a->ending().kind, EventKind::failed);
}

INSTANTIATE_TEST_SUITE_P(Wires, ShortWaitOver, ::testing::Values("tcp", "memif"));

}  // namespace
}  // namespace urnic
