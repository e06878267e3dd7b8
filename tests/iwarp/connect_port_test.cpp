// The local port of an active connection.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "base/flow_hash.h"
#include "device/engine_options.h"
#include "engine/engine.h"
#include "port/memory_port.h"
#include "sim/pair.h"
#include "urnic/config.h"

namespace urnic::iwarp {
namespace {

struct NoHooks : Hooks {
  void on_cm_event(CmEvent) override {}
  void on_completion(verbs::CompletionQueue*) override {}
};

// A wire without receive-side scaling: the sender chooses the receiver's queue by flow_hash, which
// is the same from both ends.
// proves: E-29
TEST(ConnectPort, TheChosenPortSelectsTheQueueOfItsEngine) {
  constexpr std::uint32_t kQueues = 4;
  port::MemoryPairOptions ports;
  ports.queues = kQueues;
  auto [port, peer] = port::make_memory_pair(ports);
  const auto to = SocketAddress::parse("10.0.0.2:4791");
  ASSERT_TRUE(to);
  for (std::uint32_t queue = 0; queue < kQueues; ++queue) {
    NoHooks hooks;
    verbs::CompletionQueue cq(256);
    engine::Options options = device::options_from(Config(), "mem");
    options.addresses = {"10.0.0.1/24"};
    options.seed = queue + 1;
    engine::Engine engine(options, &port, queue, &hooks);
    std::set<std::uint16_t> chosen;
    for (int i = 0; i < 16; ++i) {
      verbs::QueuePair* qp = engine.iwarp_control().create_qp({}, &cq, &cq);
      ASSERT_TRUE(
          engine.iwarp().connect(*qp, *to, engine.iwarp().default_params(), Instant{}).ok());
      const FlowKey& key = engine.iwarp().find(qp->connection)->key;
      EXPECT_EQ(
          flow_queue(flow_hash(key.local, key.local_port, key.remote, key.remote_port), kQueues),
          queue);
      EXPECT_EQ(
          flow_queue(flow_hash(key.remote, key.remote_port, key.local, key.local_port), kQueues),
          queue)
          << "as the peer sees it";
      chosen.insert(key.local_port);
    }
    EXPECT_EQ(chosen.size(), 16u) << "one port each";
  }
}

// Engines with the same seed choose the same ports. On the second engine the program has already
// taken the first port.
TEST(ConnectPort, ABoundPortIsNotChosen) {
  sim::PairOptions options;
  std::uint16_t first = 0;
  for (const bool taken : {false, true}) {
    sim::Pair pair(options);
    Side& side = pair.left().engine().iwarp();
    if (taken) {
      ASSERT_TRUE(side.bind({.at = {IpAddress::any_v6(), first}}));
    }
    const auto chosen = side.bind({.at = {IpAddress::any_v6(), 0}});
    ASSERT_TRUE(chosen);
    if (taken) {
      EXPECT_NE(chosen.value()->port(), first);
    } else {
      first = chosen.value()->port();
    }
  }
}

// Late segments of a connection in TIME-WAIT would be taken as the new connection's (RFC 6056,
// 3.1).
// proves: E-29
TEST(ConnectPort, APortInTimeWaitIsNotChosen) {
  constexpr std::size_t kMany = 600;  // of 28232 ports
  sim::Pair pair({});
  engine::Engine& engine = pair.left().engine();
  std::set<std::uint16_t> chosen;
  for (std::size_t i = 1; i <= kMany; ++i) {
    verbs::QueuePair* here = pair.left().make_qp(1, 1);
    verbs::QueuePair* there = pair.right().make_qp(1, 1);
    ASSERT_TRUE(pair.connect(*here, *there));
    chosen.insert(engine.iwarp().find(here->connection)->key.local_port);
    engine.iwarp().disconnect(*here, pair.now());
    ASSERT_TRUE(pair.run_until([&] { return there->connection == 0 && here->connection == 0; },
                               Duration::s(1)));
    engine.iwarp_control().destroy(here, pair.now());
    pair.right().engine().iwarp_control().destroy(there, pair.now());
    ASSERT_EQ(engine.tables().time_wait, chosen.size());
  }
  EXPECT_EQ(chosen.size(), kMany);
}

}  // namespace
}  // namespace urnic::iwarp
