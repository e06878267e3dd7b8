// Congestion window: how much data the network may hold. The loss rules (loss.h) report what
// happened through the few events below, and this file alone decides how the window reacts. The set
// of algorithms is closed: each event switches on `algorithm`, and no switch runs per segment sent.
//
// All begin with the slow start of RFC 5681, which HyStart++ ends early (RFC 9406, hystart.h).
//
//   Reno, NewReno   RFC 5681; loss.h decides how fast recovery ends (RFC 6582)
//   Cubic           RFC 9438, cubic.h
//   Dctcp           RFC 8257 3.3, dctcp.h; losses as with NewReno
#pragma once

#include <cstdint>

#include "base/stream_offset.h"
#include "base/time.h"
#include "tcp/config.h"
#include "tcp/cubic.h"
#include "tcp/dctcp.h"
#include "tcp/hystart.h"

namespace urnic::tcp {

// Why the window is cut.
enum class Cut : std::uint8_t {
  Loss,     // found by duplicate ACKs, SACK or RACK
  Mark,     // the network marked a packet (RFC 3168 6.1.2)
  Timeout,  // the retransmission timer expired
};

struct Congestion {
  // ssthresh before the first loss: "arbitrarily high" (RFC 5681 3.1).
  static constexpr std::uint32_t kInfinite = 0x7fffffff;

  std::uint32_t cwnd = 0;
  std::uint32_t ssthresh = kInfinite;
  std::uint32_t smss = 536;   // payload bytes of a full segment
  std::uint32_t counted = 0;  // bytes acknowledged since cwnd last grew in congestion avoidance
  // Most bytes in flight within the last window. A window that was not used proves nothing and is
  // not enlarged.
  std::uint32_t used = 0;
  StreamOffset used_until;
  CongestionControl algorithm = CongestionControl::NewReno;
  // The values before the last cut, restored if the cut was unnecessary (undo.h).
  std::uint32_t prior_cwnd = 0, prior_ssthresh = 0;
  HyStart hystart;
  union {  // the member that `algorithm` selects
    Cubic cubic = {};
    Dctcp dctcp;
  };
};

// The time of an acknowledgement.
struct AckTime {
  Instant now;
  Duration srtt;  // zero before the first measurement
  // For slow start: what is in flight now, and the round trip of the newest segment (zero if
  // unknown).
  Duration rtt = Duration::zero();
  StreamOffset una = {}, nxt = {};
  // Several losses of one window are repaired at once, so searching for the limit of the path may
  // cause some.
  bool sack = true;
};

// Bytes of the initial window: the configured value, else RFC 6928.
std::uint32_t initial_window(const Config&, std::uint32_t smss);

// Called when the connection opens. `syn_lost`: the window begins with one segment (RFC 5681 3.1).
void cc_open(Congestion&, const Config&, std::uint32_t smss, bool syn_lost);
// New data was sent; [una, nxt) is in flight now.
void cc_sent(Congestion&, StreamOffset una, StreamOffset nxt);
// `bytes` were newly acknowledged outside fast recovery.
void cc_acked(Congestion&, const Config&, std::uint32_t bytes, AckTime);
// A segment with or without ECE acknowledged `bytes`; [una, nxt) is in flight. Called for every ACK
// of a connection with ECN.
void cc_ecn_feedback(Congestion&, std::uint32_t bytes, bool ece, StreamOffset una,
                     StreamOffset nxt);
// Congestion was found with `flight` bytes in flight. Sets a new ssthresh; the caller sets cwnd.
void cc_reduce(Congestion&, std::uint32_t flight, Cut);
// The retransmission timer expired in fast recovery. The window was already cut for this loss, and
// the unacknowledged bytes do not tell how many are in the network (RFC 5681 3.1 only bounds
// ssthresh).
void cc_timeout_in_recovery(Congestion&, std::uint32_t flight);
// The last cut was unnecessary. Restores the windows from before it, if they are larger (RFC 9438
// 4.9.2, RFC 4015 3.2).
void cc_undo(Congestion&);
// Fast recovery begins (after cc_reduce). With SACK, cwnd = ssthresh (RFC 6675 5 (4.2)); without,
// add the three segments that have left the network (RFC 5681 3.2 step 3).
void cc_enter_recovery(Congestion&, bool sack);
// Without SACK: one more duplicate ACK (RFC 5681 3.2 step 4); a partial ACK of `bytes` (RFC 6582
// 3.2 step 5).
void cc_inflate(Congestion&);
void cc_partial_ack(Congestion&, std::uint32_t bytes);
// Fast recovery ended with `flight` bytes in flight.
void cc_exit_recovery(Congestion&, bool sack, std::uint32_t flight);
// The retransmission timer expired: cwnd becomes one segment (RFC 5681 3.1, the loss window).
void cc_timeout(Congestion&);
// The connection sent no data for longer than an RTO (RFC 5681 4.1).
void cc_restart(Congestion&, const Config&);

}  // namespace urnic::tcp
