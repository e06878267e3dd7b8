// The alarm that tells our thread that the application has been silent too long, and that the
// application postpones.
// proves: E-51
#include "device/absence.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/timerfd.h>

namespace urnic::device {
namespace {

// Time left until the alarm; zero when it has fired.
std::int64_t left_us(const Absence& absence) {
  itimerspec left{};
  EXPECT_EQ(timerfd_gettime(absence.fd(), &left), 0);
  return left.it_value.tv_sec * 1'000'000 + left.it_value.tv_nsec / 1000;
}
Instant at(std::int64_t us) {
  return Instant() + Duration::us(us);
}

// proves: E-51
TEST(Absence, FiresWhenTheApplicationIsSilent) {
  Absence absence;
  ASSERT_GE(absence.fd(), 0);
  absence.begin(at(1'000'000));
  pollfd p{absence.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 5000), 1);
}

// An active application postpones it, but not at each of its polls, because that is a system call.
// proves: E-51
TEST(Absence, IsPostponedOnlyNowAndThen) {
  Absence absence;
  // A postponed alarm would fire later: on a busy machine it may have fired before this test checks
  // it, but not each time.
  for (int i = 0; i < 20; ++i) {
    absence.begin(at(1'000'000));
    while (left_us(absence) != 0) {
    }
    absence.seen(at(1'000'000) + Absence::kNoticed - Absence::kPutOff - Duration::us(1));
    EXPECT_EQ(left_us(absence), 0) << "far enough ahead";
  }
  absence.seen(at(1'000'000) + Absence::kNoticed - Absence::kPutOff);
  const pollfd before{absence.fd(), POLLIN, 0};
  pollfd p = before;
  EXPECT_EQ(poll(&p, 1, 0), 0) << "what had gone off is taken back";
  p = before;
  EXPECT_EQ(poll(&p, 1, 5000), 1);
}

}  // namespace
}  // namespace urnic::device
