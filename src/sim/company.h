// The streams that share the wire with the one that is looked at: further queue pairs of RoCE, and
// a connection of iWARP, each with the same work and completion queues of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/experiment.h"
#include "sim/traffic.h"

namespace urnic::sim {

class Company {
 public:
  // Made and connected. `wrong()` afterwards: somebody did not come up.
  Company(Pair& pair, const Setup& setup, Duration limit);
  bool wrong() const { return wrong_; }

  // Their work begins, and does not end by itself.
  void begin(Instant now, std::uint64_t seed);
  void step();
  // What has become of each so far.
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
