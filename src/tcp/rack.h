// Time-based loss detection and tail loss probes (RFC 8985). RACK: what was sent before something
// that has arrived, and is overdue by more than reordering explains, is lost. TLP: when nothing is
// heard for two round trips, one segment more asks for an answer before the retransmission timer
// has to. Both need SACK. Called by loss.cpp, timers.cpp and output.cpp only.
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
  // Least round trip of the last minutes; what reordering is allowed is a part of it.
  Duration min_rtt;
  Instant min_rtt_at;
  StreamOffset dsack_round;        // no second widening before this is acknowledged (6.2 step 4)
  std::uint64_t probe_end = 0;     // sequence space sent when the probe left, counted from the SYN
  std::uint32_t probe_flight = 0;  // most bytes in flight in the window before it
  bool any = false;                // something has arrived
  bool has_min_rtt = false;
  bool reordered = false;  // reordering was seen
  bool has_dsack_round = false;
  std::uint8_t widening = 1;  // reo_wnd_mult
  std::uint8_t persist = 0;   // recoveries until it is one again
  bool probe_due = false;     // the next plan is the probe
  bool probe_out = false;     // `probe_end` is not acknowledged yet
  bool probe_again = false;   // ... and the probe was a retransmission
};

// What an ACK delivered is news of the path, RACK on or off. `highest_sacked` is as before the ACK.
void rack_take(Tcb&, const Delivery&, StreamOffset highest_sacked, Instant now);
// A D-SACK came: what was held lost was only late (6.2 step 4).
void rack_on_dsack(Tcb&);
// A recovery is over.
void rack_on_recovered(Tcb&);
// 6.2 step 5. Marks what is lost; arms the reordering timer for what soon may be. True if anything
// was marked.
bool rack_detect(Tcb&, Instant now);
// The retransmission timer expired (6.3): the oldest segment is lost, and all that are overdue.
void rack_on_timeout(Tcb&, Instant now);

// When the probe is due (7.2); never() when none is to be sent.
Instant probe_deadline(const Tcb&);
// The probe left; `again`: no new data was to be had.
void probe_was_sent(Tcb&, bool again, Instant now);
// An ACK came, with a D-SACK or not. True when the probe has repaired a loss that nothing else told
// of (7.4.2): congestion, then.
bool probe_on_ack(Tcb&, bool dsack, bool plain_duplicate);

}  // namespace urnic::tcp
