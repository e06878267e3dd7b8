// A program that polls all the time acknowledges a request by its reply (E-7).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/support/wired_ends.h"

namespace urnic {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif

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
  bool sees(End& at, std::uint64_t n) const {
    const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at.memory.data()));
    while (word.load(std::memory_order_acquire) != n) {
      Completion done[1];
      at.cq.poll(done);
      if (over.load(std::memory_order_relaxed)) return false;
    }
    return true;
  }
  std::uint64_t segments() {
    return server.qp.stats().iwarp.tcp.segments_out + client.qp.stats().iwarp.tcp.segments_out;
  }
  std::atomic<bool> over{false};
};

// Both poll all the time, as far as the scheduler lets them, so the best of many turns is looked
// at. An ACK of its own for each Write would make it four segments a round in all of them. proves:
// E-7
TEST_P(Carried, E7_OneFrameEachWayIsAllThereIs) {
  if (kInstrumented) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
  const MemoryRegion at_server = server.add(test::kAllRights);
  const MemoryRegion at_client = client.add(test::kAllRights);
  std::thread echo([&] {
    for (std::uint64_t n = 1; sees(server, n); ++n) write(server, at_client, n);
  });
  constexpr unsigned kRounds = 10;
  std::uint64_t best = ~std::uint64_t{0}, n = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (best > 2 * kRounds && std::chrono::steady_clock::now() < until) {
    const std::uint64_t before = segments();
    for (unsigned i = 0; i < kRounds; ++i) {
      write(client, at_server, ++n);
      sees(client, n);
    }
    best = std::min(best, segments() - before);
  }
  over = true;
  echo.join();
  EXPECT_EQ(best, 2 * kRounds);
}

INSTANTIATE_TEST_SUITE_P(Wires, Carried, ::testing::Values("memif"),
                         [](const auto& wire) { return std::string(wire.param); });

}  // namespace
}  // namespace urnic
