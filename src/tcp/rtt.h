// Round-trip time and retransmission timeout (RFC 6298).
#pragma once

#include <cstdint>

#include "base/time.h"
#include "tcp/config.h"

namespace urnic::tcp {

struct Rtt {
  Duration srtt, rttvar;  // meaningless until `measured`
  Duration rto = Duration::s(1);
  bool measured = false;
  std::uint8_t backoff = 0;  // doublings in `rto` since the last measurement
};

// Initializes the state before any measurement (2.1).
void rtt_open(Rtt&, const Config&);
// A round trip took `r` (2.2, 2.3). Ends a back-off: only a sample shows the current round trip
// (note in 5.7).
void rtt_sample(Rtt&, const Config&, Duration r);
// The timer expired (5.5).
void rtt_back_off(Rtt&, const Config&);
// The SYN had to be resent and gave no sample (5.7).
void rtt_after_syn_loss(Rtt&, const Config&);

}  // namespace urnic::tcp
