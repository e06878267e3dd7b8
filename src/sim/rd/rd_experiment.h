// Results of an RD run that counters of other services do not show.
#pragma once

#include <cstdint>

namespace urnic::sim {

struct RdObserved {
  bool on = false;                               // this was an RD run
  std::uint64_t first = 0;                       // messages delivered from the first queue pair
  std::uint64_t given_up = 0;                    // requests that failed
  std::uint64_t posted_again = 0;                // flushed after a failure, posted again
  std::uint64_t stops = 0;                       // transitions of queue pairs to Sqe
  std::uint64_t put_back = 0;                    // messages deferred because no receive was posted
  std::uint64_t resyncs = 0, resyncs_again = 0;  // sent in all; retransmissions
  std::uint64_t resyncs_taken = 0, aborted = 0;  // at the responder; with part of a message
  std::uint64_t invalid_rd = 0;                  // NAKs Invalid RD Request
  std::uint64_t receives_in_error = 0;
};

}  // namespace urnic::sim
