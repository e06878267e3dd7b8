// Faults of guarded accesses end the access; all others go to the program's handlers, which stay as
// they were.
#include "device/fault_handler.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

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
