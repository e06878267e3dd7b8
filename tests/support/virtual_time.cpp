#include "tests/support/virtual_time.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

#include "base/rng.h"

namespace urnic::test {
namespace {

constexpr std::int64_t kSecond = 1000000000, kLook = 200;

bool is_on = false;
std::int64_t now = 0;
Rng chance(1);

// Descriptors are the kernel's as ever; only who would sleep has slept at once.
int sleep_on(pollfd* fds, nfds_t n, std::int64_t ns) {
  const timespec at_once{0, 0};
  const auto ready = static_cast<int>(syscall(SYS_ppoll, fds, n, &at_once, nullptr, 0));
  if (ready != 0 || ns == 0) return ready;
  if (ns < 0) std::abort();  // who is alone would sleep for ever
  now += ns;
  return 0;
}

}  // namespace

VirtualTime::VirtualTime(std::uint64_t seed) {
  is_on = true;
  now = 1000 * kSecond;
  chance = Rng(seed);
}
VirtualTime::~VirtualTime() {
  is_on = false;
}
std::int64_t VirtualTime::now_ns() {
  return now;
}
void VirtualTime::pass(std::int64_t ns) {
  now += ns;
}

}  // namespace urnic::test

// Instead of the library's.
extern "C" {

int clock_gettime(clockid_t id, timespec* t) noexcept {
  using namespace urnic::test;
  if (!is_on) return static_cast<int>(syscall(SYS_clock_gettime, id, t));
  now += kLook;
  *t = {static_cast<time_t>(now / kSecond), static_cast<long>(now % kSecond)};
  return 0;
}

ssize_t getrandom(void* to, std::size_t n, unsigned flags) {
  using namespace urnic::test;
  if (!is_on) return syscall(SYS_getrandom, to, n, flags);
  for (std::size_t i = 0; i < n; ++i) {
    static_cast<std::uint8_t*>(to)[i] = static_cast<std::uint8_t>(chance.next());
  }
  return static_cast<ssize_t>(n);
}

int usleep(useconds_t us) {
  using namespace urnic::test;
  if (is_on) {
    now += std::int64_t{us} * 1000;
    return 0;
  }
  const timespec t{static_cast<time_t>(us / 1000000), static_cast<long>(us % 1000000) * 1000};
  return static_cast<int>(syscall(SYS_nanosleep, &t, nullptr));
}

int poll(pollfd* fds, nfds_t n, int ms) {
  using namespace urnic::test;
  if (is_on) return sleep_on(fds, n, std::int64_t{ms} * 1000000);
  const timespec t{ms / 1000, ms % 1000 * 1000000L};
  return static_cast<int>(syscall(SYS_ppoll, fds, n, ms < 0 ? nullptr : &t, nullptr, 0));
}

int ppoll(pollfd* fds, nfds_t n, const timespec* t, const sigset_t* signals) {
  using namespace urnic::test;
  if (is_on) return sleep_on(fds, n, t == nullptr ? -1 : t->tv_sec * kSecond + t->tv_nsec);
  timespec left = t == nullptr ? timespec{} : *t;  // the kernel writes to it
  return static_cast<int>(
      syscall(SYS_ppoll, fds, n, t == nullptr ? nullptr : &left, signals, sizeof(long)));
}

}  // extern "C"
