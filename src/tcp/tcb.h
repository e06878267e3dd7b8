// The interface of one TCP connection's control block, for its hosts: the RNIC engine (src/engine)
// and the byte-stream stack (tcp/stack.h) both run exactly these functions.
//
// No function here reads a clock, allocates memory per segment, or performs I/O. The host passes
// segments in and gets plans of what to send:
//
//   receive:  Check c = check(tcb, seg, now);            changes nothing
//             AckResult a = take_ack(tcb, seg, c, now);  for every acceptable segment (E-4)
//             ... the layer above decides ...
//             Receipt r = commit(tcb, begin, end, fin, now)   data accepted; or
//             refuse(tcb, ...)                                receive side unchanged (E-4, I-5)
//             if (r.ack == AckNeed::Now) { emit plan_ack(...) at once }
//   send:     while ((p = plan_send(tcb, avail, now)).kind != None) { cut, write, sent(...) }
//   time:     next_deadline(tcb), on_deadline(tcb, now)
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

// Why a connection ended, kept until it is read. None while it is open or after an orderly close.
enum class CloseReason : std::uint8_t { None, Refused, Reset, TimedOut, Aborted, Unreachable };

struct Tcb;  // tcp/tcb_state.h; drivers hold it by value and read its public fields

// ---- opening and closing --------------------------------------------------------------------

// Starts an active open: state SynSent. The next plan_send() returns the SYN. `iss` from isn.h.
void open_active(Tcb&, const Config&, Seq iss, Instant now);
// Opens a connection for a listener's SYN: state SynReceived. The next plan_send() returns the
// SYN-ACK. `syn` must have passed check_listen() (the stateless part, RFC 9293 3.10.7.2).
void open_passive(Tcb&, const Config&, Seq iss, const Segment& syn, Instant now);
// Opens a connection whose SYN-ACK was a cookie (syn_cookie.h). The state is as after
// open_passive() and sending the SYN-ACK, but the round trip is unknown. `syn` and `iss` are those
// of syn_of_cookie().
void open_from_cookie(Tcb&, const Config&, Seq iss, const Segment& syn, Instant now);
// No data follows what the source now holds: the FIN follows its last byte. Idempotent.
void shutdown_send(Tcb&, Instant now);
// Aborts the connection: the next plan_send() returns the RST (if the state needs one), then the
// state is Closed.
void abort(Tcb&, Instant now, CloseReason why = CloseReason::Aborted);

// ---- receiving ------------------------------------------------------------------------------

// How the sequence range of the payload relates to what was received before.
enum class Arrival : std::uint8_t {
  None,        // no payload and no FIN
  InOrder,     // begins at RCV.NXT; disjoint from every out-of-order block (may end at one's edge)
  OutOfOrder,  // entirely new, begins beyond RCV.NXT, overlaps no block
  Duplicate,   // all received before: below RCV.NXT or inside received blocks
  Overlap,     // partly new
  HoleLimit,   // new, but would open one hole too many; TCP decides this
  Window,      // entirely beyond the receive window
};

enum class Action : std::uint8_t {
  Process,       // continue with take_ack(), then the payload by `arrival`
  Discard,       // drop without a reply
  Ack,           // not acceptable: reply with an ACK (RFC 9293 3.10.7.4)
  ChallengeAck,  // RFC 5961: plan_ack(), if may_challenge() allows
  SynAck,        // the peer's SYN again: plan_syn_ack(), if may_challenge() allows
  Rst,           // reply with reset_reply() (unsynchronised state, bad ACK)
  Reset,         // a valid RST arrived: the connection is gone
};

struct Check {
  Action action = Action::Discard;
  Arrival arrival = Arrival::None;
  StreamOffset begin, end;          // payload, before trimming
  StreamOffset new_begin, new_end;  // the part inside the window and not below RCV.NXT
  bool fin = false;                 // FIN lies inside the window, directly after `end`
  bool ack_acceptable = false;
  bool fin_again = false;  // the same FIN again: the peer has not received our ACK
};

// Changes nothing. Works in every state but Closed.
Check check(const Tcb&, const Segment&, Instant now);

