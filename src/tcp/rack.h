// Time-based loss detection and tail loss probes (RFC 8985). RACK: a segment is lost if it was sent
// before one that has arrived, and is overdue by more than reordering explains. TLP: if nothing
// arrives for two round trips, one more segment is sent to get a reply before the retransmission
// timer expires. Both need SACK. Called by loss.cpp, timers.cpp and output.cpp only.
#pragma once

#include <cstdint>

#include "base/stream_offset.h"
#include "base/time.h"
#include "tcp/scoreboard.h"

namespace urnic::tcp {

struct Tcb;

struct Rack {
  // The segment sent last among those that have arrived (6.1).
  Instant sent_at;
  StreamOffset end;
  Duration rtt;
  // The shortest round trip of the last minutes. The allowance for reordering is a fraction of it.
  Duration min_rtt;
  Instant min_rtt_at;
  StreamOffset dsack_round;        // the window is not widened again before this is acknowledged
                                   // (6.2 step 4)
  std::uint64_t probe_end = 0;     // sequence space sent when the probe left, counted from the SYN
  std::uint32_t probe_flight = 0;  // most bytes in flight in the window before the probe
  bool any = false;                // some segment has arrived
  bool has_min_rtt = false;
  bool reordered = false;  // reordering was seen
  bool has_dsack_round = false;
  std::uint8_t widening = 1;  // reo_wnd_mult
  std::uint8_t persist = 0;   // recoveries until `widening` is one again
  bool probe_due = false;     // the next plan is the probe
  bool probe_out = false;     // `probe_end` is not acknowledged yet
  bool probe_again = false;   // ... and the probe was a retransmission
};

// Records what an ACK delivered, whether RACK is on or off. `highest_sacked`: the value before the
// ACK.
void rack_take(Tcb&, const Delivery&, StreamOffset highest_sacked, Instant now);
// A D-SACK arrived: a segment that was held lost was only late (6.2 step 4).
void rack_on_dsack(Tcb&);
// A recovery ended.
void rack_on_recovered(Tcb&);
// 6.2 step 5. Marks lost segments, and arms the reordering timer for those that soon may be lost.
// Returns true if it marked any.
bool rack_detect(Tcb&, Instant now);
// The retransmission timer expired (6.3): marks the oldest segment and all overdue ones as lost.
void rack_on_timeout(Tcb&, Instant now);

// Time at which the probe is due (7.2); never() if none is to be sent.
Instant probe_deadline(const Tcb&);
// The probe was sent. `again`: it was a retransmission, because there was no new data.
void probe_was_sent(Tcb&, bool again, Instant now);
// An ACK arrived, with or without a D-SACK. Returns true if the probe repaired a loss that nothing
// else reported (7.4.2), which means congestion.
bool probe_on_ack(Tcb&, bool dsack, bool plain_duplicate);

}  // namespace urnic::tcp
