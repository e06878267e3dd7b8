// The window growth of CUBIC (RFC 9438): a cubic function of the time since the last cut, with the
// plateau at the window where that cut came. Bytes and milliseconds in whole numbers, so that runs
// repeat on every machine. Called by congestion.cpp only.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::tcp {

// Plain data, so that it can share its place with other algorithms'. All zero is the beginning.
struct Cubic {
  std::uint32_t w_max;       // bytes: the window before the last cut, or less (4.7)
  std::uint32_t w_est;       // what Reno would have by now (4.3)
  std::uint32_t w_prior;     // cwnd at the last cut: from there on w_est is Reno's own; 0: no cut
  std::uint32_t k_ms;        // how long from the epoch to the plateau (4.2)
  std::uint64_t est_credit;  // remainders of the divisions
  std::uint64_t grow_credit;
  std::int64_t epoch_ns;  // when this avoidance stage began, less the time it stood still
  std::int64_t seen_ns;   // the last ACK
  bool running;           // an avoidance stage has begun
  bool after_timeout;     // ... or the one to come follows a timeout (4.8)
  // Before the last cut (4.9).
  std::uint32_t old_w_max;
};

// Bytes cwnd grows by for `acked` bytes in congestion avoidance (4.4, 4.5). `no_queue`: round
// trips are known to be no longer than on an idle path.
std::uint32_t cubic_growth(Cubic&, std::uint32_t cwnd, std::uint32_t smss, std::uint32_t acked,
                           Instant now, Duration srtt, bool no_queue);
// Call it for an ACK that must not enlarge the window: the time since the last ACK does not count
// (4.2).
void cubic_exclude_interval(Cubic&, Instant now);
// The window is cut at `cwnd` (4.7). Returns the new ssthresh for `flight` (4.6), at least two
// segments.
std::uint32_t cubic_cut(Cubic&, std::uint32_t cwnd, std::uint32_t flight, std::uint32_t smss,
                        bool timeout);
// A timeout follows the cut (4.8).
void cubic_timeout(Cubic&);
// The cut was for nothing.
void cubic_undo(Cubic&);

}  // namespace urnic::tcp
