// A UD queue pair of the left node goes to Sqe and comes back: at its time a request that cannot be
// sent is posted, and a while later Modify QP leads to Rts. All the time the right node sends to
// it, so that its receives are seen to go on.
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

  // After every step.
  void step();

  // Of the request that cannot be sent.
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