struct AckResult {
  bool established = false;  // SynSent/SynReceived -> Established happened here
  bool una_advanced = false;
  bool send_unblocked = false;  // plan_send() may have something to send now
  bool closed = false;          // LastAck/Closing... finished: the state is Closed or TimeWait
  bool duplicate = false;       // a duplicate ACK (RFC 5681 2), or one with new SACK blocks
  bool ack_first = false;       // emit plan_ack() before the payload is processed (RFC 8257 3.2)
  StreamOffset una;             // all bytes below are acknowledged cumulatively
};
// Returns true if one more challenge ACK may be sent (RFC 5961 7, challenge.h), and counts it.
bool may_challenge(Tcb&, Instant now);
// A valid RST arrived (Action::Reset): state Closed, with a reason unless both FINs are
// acknowledged. Sends nothing.
void take_reset(Tcb&, Instant now);
// The RST for Action::Rst. Its ports are those of the segment, swapped; the caller that emits it
// computes the checksum. Do not call this for a segment that is itself a RST.
Segment reset_reply(const Tcb&, const Segment&, Instant now);
// Call this after the RST of reset_reply() was sent. In SYN-SENT that RST ends the peer's half of
// an earlier connection (RFC 9293 3.5.1, figure 9). Returns true, once, if the SYN should be resent
// now instead of when the timer expires.
bool after_reset_sent(Tcb&);

// Processes ACK number, window, SACK blocks, RTT, TS.Recent and ECN, and the state changes caused
// by the ACK or a SYN-ACK. Must be called for every segment whose action is Process (E-4).
AckResult take_ack(Tcb&, const Segment&, const Check&, Instant now);

enum class AckNeed : std::uint8_t {
  None,
  Pending,  // in-order data: due at the end of the burst or by the delayed-ACK policy
  Now,      // out of order, gap filled, duplicate, window probe: its own ACK, at once (E-7)
};

struct Receipt {
  HoleEvent holes;  // the change of the hole list, see holes.h
  StreamOffset rcv_nxt;
  bool fin = false;  // the FIN was accepted: end of stream
  AckNeed ack = AckNeed::None;
};
// Accepts [begin, end) as received, and the FIN after it if `fin` and it is in order. The whole
// range must be new (a part of what check() called InOrder, OutOfOrder or Overlap). The state
// changes caused by a FIN happen here.
Receipt commit(Tcb&, StreamOffset begin, StreamOffset end, bool fin, bool psh, Instant now);

// Rejects the segment: RCV.NXT, holes, SACK blocks and FIN state do not change (E-4, I-5). Returns
// the ACK that TCP itself must send for it. Duplicate, Overlap with only old bytes, Window and
// HoleLimit cause an ordinary duplicate ACK; a drop by the layer above (ulp = true) causes one only
// if `immediate_dup_ack` (R-57..R-65).
AckNeed refuse(Tcb&, const Check&, bool ulp, bool immediate_dup_ack, Instant now);

// Call this before refuse() for a segment with a correct checksum and a wrong CRC. If both ends
// have agreed to it, the next pure ACK names the segment (E-42).
void note_corrupted(Tcb&, const Check&);

// Part of a segment was received before (Arrival::Overlap): D-SACK will report the first run of
// such bytes (RFC 2883 4.2). Call this before the new part is committed.
void note_duplicate_part(Tcb&, const Check&);

// Forgets every out-of-order range (downgrade, Fig 5; R-44..R-51): they are no longer SACKed, and
// are accepted as new when they arrive again.
void forget_out_of_order(Tcb&);

// Sets the bytes the layer above can still store, counted from RCV.NXT. The advertised window
// follows it, never shrinks below what was promised, and avoids silly windows. Returns true if a
// window update should be sent now.
bool set_receive_room(Tcb&, std::uint64_t bytes, Instant now);
// The same without requesting a window update: the next segments carry it.
void offer_receive_room(Tcb&, std::uint64_t bytes);

// ---- sending --------------------------------------------------------------------------------

enum class Send : std::uint8_t { None, Syn, SynAck, Data, Retransmit, Probe, Ack, Fin, Rst };

