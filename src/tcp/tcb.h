// The interface of one TCP connection's control block, for drivers: the RNIC engine
// (src/engine) and the byte-stream stack (tcp/stack.h) both run exactly these functions.
//
// Nothing here reads a clock, allocates per segment, or performs I/O. A driver feeds segments in
// and asks what to send:
//
//   receive:  Check c = check(tcb, seg, now);           pure
//             AckResult a = take_ack(tcb, seg, c, now);  ACK side, for every acceptable segment
//             (E-4)
//             ... the layer above decides ...
//             Receipt r = commit(tcb, begin, end, fin, now)   data taken; or
//             refuse(tcb, ...)                                receive side unchanged (E-4, I-5)
//             if (r.ack == AckNeed::Now) { emit plan_ack(...) at once }
//   send:     while ((p = plan_send(tcb, avail, now)).kind != None) { cut, write header, sent(...)
//   } time:     next_deadline(tcb), on_deadline(tcb, now)
//
// All payload positions are StreamOffsets: bytes since the byte after the SYN, per direction.
#pragma once

#include <cstdint>

#include "base/stream_offset.h"
#include "base/time.h"
#include "tcp/config.h"
#include "tcp/holes.h"
#include "tcp/segment.h"
#include "tcp/seq.h"

namespace urnic::tcp {

enum class State : std::uint8_t {
  Closed,
  SynSent,
  SynReceived,
  Established,
  FinWait1,
  FinWait2,
  CloseWait,
  Closing,
  LastAck,
  TimeWait
};

// Why a connection ended, kept until read. None while alive or after an orderly close.
enum class CloseReason : std::uint8_t { None, Refused, Reset, TimedOut, Aborted, Unreachable };

struct Tcb;  // tcp/tcb_state.h; drivers hold it by value and read its public fields

// ---- opening and closing --------------------------------------------------------------------

// Start an active open: state SynSent; the next plan_send yields the SYN. `iss` from isn.h.
void open_active(Tcb&, const Config&, Seq iss, Instant now);
// A SYN for a listener: state SynReceived; the next plan_send yields the SYN-ACK. `syn` must have
// passed check_listen (stateless part, RFC 9293 3.10.7.2).
void open_passive(Tcb&, const Config&, Seq iss, const Segment& syn, Instant now);
// A connection whose SYN-ACK was a cookie (syn_cookie.h): as after open_passive() and the SYN-ACK's
// departure, of which no round trip is known. `syn` and `iss` are those of syn_of_cookie().
void open_from_cookie(Tcb&, const Config&, Seq iss, const Segment& syn, Instant now);
// No more data after what the source now holds: FIN follows its last byte. Idempotent.
void shutdown_send(Tcb&, Instant now);
// RST now: the next plan_send yields it (if the state needs one), then state Closed.
void abort(Tcb&, Instant now, CloseReason why = CloseReason::Aborted);

// ---- receiving ------------------------------------------------------------------------------

// What the sequence range of the payload is to what was received before.
enum class Arrival : std::uint8_t {
  None,        // no payload and no FIN
  InOrder,     // begins at RCV.NXT; disjoint from every out-of-order block (may end at one's edge)
  OutOfOrder,  // entirely new, begins beyond RCV.NXT, overlaps no block
  Duplicate,   // nothing new: wholly below RCV.NXT or inside received blocks
  Overlap,     // partly new
  HoleLimit,   // new, but would open one hole too many: a TCP decision
  Window,      // beyond the receive window in whole
};

enum class Action : std::uint8_t {
  Process,       // go on: take_ack, then the payload by `arrival`
  Discard,       // drop without an answer
  Ack,           // not acceptable: answer with an ACK (RFC 9293 3.10.7.4)
  ChallengeAck,  // RFC 5961: plan_ack(), if may_challenge() allows
  SynAck,        // the peer's SYN once more: plan_syn_ack(), if may_challenge() allows
  Rst,           // answer with reset_reply() (unsynchronised state, bad ACK)
  Reset,         // a valid RST came in: the connection is gone
};

struct Check {
  Action action = Action::Discard;
  Arrival arrival = Arrival::None;
  StreamOffset begin, end;          // payload, before trimming
  StreamOffset new_begin, new_end;  // the part inside the window and not below RCV.NXT
  bool fin = false;                 // FIN lies inside the window, right behind `end`
  bool ack_acceptable = false;
  bool fin_again = false;  // the FIN that was taken before: the peer has not heard of our ACK
};

// Pure. Works in every state but Closed.
Check check(const Tcb&, const Segment&, Instant now);

struct AckResult {
  bool established = false;  // SynSent/SynReceived -> Established happened here
  bool una_advanced = false;
  bool send_unblocked = false;  // plan_send may have something now
  bool closed = false;          // LastAck/Closing... finished: the state is Closed or TimeWait
  bool duplicate = false;       // a duplicate ACK (RFC 5681 2), or one with new SACK blocks
  bool ack_first = false;       // emit plan_ack() before the payload is looked at (RFC 8257 3.2)
  StreamOffset una;             // all bytes below are acknowledged cumulatively
};
// May one more challenge leave (RFC 5961 7, challenge.h)? Counts it if so.
bool may_challenge(Tcb&, Instant now);
// A valid RST came in (Action::Reset): state Closed, with a reason unless both FINs are
// acknowledged. Nothing is sent.
void take_reset(Tcb&, Instant now);
// The RST that Action::Rst asks for; ports are those of the segment turned round, the checksum is
// the emitter's business. The segment is none itself.
Segment reset_reply(const Tcb&, const Segment&, Instant now);
// It has been sent. In SYN-SENT it ends what the peer still has of
// an earlier connection (RFC 9293 3.5.1, figure 9): true when the SYN is to go again now, once, and
// not when the timer runs out.
bool after_reset_sent(Tcb&);

// ACK number, window, SACK blocks, RTT, TS.Recent, ECN; state changes caused by the ACK or a
// SYN-ACK. Must be called for every segment whose action is Process (E-4).
AckResult take_ack(Tcb&, const Segment&, const Check&, Instant now);

enum class AckNeed : std::uint8_t {
  None,
  Owed,  // in-order data: due at the end of the burst or by the delayed-ACK policy
  Now,   // out of order, gap filled, duplicate, window probe: its own ACK, at once (E-7)
};

struct Receipt {
  HoleEvent holes;  // what happened to the hole list, see holes.h
  StreamOffset rcv_nxt;
  bool fin = false;  // the FIN has been taken: end of stream
  AckNeed ack = AckNeed::None;
};
// Take [begin, end) as received (and FIN behind it when `fin` and it is in order). The range must
// be new in whole (a part of what check() called InOrder, OutOfOrder or Overlap). State changes
// by FIN happen here.
Receipt commit(Tcb&, StreamOffset begin, StreamOffset end, bool fin, bool psh, Instant now);

// The segment is not taken: no RCV.NXT move, no hole, no SACK block, FIN not taken (E-4, I-5).
// Returns the ACK that TCP itself owes for it: Duplicate, Overlap-all-old, Window and HoleLimit
// draw an ordinary duplicate ACK; a drop by the layer above (ulp = true) draws one only if
// `immediate_dup_ack` (R-57..R-65).
AckNeed refuse(Tcb&, const Check&, bool ulp, bool immediate_dup_ack, Instant now);

// The segment that refuse() is about to be called for has a right checksum and a wrong CRC: where
// both ends have agreed to it, the next pure ACK names it (E-42).
void note_corrupted(Tcb&, const Check&);

// Part of a segment that is about to be committed came before (Arrival::Overlap): its first run of
// such bytes is reported by D-SACK (RFC 2883 4.2). To be called before the new part is committed.
void note_duplicate_part(Tcb&, const Check&);

// Forget every out-of-order range (downgrade, Fig 5; R-44..R-51): they are no longer SACKed and
// are accepted as new when they come again.
void forget_out_of_order(Tcb&);

// Bytes the layer above can still store, counted from RCV.NXT. The advertised window follows it,
// never shrinks what was promised, and avoids silly windows. Returns true when a window update
// should be sent now.
bool set_receive_room(Tcb&, std::uint64_t bytes, Instant now);
// The same without an update of its own: segments that leave anyhow tell of it.
void offer_receive_room(Tcb&, std::uint64_t bytes);

// ---- sending --------------------------------------------------------------------------------

enum class Send : std::uint8_t { None, Syn, SynAck, Data, Retransmit, Probe, Ack, Fin, Rst };

struct SendPlan {
  Send kind = Send::None;
  StreamOffset begin;        // first payload byte
  std::uint32_t limit = 0;   // at most this many payload bytes (MSS, windows, SWS, Nagle applied)
  std::uint32_t header = 0;  // TCP header length with options this segment will have
  bool must_cut = false;     // window or MSS cannot hold a whole unit: cutting an FPDU is allowed
  bool fin = false;          // FIN goes with the last byte if all of [begin, source end) fits
  bool corrupted = false;    // an ACK that names a segment (E-42)
  bool repeated = false;     // SYN-ACK: because the peer asked again, not because it was lost
};

// What the source holds: bytes up to `end` may be asked for; `more` = the layer above will add to
// it at once (more-to-come: less than a segment waits, at most 200 ms).
struct SourceView {
  StreamOffset end;
  bool more = false;
};

// The next segment to send now, or None. Order: RST, SYN, retransmissions, new data (with an owed
// ACK riding along), FIN, probes, an owed ACK that is due. Does not change what is in flight; call
// sent() for that. A Retransmit plan has the original boundaries (E-24): begin and limit equal a
// segment sent before, unless the MSS has shrunk.
SendPlan plan_send(Tcb&, const SourceView&, Instant now);
// The pure ACK of this moment, with SACK blocks (newest first); used for AckNeed::Now.
SendPlan plan_ack(const Tcb&);
// The SYN-ACK for Action::SynAck. It says nothing of a loss: the timer goes on, nothing is counted.
SendPlan plan_syn_ack(const Tcb&);
// Is an ACK owed that no data segment has carried yet (flush before an immediate ACK, R-63)?
bool ack_owed(const Tcb&);
// End of a receive burst (E-7): the owed ACK becomes due, by policy. With `may_wait` one for less
// than two full segments (RFC 9293 3.8.6.3) does not, so that what is sent soon carries it: true
// then, and the caller calls acknowledge() when it has waited long enough.
bool end_of_burst(Tcb&, bool may_wait = false);
// What is owed is due now.
void acknowledge(Tcb&);

// Header for `plan` with `len` payload bytes whose unfolded Internet sum is `payload_sum`.
// `pseudo_sum` is the sum of the IP pseudo header's addresses and protocol; the TCP length is added
// here. Writes plan.header bytes to dst, checksum included; `*ect` receives the ECN codepoint for
// the IP header.
void write_header(const Tcb&, const SendPlan&, std::uint32_t len, bool psh, std::uint16_t src_port,
                  std::uint16_t dst_port, std::uint32_t pseudo_sum, std::uint32_t payload_sum,
                  Instant now, std::uint8_t* dst, std::uint8_t* ect);
// The segment left. Must follow each emitted plan (plan_ack included) before the next plan.
void sent(Tcb&, const SendPlan&, std::uint32_t len, bool psh, Instant now);

// Payload bytes one segment can carry now: EMSS of RFC 5044 (MSS less the options really sent;
// timestamps only, E-24).
std::uint32_t emss(const Tcb&);

// Path MTU news (RFC 1191, 8201; E-18: believed only if `quoted` is in flight). True if taken.
bool packet_too_big(Tcb&, std::uint32_t mtu, Seq quoted, Instant now);
// ICMP unreachable: hard errors end a connection only before it is established (RFC 5461).
void unreachable(Tcb&, bool hard, Seq quoted, Instant now);

// ---- time -----------------------------------------------------------------------------------

// Keep-alive from now on after `idle` without a word from the peer; zero: none (RFC 9293, 3.8.4).
void set_keepalive(Tcb&, Duration idle, Instant now);
// One keep-alive probe now, whatever the setting: the way to the peer has come back, and who is
// there may not be who was.
void probe_peer(Tcb&, Instant now);
// Earliest moment on_deadline has something to do; never() when idle.
Instant next_deadline(const Tcb&);
// Run every timer due at `now`: retransmission, persist, delayed ACK, TIME-WAIT, keepalive, user
// timeout. Afterwards plan_send may have work; state may be Closed with a CloseReason.
void on_deadline(Tcb&, Instant now);

}  // namespace urnic::tcp
