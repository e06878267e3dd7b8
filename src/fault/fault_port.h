// A port with a faulty wire (E-37): wraps another port and applies one plan to received frames and
// one to sent frames. Plans can be changed while frames flow.
//
//   auto [port, control] = wrap_faults(std::move(inner), {.rx = *FaultPlan::parse("loss=0.01"),
//                                                         .clock = clock});
//   ... use `port` like any other ...
//   control->set_plan(Direction::Rx, {});   // next phase
//
// Threading: the port as described in port_abi.h; FaultControl from any thread. If both plans of a
// queue do nothing and no frame is held back, frames pass without a copy.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fault/fault_log.h"
#include "fault/plan.h"
#include "fault/wire_clock.h"
#include "port/port.h"

namespace urnic::fault {

struct FaultOptions {
  FaultPlan rx, tx;  // for frames that the inner port receives; for frames sent
  WireClock clock;
  std::size_t log_capacity = 65536;  // records kept; 0: none
  // Called for every record by the thread that moves the frame. Must not call the port or the
  // control.
  std::function<void(const FaultRecord&)> watch;
};

class FaultLanes;  // fault_port.cpp

class FaultControl {
 public:
  explicit FaultControl(std::shared_ptr<FaultLanes> lanes) : lanes_(std::move(lanes)) {}

  // Sets the plan for later frames and restarts seed and `at=`. Returns the counters up to now.
  FaultCounters set_plan(Direction d, const FaultPlan& plan);
  FaultPlan plan(Direction d) const;
  // The sum over all queues.
  FaultCounters counters(Direction d) const;
  std::vector<FaultRecord> records() const;
  // When the next held-back frame is due; never() if there is none. For a virtual clock.
  Instant next_release() const;
  // The number of frames inside, both directions.
  std::size_t backlog() const;

 private:
  std::shared_ptr<FaultLanes> lanes_;
};

struct FaultyPort {
  port::Port port;
  std::shared_ptr<FaultControl> control;  // may outlive the port
};

// `inner` must be open. The returned port owns it.
FaultyPort wrap_faults(port::Port inner, const FaultOptions& options);

}  // namespace urnic::fault
