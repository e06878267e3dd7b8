// P11: the receive path of an RC queue pair, Writes of 64 KiB, compared with a loop of ICRC and
// memcpy over the same packets. The loops alternate in short slices, and the ratio is a median over
// the slices.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/micro/stopwatch.h"
#include "bench/receive/roce_replay.h"

using namespace urnic;
using namespace urnic::bench;

namespace {

constexpr std::uint64_t kSlice = 4u << 20;  // bytes; a slice is a part of a large set

struct Options {
  int reps = 400;
  std::vector<std::uint32_t> pmtus = {1024, 4096};
  std::vector<std::uint64_t> sets = {128, 128u << 10};  // KiB of payload
  bool json = false;
};

struct Row {
  std::uint32_t pmtu;
  std::uint64_t set;
  double engine, ideal, ratio;  // GB/s
};

Row measure(std::uint32_t pmtu, std::uint64_t set, int reps) {
  RoceReceiver receiver(pmtu, set << 10);
  const std::uint64_t whole = std::max(set << 10, std::uint64_t{RoceReceiver::kMessage});
  receiver.run_engine(whole);  // touch every page once
  receiver.run_ideal(whole);
  std::vector<double> engine, ideal, ratio;
  for (int i = 0; i < reps; ++i) {
    engine.push_back(kSlice / receiver.run_engine(kSlice) * 1e-9);
    ideal.push_back(kSlice / receiver.run_ideal(kSlice) * 1e-9);
    ratio.push_back(engine.back() / ideal.back());
  }
  return {pmtu, set, median(engine), median(ideal), median(ratio)};
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"P11: the receive path of RoCE against a loop of ICRC and memcpy"};
  app.add_option("--reps", o.reps, "slices of every loop")->check(CLI::Range(1, 100000));
  app.add_option("--pmtu", o.pmtus, "path MTUs")
      ->check(CLI::IsMember({256, 512, 1024, 2048, 4096}));
  app.add_option("--set", o.sets, "working sets in KiB, multiples of 64")
      ->check(CLI::Range(64, 1 << 20))
      ->check([](const std::string& v) {
        return std::stoul(v) % 64 == 0 ? std::string() : "no multiple of 64";
      });
  app.add_flag("--json", o.json, "print everything as one JSON object before the last lines");
  CLI11_PARSE(app, argc, argv);

  nlohmann::json report = {{"bench", "P11"}, {"reps", o.reps}, {"rows", nlohmann::json::array()}};
  if (!o.json)
    std::printf("%-8s %-8s %12s %12s %9s\n", "path MTU", "set KiB", "engine GB/s", "loop GB/s",
                "ratio");
  std::vector<double> worst(o.pmtus.size(), 1e9);
  for (std::size_t m = 0; m < o.pmtus.size(); ++m) {
    for (const std::uint64_t set : o.sets) {
      const Row r = measure(o.pmtus[m], set, o.reps);
      worst[m] = std::min(worst[m], r.ratio);
      report["rows"].push_back({{"pmtu", r.pmtu},
                                {"set_kib", r.set},
                                {"engine_gbytes", r.engine},
                                {"loop_gbytes", r.ideal},
                                {"ratio", r.ratio}});
      if (!o.json) {
        std::printf("%-8u %-8llu %12.2f %12.2f %9.3f\n", r.pmtu,
                    static_cast<unsigned long long>(r.set), r.engine, r.ideal, r.ratio);
      }
    }
  }
  if (o.json) std::printf("%s\n", report.dump().c_str());
  for (std::size_t m = 0; m < o.pmtus.size(); ++m) {
    const double target = o.pmtus[m] <= 1024 ? 0.7 : 0.85;
    std::printf(
        "P11 %.3f %.2f %s # path MTU %u: Writes / loop of ICRC and memcpy, the worse working set\n",
        worst[m], target, worst[m] >= target ? "met" : "missed", o.pmtus[m]);
  }
  return 0;
}
