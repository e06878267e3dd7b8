// P1: the validation kernel (CRC32C and Internet checksum in one pass) over 32 KiB of frames,
// against ISA-L's crc32_iscsi alone over the same frames. For comparison: checksum and CRC one
// after another, every kernel this CPU can run, and the copying form against memcpy + crc32_iscsi.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/fused.h"
#include "base/inet_checksum.h"
#include "base/rng.h"
#include "bench/micro/stopwatch.h"

namespace {

using namespace urnic;

constexpr std::size_t kWorkingSet = 32768;
constexpr double kTarget = 0.95;

struct Frames {
  std::vector<std::uint8_t> bytes;
  std::size_t size;  // of one frame
  std::size_t count;

  explicit Frames(std::size_t frame)
      : bytes(kWorkingSet + 64), size(frame), count(kWorkingSet / frame) {
    Rng rng(1);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(rng.next());
  }
  ByteView operator[](std::size_t i) const { return {bytes.data() + i * size, size}; }
  std::size_t total() const { return size * count; }
};

struct Series {
  std::string name;
  std::vector<double> rates;   // bytes per second
  std::vector<double> ratios;  // to the baseline of the same repetition
};

struct Options {
  int reps = 15;
  double seconds = 0.02;  // per loop and repetition
  bool json = false;
};

// Measures one frame size: every loop once per repetition, alternately.
std::vector<Series> measure(const Frames& frames, const Options& o) {
  std::vector<std::uint8_t> out(kWorkingSet + 64);
  std::vector<Series> series;
  const auto add = [&](std::string name) { series.push_back({std::move(name), {}, {}}); };
  add("crc32_iscsi alone");
  add("fused");
  add("inet_sum, then crc32_iscsi");
  add("memcpy, then crc32_iscsi");
  add("fused with copy");
  for (std::size_t k = 0; k < fused_kernel_count(); ++k) {
    add("kernel " + std::string(fused_kernel(k).name));
  }
  for (std::size_t k = 0; k < fused_kernel_count(); ++k) {
    add("kernel with copy " + std::string(fused_kernel(k).name));
  }

  for (int rep = -1; rep < o.reps; ++rep) {  // the first repetition is a warm-up and is not counted
    std::size_t at = 0;
    double baseline = 0;
    const auto run = [&](auto&& one) {
      const double r = bench::rate(
          [&] {
            for (std::size_t i = 0; i < frames.count; ++i)
              one(frames[i], out.data() + i * frames.size);
          },
          frames.total(), o.seconds);
      if (at == 0) baseline = r;
      if (rep >= 0) {
        series[at].rates.push_back(r);
        series[at].ratios.push_back(r / baseline);
      }
      ++at;
    };
    run([](ByteView f, std::uint8_t*) { bench::keep(crc32c_update_isal(kCrc32cInit, f)); });
    run([](ByteView f, std::uint8_t*) {
      const FusedSums s = fused_crc_sum(f, kCrc32cInit);
      bench::keep(s.crc);
      bench::keep(s.sum);
    });
    run([](ByteView f, std::uint8_t*) {
      bench::keep(inet_sum(f));
      bench::keep(crc32c_update_isal(kCrc32cInit, f));
    });
    run([](ByteView f, std::uint8_t* to) {
      std::memcpy(to, f.data(), f.size());
      bench::keep(crc32c_update_isal(kCrc32cInit, {to, f.size()}));
    });
    run([](ByteView f, std::uint8_t* to) {
      const FusedSums s = fused_copy_crc_sum(to, f, kCrc32cInit);
      bench::keep(s.crc);
      bench::keep(s.sum);
    });
    for (std::size_t k = 0; k < fused_kernel_count(); ++k) {
      const FusedKernel kernel = fused_kernel(k);
      run([&](ByteView f, std::uint8_t*) {
        const FusedSums s = kernel.crc_sum(f, kCrc32cInit);
        bench::keep(s.crc);
        bench::keep(s.sum);
      });
    }
    for (std::size_t k = 0; k < fused_kernel_count(); ++k) {
      const FusedKernel kernel = fused_kernel(k);
      run([&](ByteView f, std::uint8_t* to) {
        const FusedSums s = kernel.copy_crc_sum(to, f, kCrc32cInit);
        bench::keep(s.crc);
        bench::keep(s.sum);
      });
    }
  }
  return series;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  std::vector<std::size_t> sizes = {1460, 8960};
  CLI::App app{"P1: fused validation kernel against crc32_iscsi alone"};
  app.add_option("--reps", o.reps, "repetitions of every loop")->check(CLI::Range(1, 10000));
  app.add_option("--seconds", o.seconds, "length of one loop")->check(CLI::Range(0.0001, 60.0));
  app.add_option("--size", sizes, "frame sizes in bytes")->check(CLI::Range(1, 32768));
  app.add_flag("--json", o.json, "print everything as one JSON object before the last lines");
  CLI11_PARSE(app, argc, argv);

  nlohmann::json report = {
      {"bench", "P1"},  {"kernel", fused_kernel_name()}, {"working_set", kWorkingSet},
      {"reps", o.reps}, {"seconds", o.seconds},          {"sizes", nlohmann::json::array()}};
  std::vector<std::pair<std::size_t, double>> results;
  for (const std::size_t size : sizes) {
    const auto series = measure(Frames(size), o);
    results.emplace_back(size, bench::median(series[1].ratios));
    nlohmann::json rows = nlohmann::json::array();
    if (!o.json) std::printf("frames of %zu bytes, kernel %s\n", size, fused_kernel_name().data());
    for (const Series& s : series) {
      const double rate = bench::median(s.rates), ratio = bench::median(s.ratios);
      rows.push_back({{"name", s.name}, {"bytes_per_second", rate}, {"ratio", ratio}});
      if (!o.json) std::printf("  %-40s %7.2f GB/s %7.3f\n", s.name.c_str(), rate / 1e9, ratio);
    }
    report["sizes"].push_back({{"frame", size}, {"rows", rows}});
  }
  if (o.json) std::printf("%s\n", report.dump(2).c_str());
  for (const auto& [size, ratio] : results) {
    std::printf("P1 %.3f %.2f %s # %zu bytes: fused / crc32_iscsi\n", ratio, kTarget,
                ratio >= kTarget ? "met" : "missed", size);
  }
  return 0;
}
