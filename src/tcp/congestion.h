// Congestion window: what the network takes. The loss rules (loss.h) tell it what happened through
// the few events below; how the window answers is this file's business alone. The algorithms are a
// closed set: each event switches on `algorithm`, never per segment sent.
//
// All begin with the slow start of RFC 5681, left in time by HyStart++ (RFC 9406, hystart.h).
//
//   Reno, NewReno   RFC 5681; how fast recovery ends is loss.h's (6582)
//   Cubic           RFC 9438, cubic.h
//   Dctcp           RFC 8257 3.3, dctcp.h; losses as NewReno
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
  Mark,     // the network said so (RFC 3168 6.1.2)
  Timeout,  // the retransmission timer expired
};

struct Congestion {
  // ssthresh before the first loss: "arbitrarily high" (RFC 5681 3.1).
  static constexpr std::uint32_t kInfinite = 0x7fffffff;

  std::uint32_t cwnd = 0;
  std::uint32_t ssthresh = kInfinite;
  std::uint32_t smss = 536;   // payload bytes of a full segment
  std::uint32_t counted = 0;  // acknowledged since cwnd last grew in congestion avoidance
  // Most bytes in flight within the last window; a window that was not used proves nothing and is
  // not enlarged.
  std::uint32_t used = 0;
  StreamOffset used_until;
  CongestionControl algorithm = CongestionControl::NewReno;
  // Before the last cut, for when it turns out to have been for nothing (undo.h).
  std::uint32_t prior_cwnd = 0, prior_ssthresh = 0;
  HyStart hystart;
  union {  // the one that `algorithm` names
    Cubic cubic = {};
    Dctcp dctcp;
  };
};

// When something was acknowledged.
struct AckTime {
  Instant now;
  Duration srtt;  // zero before the first measurement
  // For slow start: what is in flight now, and what the newest segment took, zero if unknown.
  Duration rtt = Duration::zero();
  StreamOffset una = {}, nxt = {};
  // Several losses of one window are mended at once: finding the end of the path may cost some.
  bool sack = true;
};

// Bytes of the initial window: configured, else RFC 6928.
std::uint32_t initial_window(const Config&, std::uint32_t smss);

// The connection is open. `syn_lost`: the window begins with one segment (RFC 5681 3.1).
void cc_open(Congestion&, const Config&, std::uint32_t smss, bool syn_lost);
// New data left; [una, nxt) is in flight now.
void cc_sent(Congestion&, StreamOffset una, StreamOffset nxt);
// `bytes` newly acknowledged outside fast recovery.
void cc_acked(Congestion&, const Config&, std::uint32_t bytes, AckTime);
// `bytes` acknowledged by a segment with or without ECE, [una, nxt) in flight; on every ACK of a
// connection with ECN.
void cc_ecn_feedback(Congestion&, std::uint32_t bytes, bool ece, StreamOffset una,
                     StreamOffset nxt);
// Congestion was found with `flight` bytes in flight: new ssthresh; cwnd is left to the caller.
void cc_reduce(Congestion&, std::uint32_t flight, Cut);
// The retransmission timer expired in fast recovery: the window was cut for this already, and what
// is not acknowledged says nothing of what is in the network (RFC 5681 3.1 only bounds ssthresh).
void cc_timeout_in_recovery(Congestion&, std::uint32_t flight);
// The last cut was for nothing: the windows from before it, if they are the larger ones (RFC 9438
// 4.9.2, RFC 4015 3.2).
void cc_undo(Congestion&);
// Fast recovery begins (after cc_reduce): with SACK cwnd = ssthresh (RFC 6675 5 (4.2)), else three
// segments more, which have left the network (RFC 5681 3.2 step 3).
void cc_enter_recovery(Congestion&, bool sack);
// Without SACK: one more duplicate ACK (step 4); a partial ACK of `bytes` (RFC 6582 3.2 step 5).
void cc_inflate(Congestion&);
void cc_partial_ack(Congestion&, std::uint32_t bytes);
// Fast recovery is over with `flight` bytes in flight.
void cc_exit_recovery(Congestion&, bool sack, std::uint32_t flight);
// The retransmission timer expired: one segment (RFC 5681 3.1, the loss window).
void cc_timeout(Congestion&);
// Nothing was sent for longer than an RTO (RFC 5681 4.1).
void cc_restart(Congestion&, const Config&);

}  // namespace urnic::tcp
