// The workload of an RD run: several queue pairs of the left end send to, or write to, as many of
// the right end over one EE context. The first queue pair has faults: every n-th of its messages is
// refused, and its receives are posted slowly. A queue pair in Sqe returns to Rts after a while.
//
// Each message has a number; received bytes are compared with sent bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sim/rd/rd_host.h"
#include "sim/scenario.h"

namespace urnic::sim {

class RdTraffic {
 public:
  RdTraffic(const Setup& setup, std::uint64_t seed, Instant begin);
  RdTraffic(const RdTraffic&) = delete;
  RdTraffic& operator=(const RdTraffic&) = delete;

  RdHost& left() { return ends_[0].host; }
  RdHost& right() { return ends_[1].host; }
  EeContext& asks() { return *left().context(kContext); }
  EeContext& serves() { return *right().context(kContext); }

  // Posts what may be posted, and recovers queue pairs from Sqe.
  void step(Instant now);
  // The time at which step() must be called even without input.
  Instant due() const;
  // Every message is complete or was given up.
  bool complete() const;
  // Why the run cannot continue; empty if it can.
  const std::string& failure() const { return failure_; }
  void check_memory();

  struct Counts {
    std::uint64_t delivered = 0, delivered_first = 0;  // in all; from the first queue pair
    std::uint64_t bytes = 0, wrong = 0;
    std::uint64_t given_up = 0, flushed = 0;  // failed requests; flushed and posted again
    std::uint64_t stops = 0;                  // transitions of queue pairs to Sqe
    std::uint64_t receives_in_error = 0;
  };
  const Counts& counts() const { return n_; }
  // The number of queue pairs in Sqe.
  std::uint64_t stopped() const;

 private:
  static constexpr std::uint32_t kContext = 0x50, kFirstNumber = 0x100;

  struct Flow {
    RdQueuePair* asks = nullptr;
    RdQueuePair* serves = nullptr;
    std::uint64_t next = 0, done = 0;  // message numbers: the next to post; done or given up
    std::uint64_t seen = 0;            // after the newest message received
    std::uint64_t receives = 0, taken = 0;
    Instant back = Instant::never();  // when to leave Sqe
  };
  struct Queues {
    Queues(std::uint32_t sends, std::uint32_t receives)
        : sq(sends, 1, 0, sizeof(RdTo)), rq(receives, 1, 0) {}
    verbs::SendQueue sq;
    verbs::ReceiveQueue rq;
  };
  struct End {
    explicit End(const RdHooks& hooks) : host(&memory, hooks) {}
    verbs::MemoryTable memory;
    RdHost host;
    std::deque<Queues> queues;
    std::vector<std::uint8_t> bytes;
    std::uint32_t key = 0;
  };

  RdHooks hooks();
  void make_context(int which, const Setup& setup);
  RdQueuePair* make_queue_pair(int which, std::uint32_t i);
  void completed(const RdQueuePair& qp, const verbs::Completion& c);
  void received(Flow& f, std::uint32_t i, const verbs::Completion& c);
  void post_receives(std::uint32_t i, Instant now);
  void post_work(std::uint32_t i);
  bool is_bad(std::uint32_t i, std::uint64_t message) const {
    return i == 0 && plan_.bad_every != 0 && (message + 1) % plan_.bad_every == 0;
  }
  std::uint32_t size_of(std::uint64_t message) const {
    return plan_.sizes[message % plan_.sizes.size()];
  }
  std::uint64_t slot(std::uint32_t i, std::uint64_t message) const {
    return (i * slots_ + message % slots_) * largest_;
  }

  WorkPlan plan_;
  std::uint8_t min_rnr_timer_ = 0;
  Instant next_receive_;
  std::uint64_t slots_, largest_;
  End ends_[2];
  std::vector<Flow> flows_;
  Instant now_;
  Counts n_;
  std::string failure_;
};

}  // namespace urnic::sim
