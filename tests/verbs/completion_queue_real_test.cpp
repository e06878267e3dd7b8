// A completion queue that several threads poll.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "verbs/completion_queue.h"

namespace urnic::verbs {
namespace {

// proves: E-28
TEST(CompletionQueue, ConcurrentPollersSeeEveryCqeOnce) {
  CompletionQueue cq(1024);
  constexpr std::uint64_t kTotal = 200000;
  std::vector<std::uint8_t> seen(kTotal, 0);
  std::atomic<std::uint64_t> polled{0};
  const auto poller = [&] {
    Cqe out[16];
    while (polled.load() < kTotal) {
      const int n = cq.poll(out);
      for (int i = 0; i < n; ++i) ++seen[out[i].completion.wr_id];
      if (n > 0) polled += static_cast<std::uint64_t>(n);
      if (n == 0) std::this_thread::yield();
    }
  };
  std::thread a(poller), b(poller);
  for (std::uint64_t i = 0; i < kTotal; ++i) {
    while (i - polled.load() >= 1000) std::this_thread::yield();
    Cqe c;
    c.completion.wr_id = i;
    cq.push(c);
  }
  a.join();
  b.join();
  EXPECT_FALSE(cq.overrun());
  for (std::uint64_t i = 0; i < kTotal; ++i) ASSERT_EQ(seen[i], 1) << i;
}

}  // namespace
}  // namespace urnic::verbs
