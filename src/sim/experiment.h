// Runs a scenario: every variant, every seed. A function of the scenario alone: the same scenario
// gives the same result on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/observer.h"
#include "sim/rd/rd_experiment.h"
#include "sim/roce_observer.h"
#include "sim/scenario.h"
#include "urnic/stats.h"

namespace urnic::sim {

// Another stream over the same wire, when the one that is looked at has ended.
struct Beside {
  std::string transport;
  std::uint64_t messages = 0, bytes = 0, wrong_bytes = 0;
};

struct RunResult {
  std::uint64_t seed = 0;
  bool complete = false;
  std::string end;                         // "complete", "limit reached", or why the stream ended
  Duration setup;                          // until both ends were established
  Duration took;                           // from then to the end
  std::uint64_t messages = 0, bytes = 0;   // delivered
  std::uint64_t failed = 0;                // work requests that did not succeed
  std::uint64_t wrong_bytes = 0;           // delivered, but not what was sent
  ConnectionStats sender, receiver;        // of the data; RoCE: who asks and who serves
  fault::FaultCounters to_right, to_left;  // what the wire did
  std::uint64_t router_dropped = 0;
  std::uint64_t most_holes = 0, most_pending = 0, most_hole_state = 0, most_reassembly = 0;
  std::vector<Duration> repairs;
  RoceObserved roce;  // of RoCE alone
  RdObserved rd;      // of RD alone
  std::vector<Beside> beside;
  std::vector<std::string> rules_seen;        // the same: items that this run has shown
  std::span<const std::string_view> columns;  // of the samples
  // Of the first run of a variant only.
  std::vector<Event> events;
  std::uint64_t events_left_out = 0;
  std::vector<Sample> samples;

  // Delivered bytes over time, bits per second; 0 when no time passed.
  std::uint64_t goodput() const;
};

struct VariantResult {
  std::string name;
  std::vector<RunResult> runs;
};

// One run of one variant. `series`: with events and samples.
RunResult run_once(const Setup& setup, Duration limit, std::uint64_t seed, bool series);
// Asks `stop` between runs; true ends there, with the result incomplete.
std::vector<VariantResult> run_scenario(const Scenario& scenario,
                                        const std::function<bool()>& stop = {});

// Everything as one JSON document with whole numbers only, ending with a line feed. Series are
// written as columns, one line each.
std::string to_json(const Scenario& scenario, const std::vector<VariantResult>& results);

}  // namespace urnic::sim
