#include "cli/perf/perf_result.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/units.h"

namespace urnic::cli {

LatencySummary summarise(std::vector<std::uint32_t>* samples) {
  LatencySummary s;
  if (samples->empty()) return s;
  std::sort(samples->begin(), samples->end());
  const std::size_t n = samples->size();
  const auto at = [&](double share) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(n)));
    return (*samples)[std::clamp<std::size_t>(rank, 1, n) - 1] / 1000.0;
  };
  double sum = 0, squares = 0;
  for (const std::uint32_t v : *samples) sum += v;
  const double mean = sum / static_cast<double>(n);
  for (const std::uint32_t v : *samples) squares += (v - mean) * (v - mean);
  s.min = samples->front() / 1000.0;
  s.max = samples->back() / 1000.0;
  s.typical = s.p50 = at(0.5);
  s.average = mean / 1000;
  s.deviation = std::sqrt(squares / static_cast<double>(n)) / 1000;
  s.p90 = at(0.9);
  s.p99 = at(0.99);
  s.p999 = at(0.999);
  return s;
}

std::array<std::uint64_t, 9> to_nanoseconds(const LatencySummary& l) {
  const double all[] = {l.min, l.max, l.typical, l.average, l.deviation,
                        l.p50, l.p90, l.p99,     l.p999};
  std::array<std::uint64_t, 9> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::uint64_t>(std::llround(all[i] * 1000));
  }
  return out;
}

LatencySummary from_nanoseconds(const std::array<std::uint64_t, 9>& n) {
  const auto us = [&](std::size_t i) { return static_cast<double>(n[i]) / 1000; };
  return {us(0), us(1), us(2), us(3), us(4), us(5), us(6), us(7), us(8)};
}

PerfInterval IntervalMeter::cut(double seconds, std::uint64_t messages) {
  const PerfInterval over{from_, seconds, messages - std::min(messages, before_)};
  from_ = seconds;
  before_ = messages;
  return over;
}

std::optional<PerfInterval> IntervalMeter::at(double seconds, std::uint64_t messages) {
  if (interval_ == 0 || seconds - from_ < interval_) return std::nullopt;
  return cut(seconds, messages);
}

std::optional<PerfInterval> IntervalMeter::rest(double seconds, std::uint64_t messages) {
  // Too short for a meaningful rate: counted only in the total.
  if (interval_ == 0 || messages <= before_ || seconds - from_ < interval_ / 10)
    return std::nullopt;
  return cut(seconds, messages);
}

std::string perf_heading(PerfTest test, bool gigabits) {
  if (test == PerfTest::Latency) {
    return " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
           "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]";
  }
  return std::string(" #bytes     #iterations    BW peak") + (gigabits ? "[Gb/sec]" : "[MB/sec]") +
         "    BW average" + (gigabits ? "[Gb/sec]" : "[MB/sec]") + "   MsgRate[Mpps]";
}

std::string perf_line(const PerfResult& r, bool gigabits) {
  char line[256];
  if (r.run.test == PerfTest::Latency) {
    const LatencySummary& l = r.latency;
    std::snprintf(line, sizeof line,
                  " %-7u %-10llu     %-7.2f        %-7.2f      %-7.2f            %-7.2f          "
                  "%-7.2f             %-7.2f                %-7.2f",
                  r.run.size, static_cast<unsigned long long>(r.messages), l.min, l.max, l.typical,
                  l.average, l.deviation, l.p99, l.p999);
  } else {
    const double unit = gigabits ? 1e9 / 8 : 1 << 20;
    std::snprintf(line, sizeof line,
                  " %-10u %-10llu       %-7.2f            %-7.2f              %-7.6f", r.run.size,
                  static_cast<unsigned long long>(r.messages), r.peak_rate / unit,
                  r.average_rate / unit, r.message_rate / 1e6);
  }
  std::string out = line;
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string perf_line(const PerfInterval& i, std::uint32_t size, bool gigabits) {
  char line[256];
  const double seconds = std::max(i.to - i.from, 1e-9);
  const double rate = static_cast<double>(i.messages) / seconds;
  std::snprintf(line, sizeof line, " [%7.2f - %7.2f s] %-10llu  %-10.2f[%s]  %.6f[Mpps]", i.from,
                i.to, static_cast<unsigned long long>(i.messages),
                rate * size / (gigabits ? 1e9 / 8 : 1 << 20), gigabits ? "Gb/sec" : "MB/sec",
                rate / 1e6);
  return line;
}

std::string perf_receiver_line(const PerfResult& r, Transport transport) {
  const bool roce = transport == Transport::roce;
  const std::string share = roce ? ""
                                 : format_share(r.bytes_fast, r.bytes_fast + r.bytes_slow) +
                                       " of bytes on the FAST path, ";
  return "receiver: " + share + format_count(r.downgrades) + " downgrades, " +
         format_count(r.upgrades) + " upgrades, " + format_count(r.recoveries) +
         " recovery attempts; " + format_count(r.retransmits) +
         (roce ? " packets retransmitted" : " segments retransmitted");
}

}  // namespace urnic::cli