struct SendPlan {
  Send kind = Send::None;
  StreamOffset begin;        // first payload byte
  std::uint32_t limit = 0;   // at most this many payload bytes (MSS, windows, SWS, Nagle applied)
  std::uint32_t header = 0;  // TCP header length with options this segment will have
  bool must_cut = false;     // the window or MSS cannot hold a whole unit: an FPDU may be cut
  bool fin = false;          // FIN goes with the last byte if all of [begin, source end) fits
  bool corrupted = false;    // an ACK that names a segment (E-42)
  bool repeated = false;     // SYN-ACK: the peer sent its SYN again; nothing was lost
};

// The bytes in the source: those up to `end` may be sent. `more`: the layer above will add data at
// once (more-to-come: less than a segment waits, at most 200 ms).
struct SourceView {
  StreamOffset end;
  bool more = false;
};

// The next segment to send now, or None. Order: RST, SYN, retransmissions, new data (which carries
// a pending ACK), FIN, probes, a pending ACK that is due. Does not change what is in flight; call
// sent() for that. A Retransmit plan keeps the original boundaries (E-24): begin and limit equal
// those of a segment sent before, unless the MSS has shrunk.
SendPlan plan_send(Tcb&, const SourceView&, Instant now);
// The current pure ACK, with SACK blocks (newest first). Used for AckNeed::Now.
SendPlan plan_ack(const Tcb&);
// The SYN-ACK for Action::SynAck. It does not indicate a loss: the timer continues, and no retry is
// counted.
SendPlan plan_syn_ack(const Tcb&);
// True if an ACK is pending that no data segment has carried yet (send it before an immediate ACK,
//
bool ack_pending(const Tcb&);
// End of a receive burst (E-7): the pending ACK becomes due, depending on the policy. With
// `may_wait`, an ACK for less than two full segments (RFC 9293 3.8.6.3) does not, so that the next
// data can carry it. Returns true in that case, and the caller calls acknowledge() after it has
// waited long enough.
bool end_of_burst(Tcb&, bool may_wait = false);
// Makes the pending ACK due now.
void acknowledge(Tcb&);

// Header for `plan` with `len` payload bytes whose unfolded Internet sum is `payload_sum`.
// `pseudo_sum` is the sum of the IP pseudo header's addresses and protocol; the TCP length is added
// here. Writes plan.header bytes to dst, checksum included; `*ect` receives the ECN codepoint for
// the IP header.
void write_header(const Tcb&, const SendPlan&, std::uint32_t len, bool psh, std::uint16_t src_port,
                  std::uint16_t dst_port, std::uint32_t pseudo_sum, std::uint32_t payload_sum,
                  Instant now, std::uint8_t* dst, std::uint8_t* ect);
// The segment was sent. Must be called for each emitted plan (also plan_ack()) before the next
// plan.
void sent(Tcb&, const SendPlan&, std::uint32_t len, bool psh, Instant now);

// Payload bytes that one segment can carry now: EMSS of RFC 5044 (MSS minus the options really
// sent; timestamps only, E-24).
std::uint32_t emss(const Tcb&);

// A new path MTU was reported (RFC 1191, 8201; E-18: accepted only if `quoted` is in flight). True
// if accepted.
bool packet_too_big(Tcb&, std::uint32_t mtu, Seq quoted, Instant now);
// ICMP unreachable. Hard errors end a connection only before it is established (RFC 5461).
void unreachable(Tcb&, bool hard, Seq quoted, Instant now);

// ---- time -----------------------------------------------------------------------------------

// Sets keepalive from now on: probes after the peer was silent for `idle`. Zero: off (RFC 9293,
// 3.8.4).
void set_keepalive(Tcb&, Duration idle, Instant now);
// Sends one keepalive probe now, whatever the setting. Use it when the path to the peer has come
// back: another host may have the address now.
void probe_peer(Tcb&, Instant now);
// The earliest time at which on_deadline() has something to do; never() if idle.
Instant next_deadline(const Tcb&);
// Runs every timer due at `now`: retransmission, persist, delayed ACK, TIME-WAIT, keepalive, user
// timeout. Afterwards plan_send() may have something to send, and the state may be Closed with a
// CloseReason.
void on_deadline(Tcb&, Instant now);

}  // namespace urnic::tcp
