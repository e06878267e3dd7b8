// A pump in a thread that sleeps.
#include <chrono>

#include "fault/fault_port.h"
#include "pump_thread.h"

namespace urnic::fault {
namespace {

// proves: E-39
TEST_F(PumpTest, SleepsWhenIdleAndWakesForFrames) {
  open();
  PumpThread t(a, b);
  std::vector<Bytes> got;
  for (std::uint32_t i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_TRUE(send(left, segment(i)));
    ASSERT_TRUE(PumpThread::wait_for(right, i + 1, got));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  t.end();
  EXPECT_TRUE(t.slept_well);
  // Each frame takes a few; nothing else may wake it, however long it takes.
  EXPECT_LT(t.switches, 100);
}

TEST_F(PumpTest, ASleepingPumpDeliversDelayedFrames) {
  open();
  FaultOptions o;
  o.rx = *FaultPlan::parse("delay=20ms");
  o.tx = *FaultPlan::parse("delay=20ms");
  o.clock = {PumpThread::monotonic, nullptr, true};
  auto faulty = wrap_faults(std::move(a), o);
  PumpThread t(faulty.port, b);
  std::vector<Bytes> got, back;
  const std::uint64_t start = PumpThread::monotonic(nullptr);
  ASSERT_TRUE(send(left, segment(0)));
  ASSERT_TRUE(send(right, segment(1)));
  EXPECT_TRUE(PumpThread::wait_for(right, 1, got));
  EXPECT_TRUE(PumpThread::wait_for(left, 1, back));
  EXPECT_GE(PumpThread::monotonic(nullptr) - start, 20000000u);
  t.end();
  EXPECT_LT(t.switches, 200);
}

}  // namespace
}  // namespace urnic::fault
