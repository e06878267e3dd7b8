// The time that a cache line takes from core 0 to core 1: half a round trip of two pinned threads
// that count in turns on one atomic, in nanoseconds; the median of short slices, because other
// programs may have a core meanwhile. On a virtual machine it changes when the host moves the
// virtual processors, and with it the cost of all that two processes share.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "bench/e2e/pin.h"

namespace {

constexpr std::uint32_t kSlices = 50, kSlice = 1000;     // rounds of a slice
constexpr std::uint32_t kRounds = kSlices * kSlice + 1;  // the first waits for the peer
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
  std::vector<double> took;
  std::uint32_t i = 2;
  while (took.size() < kSlices) {
    const double from = urnic::bench::seconds();
    for (const std::uint32_t end = i + 2 * kSlice; i < end; i += 2) {
      shared.store(i + 1, std::memory_order_release);
      wait_for(i + 2);
    }
    took.push_back(urnic::bench::seconds() - from);
  }
  peer.join();
  std::nth_element(took.begin(), took.begin() + kSlices / 2, took.end());
  std::printf("%.0f\n", took[kSlices / 2] * 1e9 / (2 * kSlice));
  return 0;
}
