#include "tests/support/virtual_time.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/rng.h"

namespace urnic::test {
namespace {

constexpr std::int64_t kSecond = 1000000000, kLook = 200, kNap = 1000000;
constexpr std::int64_t kForEver = 3600 * kSecond;

bool is_on = false;
std::int64_t now = 0;
Rng chance(1);
std::function<void()> others;

// The function of the C library, which is a cancellation point, unlike a direct system call.
template <class F>
F* real(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

int poll_at_once(pollfd* fds, nfds_t n) {
  const timespec at_once{0, 0};
  return static_cast<int>(syscall(SYS_ppoll, fds, n, &at_once, nullptr, 0));
}

// Descriptors are the kernel's as usual; only sleeping returns at once.
int sleep_on(pollfd* fds, nfds_t n, std::int64_t ns) {
  int ready = poll_at_once(fds, n);
  if (ready != 0 || ns == 0) return ready;
  const std::int64_t until = now + (ns < 0 ? kForEver : ns);
  while (others && ready == 0 && now < until) {
    others();
    ready = poll_at_once(fds, n);
    if (ready == 0) now += std::min(kNap, std::max<std::int64_t>(until - now, 0));
  }
  if (ready != 0) return ready;
  if (ns < 0) std::abort();  // a single thread would sleep forever
  now = std::max(now, until);
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
  others = nullptr;
}
void VirtualTime::meanwhile(std::function<void()> f) {
  others = std::move(f);
}
std::int64_t VirtualTime::now_ns() {
  return now;
}
void VirtualTime::pass(std::int64_t ns) {
  now += ns;
}

}  // namespace urnic::test

// Replaces the functions of the C library, also for the C++ library, whose calls find the program's
// symbols.
#pragma GCC visibility push(default)
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
  static const auto sleep = real<decltype(usleep)>("usleep");
  return sleep(us);
}

int poll(pollfd* fds, nfds_t n, int ms) {
  using namespace urnic::test;
  if (is_on) return sleep_on(fds, n, std::int64_t{ms} * 1000000);
  static const auto wait = real<decltype(poll)>("poll");
  return wait(fds, n, ms);
}

int ppoll(pollfd* fds, nfds_t n, const timespec* t, const sigset_t* signals) {
  using namespace urnic::test;
  if (is_on) return sleep_on(fds, n, t == nullptr ? -1 : t->tv_sec * kSecond + t->tv_nsec);
  static const auto wait = real<decltype(ppoll)>("ppoll");
  return wait(fds, n, t, signals);
}

// For std::condition_variable. No thread can wake the only one, but the awaited event may happen
// meanwhile.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  using namespace urnic::test;
  static const auto wait = real<decltype(pthread_cond_clockwait)>("pthread_cond_clockwait");
  if (!is_on) return wait(condition, mutex, clock, until);
  pthread_mutex_unlock(mutex);
  sleep_on(nullptr, 0, std::max<std::int64_t>(until->tv_sec * kSecond + until->tv_nsec - now, 0));
  pthread_mutex_lock(mutex);
  return ETIMEDOUT;
}

}  // extern "C"
#pragma GCC visibility pop
