// What every run has, whichever transport: the pair it happens on, the wire's phases, the result.
#pragma once

#include <string>

#include "sim/experiment.h"
#include "sim/pair.h"
#include "sim/recorder.h"
#include "sim/scenario.h"
#include "sim/traffic.h"

namespace urnic::sim {

PairOptions pair_options(const Setup& setup, std::uint64_t seed);

// Puts the phases in force as their times come.
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

// What the work, the wire and the recorder have to say; `r->end` is known.
void finish(RunResult* r, Pair& pair, Traffic& traffic, Recorder& recorder);

// Of two queue pairs of RoCE; run_once() asks for it.
RunResult run_roce(const Setup& setup, Duration limit, std::uint64_t seed, bool series);
// Of queue pairs of RD, without engines; the same.
RunResult run_rd(const Setup& setup, Duration limit, std::uint64_t seed, bool series);

}  // namespace urnic::sim
