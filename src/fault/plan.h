// The faults of a wire for the frames of one direction (E-37), or of a network below a stream of
// bytes (port = tcp). A value, written and parsed as
// "loss=0.01,reorder=0.02:3,delay=2ms,rate=500mbit,seed=7".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace urnic::fault {

enum class FaultKind : std::uint8_t {
  Loss,       // not delivered
  Duplicate,  // delivered twice in a row
  Reorder,    // delivered later than frames sent after it
  Corrupt,    // payload changed, TCP checksum corrected: only the MPA CRC detects it; for RoCE
              // any byte between BTH and ICRC
  BadSum,     // changed so that the TCP checksum is wrong
  Cut,        // one segment was cut into several
  Join,       // segments were joined, and possibly cut elsewhere
  Overflow,   // the queue of the line was full
  Mark,       // the queue of the line was long: CE, if the sender supports ECN (RFC 3168)
  // Only of streams.
  Stall,        // nothing passed for a time
  Reset,        // the connection was reset
  CloseWindow,  // nothing was read for a time
  Count
};
// The kinds before it are those of frames.
inline constexpr FaultKind kFirstStreamKind = FaultKind::Stall;
std::string_view fault_kind_name(FaultKind k);

// What a plan changes. Some faults exist only for one of them.
enum class Carrier : std::uint8_t { Frames, Stream };

// Probabilities are per eligible frame, 0..1, and independent, with two exceptions: a lost frame
// has no other fault, and Corrupt excludes BadSum. The frames of a stream are its records
// (stream_line.h).
struct FaultPlan {
  double loss = 0;
  std::uint32_t loss_burst = 1;  // consecutive frames lost by one loss
  double duplicate = 0;
  double reorder = 0;
  std::uint32_t reorder_frames = 3;  // frames that overtake it; 0: use reorder_delay
  Duration reorder_delay;            // delay it by this time instead
  double corrupt = 0;
  double bad_checksum = 0;
  double resegment = 0;
  Duration delay, jitter;      // every frame: delay + 0..jitter; the order is kept
  std::uint64_t rate_bps = 0;  // 0: no limit
  // bound: frames in a line with delay or rate; limit: `limit=`, 10000; beyond: new frames are
  // lost, counted; test: FaultLine.AFullQueueDropsNewFrames
  std::uint32_t limit = 10000;  // frames waiting in the line; more are lost (Overflow)
  Duration mark;                // mark frames that wait longer for the line; 0: none
  // Longest wait for a frame to reorder with or join to. Streams: between the pieces of a cut
  // record.
  Duration hold = Duration::ms(1);
  std::uint32_t mtu = 0;  // largest IP datagram made by joining; 0: the largest seen so far

  // Frames that are eligible for all faults except delay, jitter and rate: TCP segments and RoCE
  // packets with more payload than this; 0: every frame.
  std::uint32_t payload_only = 0;
  bool tcp_only = false;        // set by payload_only=: also for payload_only=0
  std::uint64_t after = 0;      // protect the first bytes of each TCP stream
  bool skip_handshake = false;  // protect SYNs, MPA Request and Reply; RoCE's queue pair 1

  // Exact faults: for the n-th eligible frame since the plan took effect, starting at 1.
  struct At {
    FaultKind kind = FaultKind::Loss;
    std::uint64_t frame = 1;
    bool operator==(const At&) const = default;
  };
  std::vector<At> at;
  // An exact cut makes the bytes [cut_from, cut_to) of the payload a segment of their own; cut_to
  // 0: at a random place.
  std::uint32_t cut_from = 0, cut_to = 0;

  // Only for streams.
  double stall = 0, reset = 0;
  double close_window = 0;  // per record received
  Duration stall_time = Duration::ms(500), window_time = Duration::ms(500);
  Duration rto = Duration::ms(200);  // a lost record arrives this much later

  std::uint64_t seed = 1;

  bool operator==(const FaultPlan&) const = default;
  // True if the plan changes nothing, so that a wrapper may be bypassed.
  bool idle() const;
  // The text that parses to this plan, without values that are at their default.
  std::string to_string() const;

  // Keys: loss=P[:FRAMES] dup=P reorder=P[:FRAMES|:TIME] corrupt=P badsum=P reseg=P delay=TIME
  // jitter=TIME rate=N[k|m|g]bit limit=FRAMES mark=TIME hold=TIME mtu=BYTES payload_only=BYTES
  // after=BYTES[k|m|g] skip_handshake[=on|off] at=KIND:N+KIND:N... cut_at=FROM-TO seed=N. TIME is
  // a number with ns, us, ms or s. Streams: without those that need frames, and with
  // stall=P[:TIME] reset=P close_window=P[:TIME] rto=TIME. The error is one line for the user.
  static Outcome<FaultPlan, std::string> parse(std::string_view text,
                                               Carrier carrier = Carrier::Frames);
};

}  // namespace urnic::fault
