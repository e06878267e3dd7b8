// P2: the FAST receive path against an ideal loop over the same frames without any protocol.
// P3: FAST against SLOW, as a ratio to what their ideal loops can reach, and copies by counter.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/receive/replay.h"

using namespace urnic;
using namespace urnic::bench;

namespace {

struct Rates {
  double engine = 0, ideal = 0;  // GB/s of payload placed, medians
  ConnectionStats stats;
};

Rates measure(std::uint32_t mtu, std::uint64_t working_set, bool fast, int reps) {
  Receiver receiver(mtu, working_set, fast);
  // A repetition covers the working set at least once and takes some tens of milliseconds.
  const std::uint64_t octets = std::max<std::uint64_t>(working_set, 64u << 20);
  std::vector<double> engine, ideal;
  for (int i = -1; i < reps; ++i) {  // the first round warms up
    std::uint64_t placed = 0;
    double t = receiver.run_engine(octets, &placed);
    if (placed < octets) {
      std::fprintf(stderr, "bench: only %llu of %llu octets were placed\n",
                   static_cast<unsigned long long>(placed),
                   static_cast<unsigned long long>(octets));
      std::exit(1);
    }
    if (i >= 0) engine.push_back(static_cast<double>(placed) / t * 1e-9);
    t = receiver.run_ideal(octets, &placed);
    if (i >= 0) ideal.push_back(static_cast<double>(placed) / t * 1e-9);
  }
  return {median(engine), median(ideal), receiver.stats()};
}

void verdict(const char* id, double ratio, double target) {
  std::printf("%s %.3f %.2f %s\n", id, ratio, target, ratio >= target ? "met" : "missed");
}

int usage() {
  std::fprintf(stderr, "usage: bench_p2 [--p3] [--reps N]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  bool p3 = false;
  int reps = 7;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--p3") == 0) {
      p3 = true;
    } else if (std::strcmp(argv[i], "--reps") == 0 && i + 1 < argc) {
      reps = std::atoi(argv[++i]);
      if (reps < 1) return usage();
    } else {
      return usage();
    }
  }
  constexpr std::uint64_t kSmall = 128u << 10, kLarge = 256u << 20;
  if (!p3) {
    std::printf("%-6s %-10s %12s %12s %8s\n", "MTU", "set", "engine GB/s", "ideal GB/s", "ratio");
    double worst1500 = 10, worst9000 = 10;
    for (const std::uint32_t mtu : {1500u, 9000u}) {
      for (const std::uint64_t set : {kSmall, kLarge}) {
        const Rates r = measure(mtu, set, true, reps);
        const double ratio = r.engine / r.ideal;
        std::printf("%-6u %-10s %12.2f %12.2f %8.3f\n", mtu, set == kSmall ? "128 KiB" : "256 MiB",
                    r.engine, r.ideal, ratio);
        (mtu == 1500 ? worst1500 : worst9000) =
            std::min(mtu == 1500 ? worst1500 : worst9000, ratio);
      }
    }
    verdict("P2", worst1500, 0.75);
    verdict("P2", worst9000, 0.9);
    return 0;
  }
  const Rates fast = measure(1500, kSmall, true, reps);
  const Rates slow = measure(1500, kSmall, false, reps);
  const auto copies = [](const ConnectionStats& s) {
    return static_cast<double>(s.bytes_copied) / static_cast<double>(s.payload_placed);
  };
  std::printf("%-6s %12s %12s %8s %14s\n", "type", "engine GB/s", "ideal GB/s", "ratio",
              "copies/octet");
  std::printf("%-6s %12.2f %12.2f %8.3f %14.3f\n", "FAST", fast.engine, fast.ideal,
              fast.engine / fast.ideal, copies(fast.stats));
  std::printf("%-6s %12.2f %12.2f %8.3f %14.3f\n", "SLOW", slow.engine, slow.ideal,
              slow.engine / slow.ideal, copies(slow.stats));
  const double goodput = fast.engine / slow.engine, ideal = fast.ideal / slow.ideal;
  std::printf("FAST/SLOW goodput %.3f, ideal %.3f\n", goodput, ideal);
  verdict("P3", goodput / ideal, 0.9);
  verdict("P3", slow.engine / slow.ideal, 0.7);
  return 0;
}
