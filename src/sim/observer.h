// Checks both engines after every step of the simulation and records what changed: events, samples,
// and the time until each dropped segment was repaired. It never changes the engines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "iwarp/connection.h"
#include "sim/pair.h"
#include "sim/recorder.h"
#include "sim/traffic.h"

namespace urnic::sim {

// One row of the timeline. All columns describe the connection at the receiver of the data, except
// those marked "sender".
enum Column : std::uint8_t {
  kTime,         // ns since both ends were established
  kFast,         // 1: ConnectionType 62 is FAST
  kAttempts,     // RecoveryAttemptsNum 292, maximum since the last sample
  kHoles,        // open TCP holes
  kInOrder,      // bytes of the stream below RCV.NXT
  kPlaced,       // ULP bytes placed
  kDelivered,    // messages delivered to the consumer
  kPending,      // complete messages waiting for holes (counters 300, 302, 306)
  kHoleState,    // bytes of state kept for holes
  kReassembly,   // bytes of reassembly memory in use
  kCopied,       // bytes copied for receiving
  kDupAcks,      // duplicate ACKs sent
  kRetransmits,  // segments retransmitted by the sender
  kCwnd,         // sender, bytes
  kFlight,       // sender, bytes
  kColumns
};

// The results of a run other than events and samples.
struct Observed {
  std::vector<Duration> repairs;  // of dropped segments, in the order of repair
  std::uint64_t most_holes = 0, most_pending = 0, most_hole_state = 0, most_reassembly = 0;
};

class Observer {
 public:
  // `sender` and `receiver` refer to the data. Samples and events are recorded only with `series`.
  Observer(Pair& pair, Node& sender_node, verbs::QueuePair& sender, Node& receiver_node,
           verbs::QueuePair& receiver, const Traffic& traffic, bool series);

  // Call it after every step.
  void look();

  Recorder recorder;
  Observed found;

 private:
  struct Dropped {
    StreamOffset at;  // first byte of the segment
    Instant since;
  };
  void look_at_receiver(const engine::Connection& c, Instant now);
  void look_at_verdicts(const engine::Connection& c);
  void look_at_sender(const engine::Connection& c);
  void look_for_repairs(const engine::Connection& c, Instant now);

  // The values at the last call.
  struct Before {
    iwarp::ConnectionCounters receiver, sender;
    std::uint64_t holes = 0;
    std::uint16_t mss = 0;
  };

  Pair& pair_;
  Node &sender_node_, &receiver_node_;
  verbs::QueuePair &sender_, &receiver_;
  const Traffic& traffic_;
  Before was_;
  std::vector<Dropped> dropped_;
};

}  // namespace urnic::sim
