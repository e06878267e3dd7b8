// Takes a UD queue pair of the left node to Sqe and back: at the planned time it posts a request
// that cannot be sent, and after a while Modify QP returns the queue pair to Rts. The right node
// sends to it all the time, to show that its receives continue.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/roce_observer.h"
#include "sim/scenario.h"

namespace urnic::sim {

class SqeDrill {
 public:
  SqeDrill(Pair& pair, verbs::QueuePair& left, verbs::QueuePair& right, const WorkPlan& plan,
           RoceObserver& observer);

  // Call it after every step.
  void step();

  // The wr_id of the request that cannot be sent.
  static constexpr std::uint64_t kBadRequest = ~std::uint64_t{0};

 private:
  void begin();
  void send_back();
  void take();

  Pair& pair_;
  verbs::QueuePair &left_, &right_;
  RoceObserver& observer_;
  const Duration time_;
  Instant begin_, next_send_;
  Instant back_ = Instant::never();
  std::vector<std::uint8_t> bytes_;
  std::uint32_t left_key_ = 0, right_key_ = 0, handle_ = 0;
};

}  // namespace urnic::sim
