#include "tcp/rtt.h"

#include <algorithm>

namespace urnic::tcp {
namespace {

// G of RFC 6298. Deadlines have nanoseconds; drivers run the timers every millisecond.
constexpr Duration kGranularity = Duration::ms(1);

Duration bounded(Duration rto, const Config& c) {
  return std::min(std::max(rto, c.rto_min), c.rto_max);
}

}  // namespace

void rtt_open(Rtt& r, const Config& c) {
  r = Rtt{};
  r.rto = std::min(c.rto_initial, c.rto_max);
}

void rtt_sample(Rtt& r, const Config& c, Duration sample) {
  if (sample < Duration::zero()) return;
  // The timer was due long ago and has not expired, or expired once instead of many times. So the
  // timers did not run, and the ACK may have waited in a queue for hours. That is not a round trip.
  // (A sample across n expirations takes less than 2^(n+1) times the first timeout, which is twice
  // the latest one.)
  if (sample > std::max(r.rto * 2, Duration::s(1))) return;
  if (!r.measured) {
    r.srtt = sample;
    r.rttvar = sample / 2;
    r.measured = true;
  } else {
    const Duration error = r.srtt > sample ? r.srtt - sample : sample - r.srtt;
    r.rttvar = r.rttvar - r.rttvar / 4 + error / 4;
    r.srtt = r.srtt - r.srtt / 8 + sample / 8;
  }
  r.rto = bounded(r.srtt + std::max(kGranularity, r.rttvar * 4), c);
  r.backoff = 0;
}

void rtt_back_off(Rtt& r, const Config& c) {
  r.rto = std::min(r.rto * 2, c.rto_max);
  if (r.backoff < 255) ++r.backoff;
}

void rtt_after_syn_loss(Rtt& r, const Config& c) {
  if (r.measured) return;
  r.rto = std::min(Duration::s(3), c.rto_max);
  r.backoff = 0;
}

}  // namespace urnic::tcp
