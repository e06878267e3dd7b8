// The workload of one run: the left node posts Writes, Sends, Reads or atomics as planned, the
// right node posts receives. Received bytes are compared with sent bytes.
//
// Memory is registered zero-based, so that frames do not depend on addresses in the process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/pair.h"
#include "sim/scenario.h"

namespace urnic::sim {

class Traffic {
 public:
  // `begin`: the origin of the plan's times. `roce`: the kind of the queue pairs. `queues`: the
  // number of their completion queues at both nodes.
  Traffic(Pair& pair, verbs::QueuePair& left, verbs::QueuePair& right, const WorkPlan& plan,
          const RocePlan& roce, Instant begin, std::uint64_t seed, unsigned queues = 0);

  // Takes completions and posts what may be posted.
  void step();
  // True when everything is complete and acknowledged. For an unreliable service: everything was
  // handed out, and nothing has arrived for a while.
  bool complete() const;
  // Why the stream ended early; empty while it is running.
  const std::string& failure() const { return failure_; }

  std::uint64_t posted() const { return n_.posted; }
  // True if data flows back to the requester.
  bool reads() const { return plan_.op == Op::Read; }
  // When the last message was delivered.
  Instant last_delivery() const { return last_delivery_; }
  // Messages completed at the receiver of the data: completed receives for Sends, else completed
  // work requests.
  std::uint64_t delivered() const { return plan_.op == Op::Send ? n_.received : n_.completed; }
  std::uint64_t delivered_bytes() const { return n_.bytes; }
  std::uint64_t completed() const { return n_.completed; }
  std::uint64_t failed() const { return n_.failed; }
  // Received bytes that differ from those sent. Sends are checked as they complete, the rest by
  // check_memory().
  std::uint64_t wrong_bytes() const { return n_.wrong; }
  void check_memory();

 private:
  // Memory registered at one of the nodes.
  struct Memory {
    std::vector<std::uint8_t> bytes;
    std::uint32_t stag = 0;
  };
  std::uint32_t size_of(std::uint64_t message) const {
    return plan_.sizes[message % plan_.sizes.size()];
  }
  std::uint64_t slot_of(std::uint64_t message) const { return message % slots_; }
  void embed();
  void take_completions();
  void look_for_the_end();
  void post_receives(Instant now);
  void post_work(Instant now);
  verbs::SendWr request(const verbs::Sge* sge) const;
  void check_receive(const verbs::Completion& c);
  void check_atomic();
  bool unreliable() const { return roce_.on && !verbs::is_reliable(roce_.service); }
  bool post_receive(const verbs::RecvWr& wr, Instant now);
  // Bytes that precede a received datagram in the receive buffer.
  std::uint64_t head() const { return roce_.service == verbs::Service::Ud ? 40 : 0; }
  std::uint64_t receive_slot() const { return largest_ + head(); }

  Pair& pair_;
  verbs::QueuePair &left_, &right_;
  WorkPlan plan_;
  RocePlan roce_;
  unsigned queues_;
  std::uint32_t handle_ = 0;  // for datagrams to the right node
  // For XRC: messages go to these queues in turn.
  std::vector<verbs::SharedReceiveQueue*> shared_;
  Instant begin_, next_post_, next_receive_, last_delivery_;
  std::uint64_t slots_, largest_;
  // Message i is in slot i mod slots_ of the source and goes to the same slot of the sink.
  Memory source_, sink_, receive_;
  struct Counts {
    std::uint64_t posted = 0, completed = 0, received = 0, receives_posted = 0;
    std::uint64_t bytes = 0, wrong = 0, failed = 0;  // delivered; not as sent; failed requests
  } n_;
  std::string failure_;
};

}  // namespace urnic::sim
