// Loss detection and recovery: duplicate ACKs and fast recovery without SACK (RFC 5681 3.2, 6582,
// 3042); the SACK-based rules (RFC 6675, or RFC 8985 with Config::rack, rack.h); the part of the
// retransmission timeout (RFC 6298 5.4-5.6, RFC 5682); peers that renege (RFC 2018 8, E-27).
// Decides which data is lost and is resent. congestion.h and prr.h decide how much may be sent.
// Called by ack.cpp, timers.cpp and output.cpp only.
#pragma once

#include <array>
#include <cstdint>

#include "base/stream_offset.h"
#include "base/time.h"
#include "tcp/corruption.h"
#include "tcp/prr.h"
#include "tcp/rack.h"
#include "tcp/segment.h"
#include "tcp/undo.h"

namespace urnic::tcp {

struct Tcb;

enum class Recovery : std::uint8_t {
  Open,      // no sign of loss
  Disorder,  // duplicate ACKs or SACKed data, but not enough to act
  Cwr,       // cwnd was reduced for a congestion mark; ends when the data then in flight is
             // acknowledged
  Recovery,  // fast recovery
  Loss,      // after a retransmission timeout; ends when the data then in flight is acknowledged
};

struct LossState {
  Recovery state = Recovery::Open;
  std::uint8_t dup_acks = 0;    // in a row, saturating
  bool has_recover = false;     // `recover` is meaningful
  bool force = false;           // the next retransmission leaves, whatever cwnd is
  bool has_rescue = false;      // `rescue` is meaningful
  bool any_sacked = false;      // `highest_sacked` is meaningful
  bool partial = false;         // without SACK: this fast recovery has seen a partial ACK
  bool impatient = false;       // ... and later ones do not restart the timer (RFC 6582 3.2 step 5)
  StreamOffset recover;         // RecoveryPoint: one past the highest byte sent when loss was found
  StreamOffset highest_sacked;  // one past the highest SACKed byte
  StreamOffset lost_edge;       // below it every entry has been judged by IsLost()
  StreamOffset high_rxt;        // HighRxt: entries below it had their turn
  StreamOffset rescue;          // RescueRxt
  // The SACK blocks of the latest ACK. Their ranges are marked already.
  std::array<SackBlock, 4> seen{};
  std::uint8_t seen_count = 0;
  // How many duplicate ACKs, or segments SACKed above a segment, mean that it is lost: DupThresh,
  // or more if larger reordering was seen.
  std::uint8_t reordering = 3;
  // Without SACK, in fast recovery: `arrived` counts duplicate ACKs, each for a segment above
  // SND.UNA. `echoes` is how many can come before one must be for a segment sent after the last
  // retransmission.
  std::uint32_t arrived = 0, echoes = 0;
  Corruption corruption;
  Prr prr;
  Rack rack;
  Undo undo;
};

struct SackNews {
  std::uint32_t fresh = 0;  // bytes newly SACKed
  bool duplicate = false;   // there was a D-SACK block (RFC 2883)
};

// The effect of an ACK on our data.
struct AckNews {
  std::uint32_t bytes = 0;  // how far SND.UNA advanced, in sequence space
  bool plain = false;       // a duplicate by RFC 5681 2
  SackNews sack;
  Delivery delivered;
};

// Enters the segment's SACK blocks into the scoreboard. Call it after SND.UNA was moved.
SackNews loss_take_sack(Tcb&, const Segment&, Delivery*);
// SND.UNA advanced.
void loss_on_progress(Tcb&, const Segment&, const AckNews&, Instant now);
// An ACK with the same acknowledgement number arrived.
void loss_on_same_ack(Tcb&, const Segment&, const AckNews&, Instant now);
// The retransmission timer expired. `first`: for the first time for this data.
void loss_on_timeout(Tcb&, bool first, Instant now);
// The reordering timer expired (RFC 8985 6.2).
void loss_on_reordering_timer(Tcb&, Instant now);
// The peer dropped data it had SACKed: the entry at SND.UNA is marked as SACKed.
void loss_on_reneging(Tcb&);
// A congestion mark was reported (RFC 3168 6.1.2).
void loss_on_ecn_echo(Tcb&);
// The path MTU shrank: segments that no longer fit are resent in smaller pieces.
void loss_on_smaller_mss(Tcb&);

// Bytes assumed to be in the network (RFC 6675 pipe).
std::uint32_t loss_pipe(const Tcb&);
// Bytes beyond cwnd that limited transmit allows (RFC 3042).
std::uint32_t loss_limited_transmit(const Tcb&);
// NextSeg (RFC 6675 4), split at the point where new data is preferred: rule 1 before it, rules 3
// and 4 after it. Returns an index into the scoreboard, or its size if there is no such segment.
std::size_t loss_next_lost(Tcb&);
std::size_t loss_next_unsure(Tcb&);
// The first `len` bytes of entry `i` were resent.
void loss_retransmitted(Tcb&, std::size_t i, std::uint32_t len, Instant now);

}  // namespace urnic::tcp
