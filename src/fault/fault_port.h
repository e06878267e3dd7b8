// A port with a faulty wire behind it (E-37): wraps another port and treats what it receives and
// what it sends by a plan each. Plans can be changed while frames flow.
//
//   auto [port, control] = wrap_faults(std::move(inner), {.rx = *FaultPlan::parse("loss=0.01"),
//                                                         .clock = clock});
//   ... use `port` like any other ...
//   control->set_plan(Direction::Rx, {});   // next phase
//
// Threading: the port as port_abi.h says; FaultControl from any thread. While both plans of a queue
// do nothing and nothing is held back, frames pass without being copied.
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
  FaultPlan rx, tx;  // what the inner port receives; what is sent through it
  WireClock clock;
  std::size_t log_capacity = 65536;  // records kept; 0: none
  // Called for every record, from the thread that moves the frame; must not call back into the
  // port or the control.
  std::function<void(const FaultRecord&)> watch;
};

class FaultLanes;  // fault_port.cpp

class FaultControl {
 public:
  explicit FaultControl(std::shared_ptr<FaultLanes> lanes) : lanes_(std::move(lanes)) {}

  // For frames that come from now on. Seed and `at=` start over. Returns what was counted until
  // then.
  FaultCounters set_plan(Direction d, const FaultPlan& plan);
  FaultPlan plan(Direction d) const;
  // All queues together.
  FaultCounters counters(Direction d) const;
  std::vector<FaultRecord> records() const;
  // When the next held-back frame is due; never() when none is. For a virtual clock.
  Instant next_release() const;
  // Frames inside, both directions.
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
