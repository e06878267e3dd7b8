// P2: the FAST receive path against an ideal loop over the same frames without any protocol.
// P3: FAST against SLOW, as a ratio to what their ideal loops can reach, and copies by counter.
//
// The loops take turns in short slices and every ratio is a median over slices, so that a change of
// clock speed or a noisy neighbour hits both sides alike.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/micro/stopwatch.h"
#include "bench/receive/replay.h"

using namespace urnic;
using namespace urnic::bench;

namespace {

constexpr std::uint64_t kSmall = 128;       // KiB
constexpr std::uint64_t kSlice = 4u << 20;  // octets; a large set moves on through memory

struct Options {
  int reps = 400;
  std::vector<std::uint32_t> mtus = {1500, 9000};
  std::vector<std::uint64_t> sets = {kSmall, 256u << 10};  // KiB of frames
  bool json = false;
};

struct Lane {
  std::unique_ptr<Receiver> receiver;
  std::vector<double> engine, ideal, ratio;  // GB/s of payload placed; their ratio, by slice

  Lane(std::uint32_t mtu, std::uint64_t set, bool fast)
      : receiver(std::make_unique<Receiver>(mtu, set, fast)) {}

  void run(std::uint64_t octets, bool counts) {
    const double e = slice(octets, true), i = slice(octets, false);
    if (!counts) return;
    engine.push_back(e);
    ideal.push_back(i);
    ratio.push_back(e / i);
  }

 private:
  double slice(std::uint64_t octets, bool by_engine) {
    std::uint64_t placed = 0;
    const double t =
        by_engine ? receiver->run_engine(octets, &placed) : receiver->run_ideal(octets, &placed);
    if (placed < octets) {
      std::fprintf(stderr, "bench: only %llu of %llu octets were placed\n",
                   static_cast<unsigned long long>(placed),
                   static_cast<unsigned long long>(octets));
      std::exit(1);
    }
    return static_cast<double>(placed) / t * 1e-9;
  }
};

void verdict(const char* id, double ratio, double target, const std::string& what) {
  std::printf("%s %.3f %.2f %s # %s\n", id, ratio, target, ratio >= target ? "met" : "missed",
              what.c_str());
}

void p2(const Options& o) {
  nlohmann::json report = {{"bench", "P2"}, {"reps", o.reps}, {"rows", nlohmann::json::array()}};
  if (!o.json) {
    std::printf("%-6s %-8s %12s %12s %7s %14s\n", "MTU", "set KiB", "engine GB/s", "ideal GB/s",
                "ratio", "ns over ideal");
  }
  std::vector<double> worst(o.mtus.size(), 1e9);
  for (std::size_t m = 0; m < o.mtus.size(); ++m) {
    const std::uint32_t mtu = o.mtus[m];
    for (const std::uint64_t set : o.sets) {
      Lane lane(mtu, set << 10, true);
      // Every page once, then the slices that count.
      lane.run(set << 10, false);
      for (int i = 0; i < o.reps; ++i) lane.run(kSlice, true);
      const double e = median(lane.engine), i = median(lane.ideal), r = median(lane.ratio);
      // By frame of this MTU, without its headers.
      const double over = static_cast<double>(lane.receiver->frame_payload()) * (1 / e - 1 / i);
      worst[m] = std::min(worst[m], r);
      report["rows"].push_back({{"mtu", mtu},
                                {"set_kib", set},
                                {"engine_gbytes", e},
                                {"ideal_gbytes", i},
                                {"ratio", r},
                                {"ns_over_ideal", over}});
      if (!o.json)
        std::printf("%-6u %-8llu %12.2f %12.2f %7.3f %14.1f\n", mtu,
                    static_cast<unsigned long long>(set), e, i, r, over);
    }
  }
  if (o.json) std::printf("%s\n", report.dump().c_str());
  for (std::size_t m = 0; m < o.mtus.size(); ++m) {
    verdict("P2", worst[m], o.mtus[m] < 4096 ? 0.75 : 0.9,
            "MTU " + std::to_string(o.mtus[m]) + ": engine / ideal, the worse working set");
  }
}

void p3(const Options& o) {
  Lane fast(1500, kSmall << 10, true), slow(1500, kSmall << 10, false);
  std::vector<double> of_ideal;
  for (int i = -1; i < o.reps; ++i) {
    fast.run(kSlice, i >= 0);
    slow.run(kSlice, i >= 0);
    if (i >= 0) of_ideal.push_back(fast.ratio.back() / slow.ratio.back());
  }
  nlohmann::json report = {{"bench", "P3"}, {"reps", o.reps}, {"rows", nlohmann::json::array()}};
  if (!o.json) {
    std::printf("%-5s %12s %12s %7s %13s\n", "type", "engine GB/s", "ideal GB/s", "ratio",
                "copies/octet");
  }
  double copies[2];
  for (Lane* lane : {&fast, &slow}) {
    const bool is_fast = lane == &fast;
    const ConnectionStats s = lane->receiver->stats();
    double& c = copies[is_fast ? 0 : 1];
    c = static_cast<double>(s.bytes_copied) / static_cast<double>(s.payload_placed);
    const double e = median(lane->engine), i = median(lane->ideal), r = median(lane->ratio);
    report["rows"].push_back({{"type", is_fast ? "FAST" : "SLOW"},
                              {"engine_gbytes", e},
                              {"ideal_gbytes", i},
                              {"ratio", r},
                              {"copies_per_octet", c}});
    if (!o.json) {
      std::printf("%-5s %12.2f %12.2f %7.3f %13.3f\n", is_fast ? "FAST" : "SLOW", e, i, r, c);
    }
  }
  report["fast_over_slow"] = median(fast.engine) / median(slow.engine);
  report["ideal_fast_over_slow"] = median(fast.ideal) / median(slow.ideal);
  if (o.json) std::printf("%s\n", report.dump().c_str());
  verdict("P3", median(of_ideal), 0.9, "FAST / SLOW, as a part of what their ideals allow");
  verdict("P3", median(slow.ratio), 0.7, "SLOW / its ideal");
  // Headers are copied with the payload on the SLOW path, hence a little more than two.
  const bool as_meant = copies[0] == 1.0 && copies[1] >= 2.0 && copies[1] < 2.05;
  std::printf("P3 %.3f/%.3f 1/2 %s # copies of an octet, FAST/SLOW\n", copies[0], copies[1],
              as_meant ? "met" : "missed");
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  bool want_p3 = false;
  CLI::App app{"P2 and P3: the receive path against ideal loops"};
  app.add_flag("--p3", want_p3, "FAST against SLOW instead of P2");
  app.add_option("--reps", o.reps, "slices of every loop")->check(CLI::Range(1, 100000));
  app.add_option("--mtu", o.mtus, "MTUs")->check(CLI::Range(576, 65000));
  app.add_option("--set", o.sets, "working sets in KiB")->check(CLI::Range(64, 1 << 21));
  app.add_flag("--json", o.json, "print everything as one JSON object before the last lines");
  CLI11_PARSE(app, argc, argv);
  want_p3 ? p3(o) : p2(o);
  return 0;
}
