// FAST and SLOW of RoCE through the public API (S-1): the device's default, a queue pair's own
// choice, and the values that a program and `urnic stat` see.
#include "tests/device/roce_ends.h"

namespace urnic::test {
namespace {

class RoceTypes : public RoceDevices {
 protected:
  // Connects both ends with those options by hand; the first one Writes over a lossy wire.
  void write(const RoceQpOptions& options, const Settings& more = {}) {
    Settings settings = {{"faults", "loss=0.05,seed=5"}};
    settings.insert(more.begin(), more.end());
    open(settings);
    for (int i = 0; i < 2; ++i) {
      QpOptions o = ends[i].options(Transport::roce);
      o.roce = options;
      qps[i] = ends[i].make(o);
    }
    Agreed().connect(qps[0], qps[1]);
    constexpr std::uint64_t kMany = 100;
    for (std::uint64_t i = 0; i < kMany; ++i) {
      const Sge sge = ends[0].sge(i * 2048, 2048);
      ASSERT_TRUE(qps[0].post_send(request(Opcode::write, i, sge, i * 2048)).ok());
    }
    for (const Completion& c : ends[0].wait(kMany)) EXPECT_EQ(c.status, WcStatus::success);
    ends[1].in_order();
    EXPECT_EQ(std::memcmp(ends[1].memory.data(), ends[0].memory.data(), kMany * 2048), 0);
  }
  RoceStats seen() const { return qps[1].stats().roce; }
};

// proves: S-1
TEST_P(RoceTypes, AQueuePairIsFastUnlessItOrItsDeviceIsSetToSlow) {
  write({});
  EXPECT_TRUE(seen().fast) << seen().slow_reason;
  EXPECT_GT(seen().requests_held, 0u);
  const EngineStats all = ends[1].device.stats();
  ASSERT_EQ(all.connections.size(), 1u);
  EXPECT_TRUE(all.connections[0].roce.fast);
  EXPECT_EQ(all.connections[0].roce.requests_held, seen().requests_held);
}

// proves: S-1
TEST_P(RoceTypes, ASlowQueuePairDropsRequestsAfterALoss) {
  RoceQpOptions slow;
  slow.type = ConnectionType::slow;
  write(slow);
  EXPECT_EQ(seen().slow_reason, "initiated-slow");
  EXPECT_EQ(seen().requests_held, 0u);
  EXPECT_GT(seen().requests_out_of_sequence, 0u);
}

// proves: S-1
TEST_P(RoceTypes, AQueuePairMayBeFastOnASlowDevice) {
  RoceQpOptions fast;
  fast.type = ConnectionType::fast;
  write(fast, {{"connection_type", "slow"}});
  EXPECT_TRUE(seen().fast) << seen().slow_reason;
  EXPECT_GT(seen().requests_held, 0u);
}

// proves: S-1
TEST_P(RoceTypes, SettingDropMakesItSlowWithThatReason) {
  write({}, {{"out_of_order", "drop"}});
  EXPECT_EQ(seen().slow_reason, "drop");
  EXPECT_EQ(seen().requests_held, 0u);
}

// proves: S-1
TEST_P(RoceTypes, ItsOwnMaxRecoveryAttemptsApplies) {
  RoceQpOptions none;
  none.max_recovery_attempts = 0;
  write(none, {{"upgrade_after", "65536"}});
  EXPECT_EQ(seen().slow_reason, "recovery-exhausted");
  EXPECT_EQ(seen().roce_downgrades, 1u);
  EXPECT_EQ(seen().requests_held, 0u);
}

// The peer gets no response while the program delays the receive, and no request to retransmit.
// Posting the receive wakes the engine.
// proves: S-9
TEST_P(RoceTypes, ASendWaitsForTheReceiveThatItsProgramPosts) {
  Agreed agreed;
  agreed.ack_timeout = 0;  // no end gives up
  up(agreed, {{"rnr_park_ms", "60000"}, {"probe", "off"}});
  const Sge from = ends[0].sge(0, 100), into = ends[1].sge(4096, 100);
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(qps[0].post_send(request(Opcode::send, i, from, 0)).ok());
    ASSERT_TRUE(soon([&] { return seen().requests_parked != i; }));
    ASSERT_EQ(seen().requests_parked, i + 1);
    ASSERT_TRUE(qps[1].post_receive({i, {&into, 1}}).ok());
    ASSERT_EQ(ends[1].one().status, WcStatus::success);
    EXPECT_EQ(ends[0].one().status, WcStatus::success);
  }
  EXPECT_EQ(seen().rnr_naks_sent, 0u);
  EXPECT_EQ(std::memcmp(&ends[1].memory[4096], ends[0].memory.data(), 100), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, RoceTypes, ::testing::Values("memif", "mem"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace urnic::test
