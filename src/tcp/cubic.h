// The window growth of CUBIC (RFC 9438): a cubic function of the time since the last cut, with its
// plateau at the window where that cut was made. Uses integers (bytes and milliseconds), so that
// runs repeat exactly on every machine. Called by congestion.cpp only.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::tcp {

// Plain data, so that it can share its memory with other algorithms' state. The initial value is
// all zeros.
struct Cubic {
  std::uint32_t w_max;       // bytes: the window before the last cut, or less (4.7)
  std::uint32_t w_est;       // the window that Reno would have by now (4.3)
  std::uint32_t w_prior;     // cwnd at the last cut; from there on w_est grows as Reno does; 0: no
                             // cut
  std::uint32_t k_ms;        // time from the epoch to the plateau (4.2)
  std::uint64_t est_credit;  // remainders of the divisions
  std::uint64_t grow_credit;
  std::int64_t epoch_ns;  // start of this avoidance stage, moved by the time it was idle
  std::int64_t seen_ns;   // time of the last ACK
  bool running;           // an avoidance stage has begun
  bool after_timeout;     // the next avoidance stage follows a timeout (4.8)
  // The value before the last cut (4.9).
  std::uint32_t old_w_max;
};

// Returns by how many bytes cwnd grows for `acked` bytes in congestion avoidance (4.4, 4.5).
// `no_queue`: round trips are known to be no longer than on an idle path.
std::uint32_t cubic_growth(Cubic&, std::uint32_t cwnd, std::uint32_t smss, std::uint32_t acked,
                           Instant now, Duration srtt, bool no_queue);
// Call this for an ACK that must not enlarge the window. The time since the last ACK then does not
// count (4.2).
void cubic_exclude_interval(Cubic&, Instant now);
// Cuts the window at `cwnd` (4.7). Returns the new ssthresh for `flight` (4.6), at least two
// segments.
std::uint32_t cubic_cut(Cubic&, std::uint32_t cwnd, std::uint32_t flight, std::uint32_t smss,
                        bool timeout);
// A timeout caused the cut (4.8).
void cubic_timeout(Cubic&);
// The cut was unnecessary.
void cubic_undo(Cubic&);

}  // namespace urnic::tcp
