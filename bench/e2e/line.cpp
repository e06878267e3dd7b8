// The time that a cache line takes from core 0 to core 1: half a round trip of two pinned threads
// that count in turns on one atomic, in nanoseconds. On a virtual machine it changes when the host
// moves the virtual processors, and with it the cost of all that two processes share.
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "bench/e2e/pin.h"

namespace {

constexpr std::uint32_t kRounds = 50000;
alignas(128) std::atomic<std::uint32_t> shared{0};

void wait_for(std::uint32_t value) {
  while (shared.load(std::memory_order_acquire) != value) {
  }
}

}  // namespace

int main() {
  std::thread peer([] {
    urnic::bench::pin_to(1);
    for (std::uint32_t i = 1; i < 2 * kRounds; i += 2) {
      wait_for(i);
      shared.store(i + 1, std::memory_order_release);
    }
  });
  urnic::bench::pin_to(0);
  shared.store(1, std::memory_order_release);
  wait_for(2);  // the peer runs
  const double from = urnic::bench::seconds();
  for (std::uint32_t i = 2; i < 2 * kRounds; i += 2) {
    shared.store(i + 1, std::memory_order_release);
    wait_for(i + 2);
  }
  const double took = urnic::bench::seconds() - from;
  peer.join();
  std::printf("%.0f\n", took * 1e9 / (2 * (kRounds - 1)));
  return 0;
}
