// Faults of guarded accesses end the access; all others go to the program's handlers, which stay as
// they were.
#include "device/fault_handler.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>

#include "base/guarded.h"

namespace urnic::device {
namespace {

constexpr std::size_t kPage = 4096;

// A mapped page, followed by an unmapped one.
class HalfMapped {
 public:
  HalfMapped()
      : at_(static_cast<std::uint8_t*>(
            mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(at_ + kPage, kPage, PROT_NONE);
  }
  ~HalfMapped() { munmap(at_, 2 * kPage); }
  HalfMapped(const HalfMapped&) = delete;
  HalfMapped& operator=(const HalfMapped&) = delete;
  std::uint8_t* begin() const { return at_; }
  std::uint8_t* gone() const { return at_ + kPage; }

 private:
  std::uint8_t* at_;
};

bool writes(std::uint8_t* at, std::size_t n) {
  return guarded(at, n, [=] { std::memset(at, 7, n); });
}

// The program's handler: it counts, and makes the page accessible.
std::atomic<int> handled{0};
void mend(int, siginfo_t* info, void*) {
  ++handled;
  auto* const page = reinterpret_cast<void*>(  // NOLINT(performance-no-int-to-ptr)
      reinterpret_cast<std::uintptr_t>(info->si_addr) & ~(kPage - 1));
  mprotect(page, kPage, PROT_READ | PROT_WRITE);
}
// A handler that was installed later, and passes on other signals.
struct sigaction earlier;
std::atomic<int> passed_on{0};
void pass_on(int number, siginfo_t* info, void* context) {
  ++passed_on;
  earlier.sa_sigaction(number, info, context);
}

class FaultHandlerTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const int number : {SIGSEGV, SIGBUS}) sigaction(number, nullptr, &before_[number]);
    handled = passed_on = 0;
  }
  void TearDown() override {
    for (const int number : {SIGSEGV, SIGBUS}) sigaction(number, &before_[number], nullptr);
  }
  static struct sigaction install(void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action {
    }, old{};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &old);
    return old;
  }
  static bool is_installed(void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction now {};
    sigaction(SIGSEGV, nullptr, &now);
    return (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handler;
  }

 private:
  struct sigaction before_[65] = {};
};

TEST_F(FaultHandlerTest, AGuardedAccessEndsWhereItFaults) {
  const FaultHandler ours;
  const HalfMapped memory;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(writes(memory.begin(), kPage));
    EXPECT_FALSE(writes(memory.gone() - 64, 128));
  }
  EXPECT_EQ(memory.begin()[kPage - 1], 7);
}

TEST_F(FaultHandlerTest, AFileThatWasCutIsAFaultAsWell) {
  const FaultHandler ours;
  const int fd = memfd_create("cut", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, kPage), 0);
  void* const p = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(p, MAP_FAILED);
  auto* const at = static_cast<std::uint8_t*>(p);
  EXPECT_TRUE(writes(at, kPage));
  ASSERT_EQ(ftruncate(fd, 0), 0);
  EXPECT_FALSE(writes(at, kPage));
  munmap(p, kPage);
  close(fd);
}

TEST_F(FaultHandlerTest, AThreadThatBlocksAllSignalsIsServedToo) {
  const FaultHandler ours;
  const HalfMapped memory;
  std::thread([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    EXPECT_FALSE(writes(memory.gone(), 1));
  }).join();
}

TEST_F(FaultHandlerTest, OtherFaultsGoToTheProgramsHandler) {
  install(mend);
  const FaultHandler ours;
  const HalfMapped memory, other;
  *memory.gone() = 1;  // not a guarded access
  EXPECT_EQ(handled, 1);
  EXPECT_TRUE(guarded(memory.begin(), kPage, [&] { *other.gone() = 1; })) << "not of its range";
  EXPECT_EQ(handled, 2);
  EXPECT_FALSE(writes(HalfMapped().gone(), 1));
  EXPECT_EQ(handled, 2);
}

TEST_F(FaultHandlerTest, FaultsAfterAGuardedAccessGoToTheProgramsHandler) {
  install(mend);
  const FaultHandler ours;
  const HalfMapped memory;
  EXPECT_FALSE(writes(memory.gone(), 1));
  *memory.gone() = 1;
  EXPECT_EQ(handled, 1);
  EXPECT_TRUE(writes(memory.gone(), 1));
  mprotect(memory.gone(), kPage, PROT_NONE);
  *memory.gone() = 1;
  EXPECT_EQ(handled, 2);
}

