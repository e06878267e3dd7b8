// The counterpart of Observer (observer.h) for two queue pairs of RoCE. It checks both after every
// step and at every packet, and records what changed. It never changes them.
//
// The left queue pair is the requester, the right one the responder, whatever the direction of the
// data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "roce/context.h"
#include "sim/observer.h"
#include "sim/packet_watch.h"
#include "sim/recorder.h"

namespace urnic::sim {

// One row of the timeline. PSNs count from the requester's first one, without wrapping around.
enum RoceColumn : std::uint8_t {
  kRoceTime,     // ns
  kRoceFast,     // 1: the responder is FAST
  kPsnSent,      // next after the highest PSN the requester has used
  kPsnFurthest,  // responder: next after the highest PSN it has accepted or keeps
  kPsnInOrder,   // responder: expected PSN; for Reads: the requester's oldest unanswered
  kRoceDelivered,
  kHeld,        // packets kept for a gap or a missing receive; the most since the last
  kHeldBytes,   // memory for them
  kNotKept,     // out-of-sequence packets that were dropped
  kDuplicates,  // packets received before
  kSequenceNaks,
  kRnrNaks,
  kRepeated,    // packets retransmitted by the requester
  kRoceFlight,  // unacknowledged PSNs
  kWindow,      // packets that may be in flight (S-10)
  kMarks,       // packets received with a CE mark
  kRoceColumns
};

// Results of a run that the counters of the queue pairs do not show.
struct RoceObserved {
  std::vector<Duration> repairs;  // from the detection of a gap until it closed
  std::uint64_t most_held = 0, most_held_bytes = 0;
  std::uint64_t rnr_waits = 0, sent_in_waits = 0;
  Duration longest_rnr_wait;
  std::uint64_t bad_icrc = 0;  // packets dropped for a bad ICRC, both nodes
  std::uint64_t drained = 0;   // drained events of the left queue pair
  // 1: the left queue pair was in Sqe. Datagrams that it received in Sqe, and otherwise.
  std::uint64_t sqe = 0, came_in_sqe = 0, came_back = 0;
  // Messages of connection management of both nodes since the start, and retransmitted ones.
  std::uint64_t management = 0, management_again = 0;
  PacketCounts from_left, from_right;
};

class RoceObserver {
 public:
  RoceObserver(Pair& pair, verbs::QueuePair& left, verbs::QueuePair& right, const Traffic& traffic,
               bool series);
  ~RoceObserver();
  RoceObserver(const RoceObserver&) = delete;
  RoceObserver& operator=(const RoceObserver&) = delete;

  // Call it after every step.
  void look();

  Recorder recorder;
  RoceObserved found;

 private:
  void look_at_responder(const ib::Responder& r);
  void look_at_idle(const roce::Context& serves);
  void look_at_requester(const ib::Requester& r);
  void look_for_gaps(const ib::ResponderState& s);
  void look_at_unreliable(const roce::Context& asks, const roce::Context& serves);
  std::uint64_t run_on(std::uint64_t* from, ib::Psn to) const;

  // The values at the last call.
  struct Before {
    ib::ResponderCounters responder;
    ib::RequesterCounters requester;
    std::uint64_t bad_icrc = 0;
    std::uint64_t lost_messages = 0;
    std::uint64_t cuts = 0;
    bool waits = false;
  };

  Pair& pair_;
  verbs::QueuePair &left_, &right_;
  const Traffic& traffic_;
  PacketWatch from_left_, from_right_;
  Before was_;
  ib::Psn first_psn_;
  std::uint64_t in_order_ = 0, sent_ = 0;
  bool gap_ = false;
  ib::Psn gap_psn_;
  Instant gap_since_;
};

}  // namespace urnic::sim
