// The result of a measurement, with the columns that users of perftest know.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/perf/perf_message.h"
#include "urnic/qp_attributes.h"

namespace urnic::cli {

// Latencies of single messages.
struct LatencySummary {
  double min = 0, max = 0, typical = 0, average = 0, deviation = 0;  // microseconds
  double p50 = 0, p90 = 0, p99 = 0, p999 = 0;
};
// Sorts `nanoseconds`. A percentile is the smallest sample such that at least that share of all
// samples is at or below it.
LatencySummary summarise(std::vector<std::uint32_t>* nanoseconds);

// The messages between two reports.
struct PerfInterval {
  double from = 0, to = 0;  // seconds since the beginning
  std::uint64_t messages = 0;
};

struct PerfResult {
  PerfRun run;
  std::uint64_t messages = 0;  // of all connections, both directions
  double seconds = 0;
  double peak_rate = 0;     // bytes per second in the best interval
  double average_rate = 0;  // bytes per second
  double message_rate = 0;  // messages per second
  LatencySummary latency;
  std::uint64_t errors = 0;  // verify: messages whose bytes differ
  // Counters of the data's receiver.
  std::uint64_t bytes_fast = 0, bytes_slow = 0, downgrades = 0, upgrades = 0, recoveries = 0;
  std::uint64_t retransmits = 0;
  std::vector<PerfInterval> intervals;
};
// A latency summary in the form that the message Done carries.
std::array<std::uint64_t, 9> to_nanoseconds(const LatencySummary& l);
LatencySummary from_nanoseconds(const std::array<std::uint64_t, 9>& nanoseconds);

// Cuts a measurement into intervals as its messages are counted.
class IntervalMeter {
 public:
  // 0: no intervals.
  explicit IntervalMeter(std::uint32_t interval_ms) : interval_(interval_ms / 1000.0) {}
  // The interval that has just ended, if any: `messages` have been counted in the first `seconds`.
  std::optional<PerfInterval> at(double seconds, std::uint64_t messages);
  // At the end: the remainder after the last interval, if it is at least a tenth of an interval.
  std::optional<PerfInterval> rest(double seconds, std::uint64_t messages);

 private:
  PerfInterval cut(double seconds, std::uint64_t messages);
  double interval_, from_ = 0;
  std::uint64_t before_ = 0;
};

// The heading of a test and one line for a result, both without line feed.
std::string perf_heading(PerfTest test, bool gigabits);
std::string perf_line(const PerfResult& r, bool gigabits);
std::string perf_line(const PerfInterval& i, std::uint32_t size, bool gigabits);
std::string perf_receiver_line(const PerfResult& r, Transport transport);

}  // namespace urnic::cli
