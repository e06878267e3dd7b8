// The state of one connection as plain data. Field names follow RFC 9293 3.3.1. Only the functions
// of tcp/tcb.h write it; drivers and tests may read all of it.
//
// Sequence numbers exist only in segments. Inside, both directions count bytes from the first byte
// after the SYN (StreamOffset), and SYN and FIN are flags.
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
  std::uint32_t wnd = 0;  // last announced, bytes
  std::uint32_t max_wnd = 0;
  Seq iss;
  Seq wl1, wl2;                // SEG.SEQ and SEG.ACK of the last window update
  std::uint16_t mss = 536;     // options and payload of a segment we send
  std::uint16_t peer_mss = 0;  // announced by the peer, 0 if not
  std::uint8_t wscale = 0;     // the peer's shift
  bool fin_wanted = false;     // shutdown_send() was called
  bool fin_sent = false;       // the FIN lies at `nxt`
  bool fin_acked = false;
  bool probe_out = false;  // the byte at `nxt` went out as a window probe; it is not counted
};

struct ReceiveState {
  HoleList holes;       // RCV.NXT and the ranges beyond it
  StreamOffset adv;     // right edge of the largest window announced; never moves back
  StreamOffset offer;   // right edge of what the layer above can store
  StreamOffset fin_at;  // end of the stream, if `fin_known`
  Seq irs;
  Seq last_ack_sent;  // Last.ACK.sent of RFC 7323
  std::uint32_t ts_recent = 0;
  std::uint32_t unacked = 0;  // bytes accepted since the last ACK was sent
  Instant ts_recent_at;
  std::array<StreamOffset, 4> recent{};  // a byte of each block, the newest first (RFC 2018 4)
  std::uint8_t recent_count = 0;
  std::uint8_t wscale = 0;      // our shift
  std::uint8_t quick_acks = 0;  // segments still to be acknowledged at once
  bool ack_pending = false;     // something was accepted that no ACK has reported
  bool ack_due = false;         // ... and the ACK is due
  bool fin_known = false;       // the FIN arrived, perhaps before data in front of it
  bool fin_taken = false;       // ... and everything before it arrived
  bool has_dsack = false;
  bool ece = false;             // echo congestion until the peer sends CWR (RFC 3168 6.1.3)
  bool ece_next = false;        // DCTCP: the value of `ece` once the pending ACK was sent (RFC 8257
                                // 3.2)
  bool ece_turned = false;      // ... and the segment that changes it is acknowledged at once
  std::uint16_t largest = 536;  // largest payload seen: "full-sized" for this peer
  bool has_corrupted = false;
  StreamOffset dsack, dsack_end;          // the duplicate to report (RFC 2883)
  StreamOffset corrupted, corrupted_end;  // the segment to name (E-42)
};

struct Timers {
  Instant retransmit = Instant::never();
  Instant persist = Instant::never();
  Instant reorder = Instant::never();  // RACK may mark more segments as lost then
  Instant delayed_ack = Instant::never();
  Instant held = Instant::never();  // data held back by "more to come" is sent then
  Instant keepalive = Instant::never();
  Instant time_wait = Instant::never();
  Instant trim = Instant::never();           // free the memory that bulk transfer allocated
  Instant stalled_since = Instant::never();  // start of the time without progress, for the user
                                             // timeout
  Instant last_received;                     // any acceptable segment
  Instant last_sent;                         // data
  std::uint8_t retries = 0;                  // expirations without progress
  std::uint8_t persist_backoff = 0;
  std::uint8_t keepalive_sent = 0;  // unanswered probes
};

struct Tcb {
  // ---- every segment
  State state = State::Closed;
  CloseReason close_reason = CloseReason::None;
  bool ts_on = false;         // timestamps agreed
  bool sack_on = false;       // SACK agreed
  bool ecn_on = false;        // ECN agreed
  bool naming_on = false;     // segments with a wrong CRC are named (E-42)
  bool passive = false;       // opened by the peer's SYN
  bool from_cookie = false;   // the SYN-ACK was sent before this block existed
  bool syn_again = false;     // the SYN was sent twice because of the peer's old connection
  bool syn_lost = false;      // the timer had to resend it (RFC 5681 3.1, 6298 5.7)
  bool syn_repeated = false;  // ... or it was resent for another reason: the round trip is unknown
                              // (RFC 6298 3)
  bool syn_due = false;       // the next plan is the SYN or SYN-ACK
  bool held_due = false;      // the wait for more data is over
  bool rst_due = false;       // the next plan is the RST, and it is the last
  bool probe_due = false;     // the persist timer requests a window probe
  bool keepalive_due = false;
  bool cwr_due = false;        // tell the peer on the next new data that its ECE arrived
  bool soft_error = false;     // an ICMP "unreachable" arrived after the peer's last segment:
                               // reason of a timeout
  std::uint8_t syn_sent = 0;   // number of SYNs sent, saturating; repetitions for a repeated SYN do
                               // not count
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

// Sequence number of a byte we send, or of the FIN if `off` is the end of the data.
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
// RCV.NXT as sent in ACKs.
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

// ---- shared between the files of this folder, not for drivers -----------------------------------

// The window field of a segment leaving now and the right edge it promises.
struct WindowNow {
  std::uint16_t field = 0;
  StreamOffset edge;
};
WindowNow window_now(const Tcb&);
// The number of SACK blocks that fit into a planned segment.
std::uint32_t planned_blocks(const Tcb&, const SendPlan&);
// The window of a SYN, which is never scaled (RFC 7323 2.2).
WindowNow syn_window(const Tcb&);
// State changes after a segment with an ACK was sent; and after new data was sent, apart from the
// scoreboard.
void ack_left(Tcb&, const WindowNow&);
void new_data_left(Tcb&, Instant now);
void arm_retransmit(Tcb&, Instant now);
// Ends the connection: stops timers, frees memory.
void enter_closed(Tcb&, CloseReason);
void enter_time_wait(Tcb&, Instant now);
// True if an ACK with room for `blocks` SACK blocks reports the duplicate. A duplicate above
// RCV.NXT needs a second block, the one that contains it, to differ from an ordinary SACK (RFC 2883
// 4).
bool reports_dsack(const Tcb&, std::size_t blocks);
// ACK side of the states before Established. The caller, take_ack(), does the rest.
void take_handshake(Tcb&, const Segment&, AckResult*, Instant now);
// Stores the peer's timestamp if RFC 7323 4.3 (2) allows it.
void take_timestamp(Tcb&, const Segment&, Instant now);
void arm_keepalive(Tcb&, Instant now);
// The path now takes only segments of `mss` bytes, options included.
void shrink_mss(Tcb&, std::uint32_t mss);
// The MSS of a peer that announces none, which every path can carry (RFC 9293 3.7.1).
std::uint16_t default_mss(const Config&);

}  // namespace urnic::tcp
