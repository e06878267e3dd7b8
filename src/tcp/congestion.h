// Congestion window: what the network takes. The loss rules (loss.h) tell it what happened through
// the few events below; how the window answers is this file's business alone. One algorithm so
// far (RFC 5681 with the window arithmetic of RFC 6582); another one switches on `algorithm` inside
// the events, never per segment sent.
#pragma once

#include <cstdint>

#include "base/stream_offset.h"
#include "tcp/config.h"

namespace urnic::tcp {

struct Congestion {
  // ssthresh before the first loss: "arbitrarily high" (RFC 5681 3.1).
  static constexpr std::uint32_t kInfinite = 0x7fffffff;

  std::uint32_t cwnd = 0;
  std::uint32_t ssthresh = kInfinite;
  std::uint32_t smss = 536;   // payload octets of a full segment
  std::uint32_t counted = 0;  // acknowledged since cwnd last grew in congestion avoidance
  // Most octets in flight within the last window; a window that was not used proves nothing and is
  // not enlarged.
  std::uint32_t used = 0;
  StreamOffset used_until;
  CongestionControl algorithm = CongestionControl::NewReno;
};

// Octets of the initial window: configured, else RFC 6928.
std::uint32_t initial_window(const Config&, std::uint32_t smss);

// The connection is open. `syn_lost`: the window begins with one segment (RFC 5681 3.1).
void cc_open(Congestion&, const Config&, std::uint32_t smss, bool syn_lost);
// New data left; [una, nxt) is in flight now.
void cc_sent(Congestion&, StreamOffset una, StreamOffset nxt);
// `octets` newly acknowledged outside fast recovery.
void cc_acked(Congestion&, const Config&, std::uint32_t octets);
// A loss or a congestion mark was found with `flight` octets in flight: new ssthresh.
void cc_reduce(Congestion&, std::uint32_t flight);
// Fast recovery begins (after cc_reduce): with SACK cwnd = ssthresh (RFC 6675 5 (4.2)), else three
// segments more, which have left the network (RFC 5681 3.2 step 3).
void cc_enter_recovery(Congestion&, bool sack);
// Without SACK: one more duplicate ACK (step 4); a partial ACK of `octets` (RFC 6582 3.2 step 5).
void cc_inflate(Congestion&);
void cc_partial_ack(Congestion&, std::uint32_t octets);
// Fast recovery is over with `flight` octets in flight.
void cc_exit_recovery(Congestion&, bool sack, std::uint32_t flight);
// The retransmission timer expired: one segment (RFC 5681 3.1, the loss window).
void cc_timeout(Congestion&);
// Nothing was sent for longer than an RTO (RFC 5681 4.1).
void cc_restart(Congestion&, const Config&);

}  // namespace urnic::tcp
