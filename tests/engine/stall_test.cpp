// A process that loses its processor after a burst, or in the middle of it, finds timers due when
// it continues, although the peer had no chance to respond yet.
#include <gtest/gtest.h>

#include <utility>

#include "device/engine_options.h"
#include "engine/engine.h"
#include "port/memory_port.h"
#include "urnic/config.h"
#include "urnic/verbs.h"

namespace urnic::engine {
namespace {

struct Hooks : engine::Hooks {
  void on_cm_event(CmEvent e) override {
    if (e.kind == CmEvent::Kind::ConnectRequest) request = e.request.id;
    established += e.kind == CmEvent::Kind::Established;
  }
  void on_completion(verbs::CompletionQueue*) override {}
  std::uint32_t request = 0;
  int established = 0;
};

// Two engines of devices; the test decides when each polls. The least timeout is 20 ms.
struct StallTest : ::testing::Test {
  static Options options(const char* address) {
    Config c;
    EXPECT_TRUE(c.set("address", address).ok());
    return device::options_from(c, "mem");
  }
  void SetUp() override {
    ASSERT_TRUE(right.iwarp().listen(7, 1));
    ASSERT_TRUE(left.iwarp()
                    .connect(*here, *SocketAddress::parse("10.77.0.2:7"),
                             left.iwarp().default_params(), now)
                    .ok());
    for (int i = 0; i < 1000; ++i) {
      both();
      if (right_hooks.request == 0) continue;
      ASSERT_TRUE(right.iwarp()
                      .accept(std::exchange(right_hooks.request, 0), *there,
                              right.iwarp().default_params(), now)
                      .ok());
    }
    ASSERT_EQ(left_hooks.established + right_hooks.established, 2);
    for (int i = 0; i < 100; ++i) {  // to measure a round trip
      send(4096);
      for (int k = 0; k < 100; ++k) both();
    }
    ASSERT_EQ(retransmits(), 0u);
  }
  void both() {
    now = now + Duration::us(10);
    left.poll(now);
    right.poll(now);
  }
  // Sends from left to right, now.
  void send(std::uint32_t length) {
    verbs::Sge into{reinterpret_cast<std::uint64_t>(sink), sizeof sink, right_key};
    ASSERT_EQ(there->rq.post({1, {&into, 1}}), verbs::ReceiveQueue::Post::Ok);
    verbs::Sge from{reinterpret_cast<std::uint64_t>(source), length, left_key};
    verbs::SendWr wr;
    wr.sges = {&from, 1};
    ASSERT_EQ(here->sq.post(wr), verbs::Post::Ok);
    left.work_posted(*here, verbs::kPostedSends, now);
    verbs::Cqe out[64];
    cq.poll(out);
  }
  verbs::QueuePair* create(Engine& engine, verbs::PdId pd) {
    ddp::StreamConfig config;
    config.pd = pd;
    return engine.iwarp_control().create_qp(config, &cq, &cq);
  }
  std::uint64_t retransmits() { return left.iwarp().qp_stats(*here).iwarp.tcp.retransmits; }

  Hooks left_hooks, right_hooks;
  std::pair<port::Port, port::Port> wire = port::make_memory_pair();
  Engine left{options("10.77.0.1/24"), &wire.first, 0, &left_hooks};
  Engine right{options("10.77.0.2/24"), &wire.second, 0, &right_hooks};
  verbs::PdId left_pd = left.queue_pairs().new_pd(), right_pd = right.queue_pairs().new_pd();
  std::uint8_t source[1 << 16] = {}, sink[1 << 16] = {};
  std::uint32_t left_key = left.memory().register_memory(left_pd, source, sizeof source, 0);
  std::uint32_t right_key = right.memory().register_memory(
      right_pd, sink, sizeof sink, static_cast<std::uint8_t>(access_local_write));
  verbs::CompletionQueue cq{4096};
  verbs::QueuePair* here = create(left, left_pd);
  verbs::QueuePair* there = create(right, right_pd);
  Instant now = Instant::from_ns(1'000'000'000);
};

TEST_F(StallTest, ATimerDueAtTheFirstPollAfterABurstWaitsTwoRoundTrips) {
  send(32768);
  now = now + Duration::ms(30);  // no processor for longer than the least timeout
  left.poll(now);
  EXPECT_EQ(retransmits(), 0u);
  for (int i = 0; i < 300; ++i) both();
  EXPECT_EQ(retransmits(), 0u) << "the peer answered in time";
}

TEST_F(StallTest, TheTimerWaitsNoLongerThanTwoRoundTrips) {
  send(32768);
  now = now + Duration::ms(30);
  left.poll(now);
  for (int i = 0; i < 120; ++i) {  // 1.2 ms: the peer is silent
    now = now + Duration::us(10);
    left.poll(now);
  }
  EXPECT_EQ(retransmits(), 1u);
}

TEST_F(StallTest, AnEngineThatPolledMeanwhileRetransmitsInTime) {
  send(32768);
  left.poll(now + Duration::us(100));
  now = now + Duration::ms(30);
  left.poll(now);
  EXPECT_EQ(retransmits(), 1u);
}

}  // namespace
}  // namespace urnic::engine
