// Connections of an engine with itself (E-30): they work, and the frames on the way to itself are
// bounded (E-46).
#include <gtest/gtest.h>

#include "port/memory_port.h"
#include "sim/node.h"

namespace urnic::test {
namespace {

struct Loopback : ::testing::Test {
  static constexpr std::size_t kSize = 8u << 20;

  Loopback() {
    auto [a, b] = port::make_memory_pair();
    other_end = std::move(b);
    engine::Options o;
    o.addresses = {"10.0.0.2/24"};
    o.seed = 3;
    o.mtu = 1500;
    o.tcp.initial_window = 4u << 20;
    node = std::make_unique<sim::Node>(o, std::move(a));
    memory.resize(kSize);
    stag = node->register_memory(memory.data(), memory.size(),
                                 verbs::kLocalRead | verbs::kLocalWrite | verbs::kRemoteWrite);
  }
  void poll() {
    node->engine().poll(now);
    now = now + Duration::us(10);
    most = std::max(most, node->engine().tables().looped);
  }
  // Connects to itself; returns the end that opened the connection.
  verbs::QueuePair* connect() {
    verbs::QueuePair* qp = node->make_qp();
    const SocketAddress to{IpAddress::v4(10, 0, 0, 2), 7000};
    EXPECT_TRUE(
        node->engine().iwarp().connect(*qp, to, node->engine().iwarp().default_params(), now).ok());
    bool up = false;
    for (int i = 0; i < 1000 && !up; ++i) {
      poll();
      while (!node->events.empty()) {
        const engine::CmEvent e = node->events.front();
        node->events.pop_front();
        if (e.kind == engine::CmEvent::Kind::ConnectRequest) {
          EXPECT_TRUE(node->engine()
                          .iwarp()
                          .accept(e.request.id, *node->make_qp(),
                                  node->engine().iwarp().default_params(), now)
                          .ok());
        }
        up |= e.kind == engine::CmEvent::Kind::Established && e.qp == qp;
      }
    }
    EXPECT_TRUE(up);
    return qp;
  }

  port::Port other_end;
  std::unique_ptr<sim::Node> node;
  std::vector<std::uint8_t> memory;
  std::uint32_t stag = 0;
  Instant now = Instant::from_ns(1'000'000'000);
  std::size_t most = 0;
};

// proves: E-46, E-30
TEST_F(Loopback, LoopedFramesAreBounded) {
  ASSERT_TRUE(node->engine().iwarp().listen(7000, 32));
  std::vector<verbs::QueuePair*> qps;
  for (int i = 0; i < 40; ++i) qps.push_back(connect());
  const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
  for (std::size_t i = 0; i < qps.size(); ++i) {
    const verbs::Sge sge{at, 2u << 20, stag};
    verbs::SendWr wr;
    wr.wr_id = i;
    wr.op = verbs::WrOp::Write;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, 1};
    wr.rkey = stag;
    wr.remote_address = at + (4u << 20);
    node->post_send(*qps[i], wr, now);
  }
  for (int i = 0; i < 20000 && node->send_done.size() < qps.size(); ++i) {
    poll();
    node->drain_completions();
  }
  EXPECT_EQ(node->send_done.size(), qps.size());
  EXPECT_GT(most, 4000u) << "enough to see the bound";
  EXPECT_LE(most, 5200u);
}

// A frame sent to ourselves outside a poll is work: the thread must not sleep.
// proves: E-30, E-51
TEST_F(Loopback, LoopedFramesAreWorkAtOnce) {
  for (int i = 0; i < 100; ++i) poll();
  verbs::QueuePair* qp = node->make_qp();
  const SocketAddress to{IpAddress::v4(10, 0, 0, 2), 7000};
  ASSERT_TRUE(
      node->engine().iwarp().connect(*qp, to, node->engine().iwarp().default_params(), now).ok());
  ASSERT_NE(node->engine().tables().looped, 0u);
  EXPECT_LE(node->engine().next_deadline(), now);
}

}  // namespace
}  // namespace urnic::test
