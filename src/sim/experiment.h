// Runs a scenario: every variant, every seed. The result depends only on the scenario, so it is the
// same on every machine.
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

// The state of another stream on the same wire when the observed stream has ended.
struct Beside {
  std::string transport;
  std::uint64_t messages = 0, bytes = 0, wrong_bytes = 0;
};

struct RunResult {
  std::uint64_t seed = 0;
  bool complete = false;
  std::string end;                         // "complete", "limit reached", or why the stream ended
  Duration setup;                          // until both ends were established
  Duration took;                           // from the end of the setup to the end of the run
  std::uint64_t messages = 0, bytes = 0;   // delivered
  std::uint64_t failed = 0;                // work requests that failed
  std::uint64_t wrong_bytes = 0;           // delivered, but not what was sent
  ConnectionStats sender, receiver;        // of the data; RoCE: requester, responder
  fault::FaultCounters to_right, to_left;  // the faults of the wire
  std::uint64_t router_dropped = 0;
  std::uint64_t most_holes = 0, most_pending = 0, most_hole_state = 0, most_reassembly = 0;
  std::vector<Duration> repairs;
  RoceObserved roce;  // RoCE only
  RdObserved rd;      // RD only
  std::vector<Beside> beside;
  std::vector<std::string> rules_seen;        // also RoCE only: items that this run has shown
  std::span<const std::string_view> columns;  // of the samples
  // Only for the first run of a variant.
  std::vector<Event> events;
  std::uint64_t events_left_out = 0;
  std::vector<Sample> samples;

  // Delivered bits per second; 0 if no time has passed.
  std::uint64_t goodput() const;
};

struct VariantResult {
  std::string name;
  std::vector<RunResult> runs;
};

// One run of one variant. `series`: record events and samples.
RunResult run_once(const Setup& setup, Duration limit, std::uint64_t seed, bool series);
// Calls `stop` between runs; if it returns true, ends with an incomplete result.
std::vector<VariantResult> run_scenario(const Scenario& scenario,
                                        const std::function<bool()>& stop = {});

// The results as one JSON document with integers only, ending with a line feed. Series are written
// as columns, one per line.
std::string to_json(const Scenario& scenario, const std::vector<VariantResult>& results);

}  // namespace urnic::sim
