// Additional streams that share the wire with the observed stream: more queue pairs of RoCE, and an
// iWARP connection. Each has the same work and its own completion queues.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/experiment.h"
#include "sim/traffic.h"

namespace urnic::sim {

class Company {
 public:
  // Creates and connects the streams. If one of them failed, wrong() is true afterwards.
  Company(Pair& pair, const Setup& setup, Duration limit);
  bool wrong() const { return wrong_; }

  // Starts their work, which has no end of its own.
  void begin(Instant now, std::uint64_t seed);
  void step();
  // The results of each stream so far.
  std::vector<Beside> found();

 private:
  struct Stream {
    const char* transport;
    verbs::QueuePair *left, *right;
    unsigned queues;
    RocePlan plan;
  };
  bool add_roce(Duration limit);
  bool add_tcp();
  unsigned add_queues();

  Pair& pair_;
  const Setup& setup_;
  std::vector<Stream> streams_;
  std::deque<Traffic> traffic_;
  bool wrong_ = false;
};

}  // namespace urnic::sim
