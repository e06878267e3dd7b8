// A program that polls all the time acknowledges a request by its reply (E-7).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "device/polling_habit.h"
#include "tests/support/wired_ends.h"

namespace urnic {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif

using Clock = std::chrono::steady_clock;

// Whether a thread's polls followed each other, as a machine allows that has a core for it.
class Pauses {
 public:
  void polled() {
    const auto now = Clock::now();
    if (now - last_ > std::chrono::nanoseconds(engine::PollingHabit::kPause.count_ns()) * 9 / 10) {
      paused_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    }
    last_ = now;
  }
  bool none_since(Clock::time_point t) const {
    return paused_.load(std::memory_order_relaxed) < t.time_since_epoch().count();
  }

 private:
  Clock::time_point last_{};
  std::atomic<Clock::rep> paused_{0};
};

class Carried : public test::WiredEnds {
 protected:
  // An eight-octet Write of `n` to the other end's memory.
  static void write(End& from, const MemoryRegion& to, std::uint64_t n) {
    SendRequest r;
    const Sge sge{reinterpret_cast<std::uintptr_t>(&n), sizeof n, 0};
    r.opcode = Opcode::write;
    r.flags = send_inline | (n % 64 == 0 ? send_signaled : SendFlags(0));
    r.sges = {&sge, 1};
    r.remote_address = to.remote_address();
    r.rkey = to.rkey();
    EXPECT_TRUE(from.qp.post_send(r).ok());
  }
  // Polls until the other end's Write of `n` is there.
  bool sees(End& at, std::uint64_t n, Pauses& pauses) const {
    const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at.memory.data()));
    while (word.load(std::memory_order_acquire) != n) {
      Completion done[1];
      at.cq.poll(done);
      pauses.polled();
      if (over.load(std::memory_order_relaxed)) return false;
    }
    return true;
  }
  std::uint64_t segments() {
    return server.qp.stats().iwarp.tcp.segments_out + client.qp.stats().iwarp.tcp.segments_out;
  }
  std::atomic<bool> over{false};
};

// Looked at are turns before which both had polled for as long as makes a habit of it, without a
// pause: a busy machine has few of them. An ACK of its own for each Write would make it four
// segments a round in all of them.
// proves: E-7, if undisturbed
TEST_P(Carried, OneFrameEachWayIsAllThereIs) {
  if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  const MemoryRegion at_server = server.add(test::kAllRights);
  const MemoryRegion at_client = client.add(test::kAllRights);
  Pauses there, here;
  std::thread echo([&] {
    for (std::uint64_t n = 1; sees(server, n, there); ++n) write(server, at_client, n);
  });
  constexpr unsigned kRounds = 10, kTurns = 4000;
  constexpr auto kHabit =
      std::chrono::nanoseconds(engine::PollingHabit::kWindow.count_ns()) * 3 / 2;
  std::uint64_t best = ~std::uint64_t{0}, n = 0;
  unsigned turns = 0;
  const auto until = Clock::now() + std::chrono::seconds(40);
  while (best > 2 * kRounds && turns < kTurns && Clock::now() < until) {
    const auto steady_from = Clock::now() - kHabit;
    const std::uint64_t before = segments();
    for (unsigned i = 0; i < kRounds; ++i) {
      write(client, at_server, ++n);
      sees(client, n, here);
    }
    const std::uint64_t sent = segments() - before;
    if (!here.none_since(steady_from) || !there.none_since(steady_from)) continue;
    ++turns;
    best = std::min(best, sent);
  }
  over = true;
  echo.join();
  if (best > 2 * kRounds && turns < kTurns) {
    GTEST_SKIP() << "in 40 s the machine let both ends poll for 1.5 ms without a pause " << turns
                 << " times";
  }
  EXPECT_EQ(best, 2 * kRounds) << "of " << turns << " turns";
}

INSTANTIATE_TEST_SUITE_P(Wires, Carried, ::testing::Values("memif"),
                         [](const auto& wire) { return std::string(wire.param); });

}  // namespace
}  // namespace urnic
