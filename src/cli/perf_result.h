// What a measurement gave, and its columns as users of perftest know them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/perf_message.h"
#include "urnic/qp_attributes.h"

namespace urnic::cli {

// Times of single messages.
struct LatencySummary {
  double min = 0, max = 0, typical = 0, average = 0, deviation = 0;  // microseconds
  double p50 = 0, p90 = 0, p99 = 0, p999 = 0;
};
// Sorts `nanoseconds`. Percentiles are those samples that at least that share lies at or below.
LatencySummary summarise(std::vector<std::uint32_t>* nanoseconds);

struct PerfResult {
  PerfRun run;
  std::uint64_t messages = 0;  // of all connections, both directions
  double seconds = 0;
  double peak_rate = 0;     // octets a second in the best interval
  double average_rate = 0;  // octets a second
  double message_rate = 0;  // messages a second
  LatencySummary latency;
  std::uint64_t errors = 0;  // verify: messages whose octets differ
  // Receive side of the data.
  std::uint64_t bytes_fast = 0, bytes_slow = 0, downgrades = 0, upgrades = 0, recoveries = 0;
  std::uint64_t retransmits = 0;
};

// The heading line of a test, and one line for a result, both without line feed.
std::string perf_heading(PerfTest test, bool gigabits);
std::string perf_line(const PerfResult& r, bool gigabits);
std::string perf_receiver_line(const PerfResult& r, Transport transport);

}  // namespace urnic::cli
