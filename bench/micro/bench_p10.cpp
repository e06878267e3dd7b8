// P10: the ICRC of datagrams with a given payload and masked headers, compared with ISA-L's
// crc32_gzip_refl over the same unmasked bytes; and copying the payload while continuing the CRC,
// compared with memcpy followed by the CRC. 32 KiB of datagrams, alternately.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/crc32.h"
#include "base/crc32_kernels.h"
#include "base/rng.h"
#include "bench/micro/stopwatch.h"
#include "ib/icrc.h"

namespace {

using namespace urnic;

constexpr std::size_t kWorkingSet = 32768, kLine = 64;
constexpr std::size_t kHeaders = ib::kIpv4UdpBytes + ib::kBthBytes;  // of a middle packet
constexpr double kIcrcTarget = 0.95, kCopyTarget = 1.2;

// IPv4, UDP and BTH headers before random payload; each datagram starts in its own cache line.
class Datagrams {
 public:
  explicit Datagrams(std::size_t payload)
      : payload_(payload),
        stride_((kHeaders + payload + ib::kIcrcBytes + kLine - 1) / kLine * kLine),
        count_(kWorkingSet / stride_),
        bytes_(kWorkingSet + kLine) {
    Rng rng(1);
    for (auto& b : bytes_) b = static_cast<std::uint8_t>(rng.next());
    for (std::size_t i = 0; i < count_; ++i) bytes_[i * stride_] = 0x45;
  }
  std::size_t count() const { return count_; }
  // From the IP header to the last byte of payload.
  ByteView covered(std::size_t i) const {
    return {bytes_.data() + i * stride_, kHeaders + payload_};
  }
  ByteView payload(std::size_t i) const { return covered(i).subspan(kHeaders); }
  std::size_t place(std::size_t i) const { return i * stride_; }

 private:
  std::size_t payload_, stride_, count_;
  std::vector<std::uint8_t> bytes_;
};

struct Series {
  std::string name;
  std::size_t baseline;  // the series it is compared with
  std::vector<double> rates, ratios;
};
enum Which : std::size_t { kIsal, kIcrc, kTwoPasses, kTwoPassesIsal, kOnePass, kSeries };

struct Options {
  int reps = 15;
  double seconds = 0.02;  // per loop and repetition
  bool json = false;
};

std::vector<Series> measure(const Datagrams& d, const Options& o) {
  std::vector<std::uint8_t> out(kWorkingSet + kLine);
  std::vector<Series> series(kSeries);
  series[kIsal] = {"crc32_gzip_refl alone", kIsal, {}, {}};
  series[kIcrc] = {"ICRC", kIsal, {}, {}};
  series[kTwoPasses] = {"memcpy, then our CRC", kTwoPasses, {}, {}};
  series[kTwoPassesIsal] = {"memcpy, then crc32_gzip_refl", kTwoPasses, {}, {}};
  series[kOnePass] = {"copy and CRC in one pass", kTwoPasses, {}, {}};
  for (int rep = -1; rep < o.reps; ++rep) {  // the first repetition is a warm-up and is not counted
    double rates[kSeries];
    const auto run = [&](Which which, std::size_t bytes, auto&& one) {
      rates[which] = bench::rate(
          [&] {
            for (std::size_t i = 0; i < d.count(); ++i) one(i, out.data() + d.place(i));
          },
          bytes * d.count(), o.seconds);
    };
    const std::size_t all = d.covered(0).size(), payload = d.payload(0).size();
    run(kIsal, all, [&](std::size_t i, std::uint8_t*) {
      bench::keep(crc32_update_isal(kCrc32Init, d.covered(i)));
    });
    run(kIcrc, all, [&](std::size_t i, std::uint8_t*) {
      const ByteView c = d.covered(i);
      bench::keep(ib::icrc(c.first(ib::kIpv4UdpBytes), c.subspan(ib::kIpv4UdpBytes)));
    });
    run(kTwoPasses, payload, [&](std::size_t i, std::uint8_t* to) {
      std::memcpy(to, d.payload(i).data(), payload);
      bench::keep(crc32_update(kCrc32Init, {to, payload}));
    });
    run(kTwoPassesIsal, payload, [&](std::size_t i, std::uint8_t* to) {
      std::memcpy(to, d.payload(i).data(), payload);
      bench::keep(crc32_update_isal(kCrc32Init, {to, payload}));
    });
    run(kOnePass, payload, [&](std::size_t i, std::uint8_t* to) {
      bench::keep(crc32_update_copy(kCrc32Init, to, d.payload(i)));
    });
    if (rep < 0) continue;
    for (std::size_t i = 0; i < kSeries; ++i) {
      series[i].rates.push_back(rates[i]);
      series[i].ratios.push_back(rates[i] / rates[series[i].baseline]);
    }
  }
  return series;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  std::vector<std::size_t> sizes = {1024, 4096};
  CLI::App app{"P10: the ICRC against crc32_gzip_refl; copy and CRC in one pass against two"};
  app.add_option("--reps", o.reps, "repetitions of every loop")->check(CLI::Range(1, 10000));
  app.add_option("--seconds", o.seconds, "length of one loop")->check(CLI::Range(0.0001, 60.0));
  app.add_option("--size", sizes, "bytes of payload")->check(CLI::Range(1, 16384));
  app.add_flag("--json", o.json, "print everything as one JSON object before the last lines");
  CLI11_PARSE(app, argc, argv);

  const std::string kernel(crc32_kernel(crc32_kernel_count() - 1).name);
  nlohmann::json report = {
      {"bench", "P10"}, {"kernel", kernel}, {"sizes", nlohmann::json::array()}};
  std::vector<std::pair<double, double>> results;
  for (const std::size_t size : sizes) {
    const auto series = measure(Datagrams(size), o);
    results.emplace_back(bench::median(series[kIcrc].ratios),
                         bench::median(series[kOnePass].ratios));
    nlohmann::json rows = nlohmann::json::array();
    if (!o.json) std::printf("%zu bytes of payload, kernel %s\n", size, kernel.c_str());
    for (const Series& s : series) {
      const double rate = bench::median(s.rates), ratio = bench::median(s.ratios);
      rows.push_back({{"name", s.name}, {"bytes_per_second", rate}, {"ratio", ratio}});
      if (!o.json) std::printf("  %-32s %7.2f GB/s %7.3f\n", s.name.c_str(), rate / 1e9, ratio);
    }
    report["sizes"].push_back({{"payload", size}, {"rows", rows}});
  }
  if (o.json) std::printf("%s\n", report.dump(2).c_str());
  const auto verdict = [](double ratio, double target, std::size_t size, const char* what) {
    std::printf("P10 %.3f %.2f %s # %zu bytes: %s\n", ratio, target,
                ratio >= target ? "met" : "missed", size, what);
  };
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    verdict(results[i].first, kIcrcTarget, sizes[i], "ICRC / crc32_gzip_refl");
    verdict(results[i].second, kCopyTarget, sizes[i], "copy and CRC in one pass / in two");
  }
  return 0;
}
