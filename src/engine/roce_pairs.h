// RoCE's queue pairs within an engine: what concerns them besides frames and time, in which the
// engine drives the side itself. They stand among all others (queue_pairs.h), and no two of those
// have one number, whatever transport is theirs.
//
// Every call under the ownership of the engine.
#pragma once

#include <string>

#include "engine/hooks.h"
#include "engine/queue_pairs.h"
#include "roce/side.h"
#include "urnic/stats.h"

namespace urnic::engine {

inline bool is_roce(const verbs::QueuePair& qp) {
  return qp.state.follows(verbs::kIbRules);
}

class RocePairs {
 public:
  // What is pointed to outlives it.
  RocePairs(const roce::Options&, Hooks*, wire::Wire*, verbs::MemoryTable*, QueuePairs*);

  roce::Side& side() { return side_; }
  const roce::Side& side() const { return side_; }

  // In Reset. Null when no number is left.
  verbs::QueuePair* create(verbs::PdId, const verbs::WorkQueueSizes&, verbs::CompletionQueue* send,
                           verbs::CompletionQueue* receive);
  // Completions not yet polled stay in their queues; no more come, and no memory of the consumer is
  // touched for it any more.
  void destroy(verbs::QueuePair*);
  // A refusal changes nothing. Who posts is kept away meanwhile by the caller.
  roce::Modified modify(verbs::QueuePair&, const roce::QpChange&, Instant now);
  void work_posted(verbs::QueuePair&, Instant now);
  // It cannot go on: Error, flushed, and told.
  void fail(verbs::QueuePair&, Errc, const std::string& why);
  // All that have a peer beyond the link (E-43).
  void give_up_link(const std::string& why);

  // Live queue pairs with a peer go to `connections`, those that have gone to `ended`.
  void fill_stats(EngineStats*) const;
  static ConnectionStats stats_of(const verbs::QueuePair&);

  // A completion queue has overrun, and the queue pairs on it are to fail (E-47).
  bool overrun_pending() const { return side_.completions().overrun_pending(); }
  bool take_overrun() { return side_.completions().take_overrun(); }

 private:
  std::unique_ptr<verbs::QueuePair> new_pair(verbs::PdId, const verbs::WorkQueueSizes&,
                                             verbs::CompletionQueue* send,
                                             verbs::CompletionQueue* receive);

  Hooks* hooks_;
  wire::Wire& wire_;
  QueuePairs& qps_;
  roce::Side side_;
};

}  // namespace urnic::engine
