// The same as Observer (observer.h) of two queue pairs of RoCE: looks at both after every step and
// at every packet, and writes down what changed. Only reads.
//
// The left queue pair asks (requester), the right one serves (responder), whichever way the data
// goes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "roce/context.h"
#include "sim/observer.h"
#include "sim/packet_watch.h"
#include "sim/recorder.h"

namespace urnic::sim {

// One row of the timeline. PSNs are counted from the first of the requester, without wrap.
enum RoceColumn : std::uint8_t {
  kRoceTime,     // ns
  kRoceFast,     // 1: the responder is FAST
  kPsnSent,      // behind the furthest PSN the requester has used
  kPsnFurthest,  // responder: behind the furthest it has or keeps
  kPsnInOrder,   // responder: expected; of Reads: the requester's oldest unanswered
  kRoceDelivered,
  kHeld,        // packets kept behind a gap, or for want of a receive; the most since the last
  kHeldBytes,   // lent for them
  kNotKept,     // packets out of sequence that were dropped
  kDuplicates,  // packets that had come before
  kSequenceNaks,
  kRnrNaks,
  kRepeated,    // packets the requester sent again
  kRoceFlight,  // PSNs unanswered
  kWindow,      // packets that may be in flight (S-10)
  kMarks,       // packets that came with a CE mark
  kRoceColumns
};

// What a run has shown that the queue pairs' own counters do not tell.
struct RoceObserved {
  std::vector<Duration> repairs;  // from a gap's showing until it has closed
  std::uint64_t most_held = 0, most_held_bytes = 0;
  std::uint64_t rnr_waits = 0, sent_in_waits = 0;
  Duration longest_rnr_wait;
  std::uint64_t bad_icrc = 0;  // packets dropped for it, both nodes
  std::uint64_t drained = 0;   // drained events of the left queue pair
  // The left queue pair was in Sqe; datagrams that it received then, and otherwise.
  std::uint64_t sqe = 0, came_in_sqe = 0, came_back = 0;
  // Messages of connection management, both nodes, and of these sent again. From the beginning.
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

  // After every step.
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

  // As last seen.
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
