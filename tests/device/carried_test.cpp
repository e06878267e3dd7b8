// A program that polls all the time acknowledges a request by its reply (E-7).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

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

// One thread is the program of both ends, and only its polls drive them: it needs only one core,
// and no other thread has to run at the same moment.
class Carried : public test::WiredEnds {
 protected:
  Carried() : WiredEnds(true, "poll") {}
  // An eight-byte Write of `n` to the other end's memory.
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
  void poll() {
    Completion done[1];
    server.cq.poll(done);
    client.cq.poll(done);
  }
  // Polls until the other end's Write of `n` has arrived.
  bool sees(const End& at, std::uint64_t n) {
    std::uint64_t word = 0;
    const auto read = [&] { std::memcpy(&word, at.memory.data(), sizeof word); };
    for (const auto end = Clock::now() + test::kSoon; read(), word != n; poll()) {
      if (Clock::now() > end) return false;
    }
    return true;
  }
  // Two windows of PollingHabit: at least one is complete, and after it both ends are known to poll
  // all the time, unless this thread was preempted.
  void poll_all_the_time() {
    const auto end =
        Clock::now() + 2 * std::chrono::nanoseconds(device::PollingHabit::kWindow.count_ns());
    while (Clock::now() < end) poll();
  }
  std::uint64_t segments() {
    return server.qp.stats().iwarp.tcp.segments_out + client.qp.stats().iwarp.tcp.segments_out;
  }
};

// A separate ACK for each Write would make it four segments a round in every pass. A pass in which
// the thread is preempted has some of them: then try again.
// proves: E-7
TEST_P(Carried, ARoundTripTakesOneFrameEachWay) {
  if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  const MemoryRegion at_server = server.add(test::kAllRights);
  const MemoryRegion at_client = client.add(test::kAllRights);
  constexpr unsigned kRounds = 10;
  std::uint64_t best = ~std::uint64_t{0}, n = 0;
  const auto end = Clock::now() + test::kSoon;
  while (best > 2 * kRounds && Clock::now() < end) {
    const std::uint64_t before = segments();
    poll_all_the_time();
    for (unsigned i = 0; i < kRounds; ++i) {
      write(client, at_server, ++n);
      ASSERT_TRUE(sees(server, n));
      write(server, at_client, n);
      ASSERT_TRUE(sees(client, n));
    }
    best = std::min(best, segments() - before);
  }
  EXPECT_EQ(best, 2 * kRounds);
}

INSTANTIATE_TEST_SUITE_P(Wires, Carried, ::testing::Values("memif"),
                         [](const auto& wire) { return std::string(wire.param); });

}  // namespace
}  // namespace urnic
