// The thread on the port polls for an arrival before it sleeps, if that is likely to succeed.
#include "device/lookout.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace urnic::device {
namespace {

Instant at(std::int64_t us) {
  return Instant() + Duration::us(us);
}

// proves: E-51
TEST(Lookout, ShortWaitsPollFirst) {
  Lookout l(Duration::us(50));
  EXPECT_EQ(l.begin(at(1)), Duration::us(50)) << "the first may be";
  l.ended(Duration::us(100));
  EXPECT_EQ(l.begin(at(200)), Duration()) << "it will take as long again";
  l.ended(Duration::us(99));
  EXPECT_EQ(l.begin(at(300)), Duration::us(50));
  EXPECT_EQ(Lookout(Duration()).begin(at(1)), Duration());
}

// proves: E-51
TEST(Lookout, AContendedCoreStopsPollingForAWhile) {
  Lookout l(Duration::us(50));
  EXPECT_TRUE(l.goes_on(at(1000), at(1000) + Lookout::kPutAside - Duration::ns(1)));
  EXPECT_EQ(l.begin(at(1100)), Duration::us(50));
  const Instant now = at(1000) + Lookout::kPutAside;
  EXPECT_FALSE(l.goes_on(at(1000), now));
  EXPECT_EQ(l.begin(now), Duration());
  l.ended(Duration::us(1));
  EXPECT_EQ(l.begin(now + Lookout::kRest - Duration::ns(1)), Duration());
  EXPECT_EQ(l.begin(now + Lookout::kRest), Duration::us(50));
}

// Something that is there at the first check ends the polling, whatever the machine does.
// proves: E-51
TEST(Lookout, PollsOnceBeforeItSleeps) {
  pollfd ready{::open("/dev/null", O_RDONLY | O_CLOEXEC), POLLIN, 0};
  ASSERT_GE(ready.fd, 0);
  Lookout l(Duration::us(50));
  EXPECT_EQ(l.out(&ready, 1, at(1), at(1000)), 1);
  EXPECT_EQ(l.out(&ready, 1, at(1), at(1)), 0) << "the wait is over";
  l.ended(Duration::us(100));
  EXPECT_EQ(l.out(&ready, 1, at(200), at(1000)), 0) << "it is not promising";
  ::close(ready.fd);
}

}  // namespace
}  // namespace urnic::device
