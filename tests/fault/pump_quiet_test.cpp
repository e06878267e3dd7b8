// The CPU time of a pump that is blocked.
#include <time.h>

#include <chrono>

#include "pump_thread.h"

namespace urnic::fault {
namespace {

TEST_F(PumpTest, ABlockedDirectionDoesNotSpin) {
  open({.ring = 64}, {.ring = 4});
  PumpThread t(a, b);
  for (std::uint32_t i = 0; i < 40; ++i) ASSERT_TRUE(send(left, segment(i)));
  timespec before{}, after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  const double used = static_cast<double>(after.tv_sec - before.tv_sec) +
                      static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
  EXPECT_LT(used, 0.1);
  std::vector<Bytes> got;
  EXPECT_TRUE(PumpThread::wait_for(right, 40, got));
}

}  // namespace
}  // namespace urnic::fault
