// Completions of Sends, polled by several threads.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "ddp_rdma/send_completions.h"

namespace urnic::ddp::test {
namespace {

// 9.4: a poll is atomic with respect to other pollers, and the engine continues meanwhile.
TEST(SendCompletion, ConcurrentPollersShareAPartialCqe) {
  constexpr std::uint64_t kRounds = 2000;
  SendCompletions f(CompletionMethod::Shared, 0, 64);
  std::vector<std::uint8_t> seen(65 + kRounds * 64, 0);
  std::atomic<std::uint64_t> polled{0};
  std::atomic<bool> stop{false};
  const auto poller = [&] {
    verbs::Cqe out[5];
    while (!stop.load()) {
      const int n = f.cq->poll(out);
      for (int i = 0; i < n; ++i) ++seen[out[i].completion.wr_id];
      if (n > 0) polled += static_cast<std::uint64_t>(n);
      if (n == 0) std::this_thread::yield();
    }
  };
  std::thread a(poller), b(poller);
  std::uint64_t id = 64, total = 0;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const std::uint32_t first = f.stream->next_send_msn();
    for (std::uint32_t k = 1; k < 32; ++k) f.behind(first + k);
    f.in_order(first);
    f.close();
    total += 32;
    for (int posted = 0; posted < 32;) {
      if (f.post(id + 1)) {
        ++id;
        ++posted;
      } else {
        std::this_thread::yield();
      }
    }
  }
  while (polled.load() < total) std::this_thread::yield();
  stop = true;
  a.join();
  b.join();
  for (std::uint64_t i = 1; i <= total; ++i) ASSERT_EQ(seen[i], 1) << i;
}

}  // namespace
}  // namespace urnic::ddp::test
