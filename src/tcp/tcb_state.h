// The state of one connection as plain data. Field names follow RFC 9293 3.3.1. Only the functions
// of tcp/tcb.h write it; drivers and tests may read all of it.
//
// Sequence numbers exist at the edge only: inside, both directions count bytes from the first one
// behind the SYN (StreamOffset), and SYN and FIN are flags.
#pragma once

#include <array>
#include <cstdint>

#include "base/stream_offset.h"
#include "base/time.h"
#include "tcp/challenge.h"
#include "tcp/config.h"
#include "tcp/congestion.h"
#include "tcp/holes.h"
#include "tcp/loss.h"
#include "tcp/rtt.h"
#include "tcp/scoreboard.h"
#include "tcp/tcb.h"

namespace urnic::tcp {

struct SendState {
  StreamOffset una, nxt;
  StreamOffset edge;      // SND.UNA + SND.WND of the last window update
  std::uint32_t wnd = 0;  // as last announced, bytes
  std::uint32_t max_wnd = 0;
  Seq iss;
  Seq wl1, wl2;                // SEG.SEQ and SEG.ACK of the last window update
  std::uint16_t mss = 536;     // options and payload of a segment we send
  std::uint16_t peer_mss = 0;  // as announced, 0 if not
  std::uint8_t wscale = 0;     // the peer's shift
  bool fin_wanted = false;     // shutdown_send() was called
  bool fin_sent = false;       // the FIN lies at `nxt`
  bool fin_acked = false;
  bool probe_out = false;  // the byte at `nxt` went out as a window probe; it is not counted
};

struct ReceiveState {
  HoleList holes;       // RCV.NXT and what lies beyond it
  StreamOffset adv;     // right edge of the largest window announced; never moves back
  StreamOffset offer;   // right edge of what the layer above can store
  StreamOffset fin_at;  // where the stream ends, if `fin_known`
  Seq irs;
  Seq last_ack_sent;  // Last.ACK.sent of RFC 7323
  std::uint32_t ts_recent = 0;
  std::uint32_t unacked = 0;  // bytes taken since the last ACK left
  Instant ts_recent_at;
  std::array<StreamOffset, 4> recent{};  // a byte of each block, the newest first (RFC 2018 4)
  std::uint8_t recent_count = 0;
  std::uint8_t wscale = 0;      // our shift
  std::uint8_t quick_acks = 0;  // segments still to be acknowledged at once
  bool ack_owed = false;        // something was taken that no ACK has told of
  bool ack_due = false;         // ... and it is time to tell
  bool fin_known = false;       // the FIN came, perhaps ahead of data
  bool fin_taken = false;       // ... and everything before it
  bool has_dsack = false;
  bool ece = false;         // echo congestion until the peer says CWR (RFC 3168 6.1.3)
  bool ece_next = false;    // DCTCP: what `ece` becomes once the owed ACK has left (RFC 8257 3.2)
  bool ece_turned = false;  // ... and the segment that changes it is acknowledged at once
  std::uint16_t largest = 536;  // largest payload seen: what "full-sized" means for this peer
  bool has_corrupted = false;
  StreamOffset dsack, dsack_end;          // the duplicate to report (RFC 2883)
  StreamOffset corrupted, corrupted_end;  // the segment to name (E-42)
};

struct Timers {
  Instant retransmit = Instant::never();
  Instant persist = Instant::never();
  Instant reorder = Instant::never();  // what RACK waits for before it holds more lost
  Instant delayed_ack = Instant::never();
  Instant held = Instant::never();  // what "more to come" holds back goes all the same
  Instant keepalive = Instant::never();
  Instant time_wait = Instant::never();
  Instant trim = Instant::never();           // give back what bulk transfer allocated
  Instant stalled_since = Instant::never();  // no progress since then, for the user timeout
  Instant last_received;                     // any acceptable segment
  Instant last_sent;                         // data
  std::uint8_t retries = 0;                  // expiries without progress
  std::uint8_t persist_backoff = 0;
  std::uint8_t keepalive_sent = 0;  // probes without an answer
};

struct Tcb {
  // ---- every segment
  State state = State::Closed;
  CloseReason close_reason = CloseReason::None;
  bool ts_on = false;         // timestamps agreed
  bool sack_on = false;       // SACK agreed
  bool ecn_on = false;        // ECN agreed
  bool naming_on = false;     // segments with a wrong CRC are named (E-42)
  bool passive = false;       // began with the peer's SYN
  bool from_cookie = false;   // the SYN-ACK left before there was this block
  bool syn_again = false;     // the SYN went twice because of the peer's old connection
  bool syn_lost = false;      // the timer had to send it again (RFC 5681 3.1, 6298 5.7)
  bool syn_repeated = false;  // ... or something else did: the round trip is not known (RFC 6298 3)
  bool syn_due = false;       // the next plan is the SYN or SYN-ACK
  bool held_due = false;      // the wait for more is over
  bool rst_due = false;       // the next plan is the RST, and the last
  bool probe_due = false;     // the persist timer asks for a window probe
  bool keepalive_due = false;
  bool cwr_due = false;        // tell the peer that its ECE was heard, on the next new data
  bool soft_error = false;     // an ICMP "unreachable" since the peer was heard: why it times out
  std::uint8_t syn_sent = 0;   // how often, saturating; repetitions on demand do not count
  std::uint8_t syn_acked = 0;  // our SYN is acknowledged
  SendState snd;
  ReceiveState rcv;
  Scoreboard sent_segments;
  Congestion cc;
  LossState loss;
  Rtt rtt;
  Timers timers;
  ChallengeLimiter challenge;
  Config config;
};

// ---- inline helpers shared by the functions of tcb.h ------------------------------------------

inline bool synchronized(State s) {
  return s >= State::Established;
}

// Sequence number of a byte we send; of the FIN when `off` is where the data ends.
inline Seq snd_seq(const Tcb& t, StreamOffset off) {
  return t.snd.iss + (1 + static_cast<std::uint32_t>(off.value()));
}
inline Seq snd_una_seq(const Tcb& t) {
  if (t.syn_acked == 0) return t.snd.iss;
  return snd_seq(t, t.snd.una) + (t.snd.fin_acked ? 1 : 0);
}
inline Seq snd_nxt_seq(const Tcb& t) {
  if (t.syn_sent == 0) return t.snd.iss;
  return snd_seq(t, t.snd.nxt) + (t.snd.fin_sent ? 1 : 0);
}
inline Seq rcv_seq(const Tcb& t, StreamOffset off) {
  return t.rcv.irs + (1 + static_cast<std::uint32_t>(off.value()));
}
// RCV.NXT as it goes into ACKs.
inline Seq rcv_nxt_seq(const Tcb& t) {
  return rcv_seq(t, t.rcv.holes.rcv_nxt()) + (t.rcv.fin_taken ? 1 : 0);
}
// FlightSize in sequence space.
inline std::uint32_t flight(const Tcb& t) {
  return static_cast<std::uint32_t>(t.snd.nxt - t.snd.una) +
         (t.snd.fin_sent && !t.snd.fin_acked ? 1u : 0u);
}
// The timestamp clock: 1 ms per tick (RFC 7323 5.4).
inline std::uint32_t ts_clock(const Tcb& t, Instant now) {
  return t.config.ts_offset + static_cast<std::uint32_t>(now.ns() / 1000000);
}

// ---- shared between the files of this room, not for drivers -------------------------------------

// The window field of a segment leaving now and the right edge it promises.
struct WindowNow {
  std::uint16_t field = 0;
  StreamOffset edge;
};
WindowNow window_now(const Tcb&);
// The SACK blocks a planned segment has room for.
std::uint32_t planned_blocks(const Tcb&, const SendPlan&);
// ... of a SYN, whose window is never scaled (RFC 7323 2.2).
WindowNow syn_window(const Tcb&);
// What every segment that carries an ACK changes when it has left, and what new data does besides
// what it adds to the scoreboard.
void ack_left(Tcb&, const WindowNow&);
void new_data_left(Tcb&, Instant now);
void arm_retransmit(Tcb&, Instant now);
// The connection is over: timers off, memory back.
void enter_closed(Tcb&, CloseReason);
void enter_time_wait(Tcb&, Instant now);
// Will an ACK with room for `blocks` SACK blocks report the duplicate? One above RCV.NXT needs a
// second block, the one that holds it, to be told from ordinary SACK (RFC 2883 4).
bool reports_dsack(const Tcb&, std::size_t blocks);
// ACK side of the states before Established; leaves the rest to take_ack.
void take_handshake(Tcb&, const Segment&, AckResult*, Instant now);
// Remember the peer's timestamp if RFC 7323 4.3 (2) allows.
void take_timestamp(Tcb&, const Segment&, Instant now);
void arm_keepalive(Tcb&, Instant now);
// The path takes less from here on: segments of `mss` bytes, options included.
void shrink_mss(Tcb&, std::uint32_t mss);
// What a peer takes that announces nothing, and what every path is sure to carry (RFC 9293 3.7.1).
std::uint16_t default_mss(const Config&);

}  // namespace urnic::tcp