// Overwrites registers that a function must restore for its caller, and faults before it does.
void overwrite_registers(std::uint8_t* at) {
#if defined(__x86_64__)
  asm volatile(
      "xorl %%ebx, %%ebx\n\t xorl %%r12d, %%r12d\n\t xorl %%r13d, %%r13d\n\t"
      "xorl %%r14d, %%r14d\n\t xorl %%r15d, %%r15d\n\t movb $1, (%0)"
      :
      : "r"(at)
      : "rbx", "r12", "r13", "r14", "r15", "cc", "memory");
#elif defined(__aarch64__)
  asm volatile(
      "mov x19, xzr\n\t mov x20, xzr\n\t mov x21, xzr\n\t mov x22, xzr\n\t mov x23, xzr\n\t"
      "mov x24, xzr\n\t mov x25, xzr\n\t mov x26, xzr\n\t mov x27, xzr\n\t mov x28, xzr\n\t"
      "fmov d8, xzr\n\t fmov d9, xzr\n\t fmov d10, xzr\n\t fmov d11, xzr\n\t"
      "fmov d12, xzr\n\t fmov d13, xzr\n\t fmov d14, xzr\n\t fmov d15, xzr\n\t"
      "strb wzr, [%0]"
      :
      : "r"(at)
      : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "d8", "d9", "d10",
        "d11", "d12", "d13", "d14", "d15", "memory");
#else
  *at = 1;
#endif
}

TEST_F(FaultHandlerTest, ACallerKeepsItsRegistersWhenItsAccessFaults) {
  const FaultHandler ours;
  const HalfMapped memory;
  volatile int n[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  volatile double x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  // So many that the compiler keeps them in all of these registers.
  const int a = n[0], b = n[1], c = n[2], d = n[3], e = n[4], f = n[5], g = n[6], h = n[7],
            i = n[8], j = n[9];
  const double k = x[0], l = x[1], m = x[2], o = x[3], p = x[4], q = x[5], r = x[6], s = x[7];
  EXPECT_FALSE(guarded(memory.gone(), 1, [&] { overwrite_registers(memory.gone()); }));
  EXPECT_EQ((std::array{a, b, c, d, e, f, g, h, i, j}),
            (std::array{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ((std::array{k, l, m, o, p, q, r, s}), (std::array<double, 8>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(FaultHandlerTest, IsInstalledInFrontOfALaterHandler) {
  install(mend);
  const FaultHandler ours;
  earlier = install(pass_on);
  FaultHandler::look_again();
  FaultHandler::look_again();
  const HalfMapped memory, other;
  EXPECT_FALSE(writes(memory.gone(), 1));
  EXPECT_EQ(passed_on, 0);
  for (int i = 1; i <= 3; ++i) {  // to the later one, which calls ours, which calls the first
    mprotect(other.gone(), kPage, PROT_NONE);
    *other.gone() = 1;
    EXPECT_EQ(passed_on, i);
    EXPECT_EQ(handled, i);
  }
}

TEST_F(FaultHandlerTest, AlternatingHandlersAreNotStoredTwice) {
  const FaultHandler ours;
  const HalfMapped memory;
  for (int i = 0; i < 20; ++i) {
    install(i % 2 == 0 ? mend : pass_on);
    FaultHandler::look_again();
    EXPECT_FALSE(writes(memory.gone(), 1));
  }
  EXPECT_EQ(handled + passed_on, 0);
}

TEST_F(FaultHandlerTest, IsRemovedWithTheLastUser) {
  install(mend);
  {
    const FaultHandler one;
    { const FaultHandler two; }
    EXPECT_FALSE(is_installed(mend));
  }
  EXPECT_TRUE(is_installed(mend));
  {
    const FaultHandler again;
    install(pass_on);
  }
  EXPECT_TRUE(is_installed(pass_on)) << "the program's, which came later, stays";
}

TEST_F(FaultHandlerTest, AProgramWithoutAHandlerDiesOfItsFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto die = [] {
    signal(SIGSEGV, SIG_DFL);
    const FaultHandler ours;
    const HalfMapped memory;
    *static_cast<volatile std::uint8_t*>(memory.gone()) = 1;
  };
  EXPECT_EXIT(die(), testing::KilledBySignal(SIGSEGV), "");
  const auto sent = [] {
    signal(SIGSEGV, SIG_DFL);
    const FaultHandler ours;
    kill(getpid(), SIGSEGV);
    pause();
  };
  EXPECT_EXIT(sent(), testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace urnic::device
