// What a faulty wire does to the frames of one direction (E-37): a value, written and read as
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
  Reorder,    // delivered later than frames behind it
  Corrupt,    // payload changed, TCP checksum made right again: only the MPA CRC can tell; of RoCE
              // anything between BTH and ICRC
  BadSum,     // changed so that the TCP checksum is wrong
  Cut,        // one segment became several
  Join,       // segments were joined, perhaps cut elsewhere
  Overflow,   // the queue of the line was full
  Mark,       // the queue of the line was long: CE, where the sender takes part (RFC 3168)
  Count
};
std::string_view fault_kind_name(FaultKind k);

// Probabilities are per eligible frame, 0..1, and independent, except that a frame that is lost
// suffers nothing else and Corrupt excludes BadSum.
struct FaultPlan {
  double loss = 0;
  std::uint32_t loss_burst = 1;  // frames in a row once a loss happens
  double duplicate = 0;
  double reorder = 0;
  std::uint32_t reorder_frames = 3;  // pass so many others first; 0: by reorder_delay
  Duration reorder_delay;            // or be late by this
  double corrupt = 0;
  double bad_checksum = 0;
  double resegment = 0;
  Duration delay, jitter;      // every frame: delay + 0..jitter; order is kept
  std::uint64_t rate_bps = 0;  // 0: as fast as it comes
  // bound: frames in a line with delay or rate; limit: `limit=`, 10000; beyond: new frames are
  // lost, counted; test: FaultLine.AFullQueueLosesWhatComes
  std::uint32_t limit = 10000;      // frames waiting in the line; more are lost (Overflow)
  Duration mark;                    // who waits longer for the line is marked; 0: nobody is
  Duration hold = Duration::ms(1);  // longest wait for a frame to reorder with or join to
  std::uint32_t mtu = 0;  // largest IP datagram made by joining; 0: the largest seen so far

  // Which frames are eligible for all but delay, jitter and rate.
  // TCP segments and packets of RoCE with more payload than this; 0: every frame
  std::uint32_t payload_only = 0;
  bool tcp_only = false;        // set by payload_only=: also for payload_only=0
  std::uint64_t after = 0;      // spare the first bytes of each TCP stream
  bool skip_handshake = false;  // spare SYNs, MPA Request and Reply; RoCE's queue pair 1

  // Exact faults: the n-th eligible frame since the plan took force, counted from 1.
  struct At {
    FaultKind kind = FaultKind::Loss;
    std::uint64_t frame = 1;
    bool operator==(const At&) const = default;
  };
  std::vector<At> at;
  // An exact cut takes the bytes [cut_from, cut_to) of the payload for a segment of their own;
  // cut_to 0: anywhere.
  std::uint32_t cut_from = 0, cut_to = 0;

  std::uint64_t seed = 1;

  bool operator==(const FaultPlan&) const = default;
  // Changes nothing at all: a wrapper may step aside.
  bool idle() const;
  // The text that parses to this plan; what is at its default is left out.
  std::string to_string() const;

  // Keys: loss=P[:FRAMES] dup=P reorder=P[:FRAMES|:TIME] corrupt=P badsum=P reseg=P delay=TIME
  // jitter=TIME rate=N[k|m|g]bit limit=FRAMES mark=TIME hold=TIME mtu=BYTES payload_only=BYTES
  // after=BYTES[k|m|g] skip_handshake[=on|off] at=KIND:N+KIND:N... cut_at=FROM-TO seed=N. TIME is
  // a number with ns, us, ms or s. The error is one line for the user.
  static Outcome<FaultPlan, std::string> parse(std::string_view text);
};

}  // namespace urnic::fault
