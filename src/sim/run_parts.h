// Parts of a run that all transports share: the pair, the phases of the wire, the result.
#pragma once

#include <string>

#include "sim/experiment.h"
#include "sim/pair.h"
#include "sim/recorder.h"
#include "sim/scenario.h"
#include "sim/traffic.h"

namespace urnic::sim {

PairOptions pair_options(const Setup& setup, std::uint64_t seed);

// Applies each phase when its time has come.
class Phases {
 public:
  Phases(Pair& pair, const Setup& setup, Recorder& recorder)
      : pair_(pair), setup_(setup), recorder_(recorder), began_(pair.now()) {}

  void step();

 private:
  void enter();

  Pair& pair_;
  const Setup& setup_;
  Recorder& recorder_;
  const Instant began_;
  std::size_t next_ = 0;
};

// Fills the result from the workload, the wire and the recorder; `r->end` is already set.
void finish(RunResult* r, Pair& pair, Traffic& traffic, Recorder& recorder);

// Runs two RoCE queue pairs; called by run_once().
RunResult run_roce(const Setup& setup, Duration limit, std::uint64_t seed, bool series);
// Runs RD queue pairs, without engines; called by run_once().
RunResult run_rd(const Setup& setup, Duration limit, std::uint64_t seed, bool series);

}  // namespace urnic::sim
