// The deadlines of connections: TCP's, those of start-up and closing, the initiator's first FPDU.
#pragma once

#include <cstddef>

#include "iwarp/connection_table.h"
#include "iwarp/options.h"
#include "iwarp/timer_heap.h"

namespace urnic::iwarp {

class Timers {
 public:
  explicit Timers(bool real_time) : real_time_(real_time) {}

  // Visits `c` when its earliest deadline has come.
  void arm(Connection& c);
  Instant earliest() const { return heap_.earliest(); }
  // The next connection that is due, no longer armed; nullptr if none is.
  Connection* pop_due(const ConnectionTable& table, Instant now);
  // True if TCP's own deadline has come, and the peer has had time to answer.
  bool tcp_is_due(Connection& c, Instant now) const;
  // Removes entries of ended connections, when there are enough of them to pay for the search.
  void prune(const ConnectionTable& table);
  // The driving thread leaves the engine now.
  void leave(Instant now) { last_exit_ = now; }
  std::size_t size() const { return heap_.size(); }

 private:
  bool stalled(const Connection& c, Instant now) const;

  bool real_time_;
  TimerHeap heap_;
  Instant last_exit_;
};

}  // namespace urnic::iwarp
