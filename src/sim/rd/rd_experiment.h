// What a run of RD has shown that counters of other services do not tell.
#pragma once

#include <cstdint>

namespace urnic::sim {

struct RdObserved {
  bool on = false;                               // it was such a run
  std::uint64_t first = 0;                       // messages of the first queue pair that came
  std::uint64_t given_up = 0;                    // requests that failed
  std::uint64_t posted_again = 0;                // that were flushed behind one of those
  std::uint64_t stops = 0;                       // of queue pairs: to Sqe
  std::uint64_t put_back = 0;                    // messages, for want of a receive
  std::uint64_t resyncs = 0, resyncs_again = 0;  // left; of these sent again
  std::uint64_t resyncs_taken = 0, aborted = 0;  // new at the responder; with a part of one
  std::uint64_t invalid_rd = 0;                  // NAKs Invalid RD Request
  std::uint64_t receives_in_error = 0;
};

}  // namespace urnic::sim
