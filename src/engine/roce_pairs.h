// RoCE's queue pairs within an engine: what concerns them besides frames and time, in which the
// engine drives the side itself. They stand among all others (queue_pairs.h), and no two of those
// have one number, whatever transport is theirs.
//
// Every call under the ownership of the engine.
#pragma once

#include <string>

#include "engine/hooks.h"
#include "engine/options.h"
#include "engine/queue_pairs.h"
#include "engine/roce_connections.h"
#include "ib/xrc_queues.h"
#include "roce/side.h"
#include "roce/xrc.h"
#include "urnic/stats.h"

namespace urnic::engine {

inline bool is_roce(const verbs::QueuePair& qp) {
  return qp.state.follows(verbs::kIbRules);
}

class RocePairs {
 public:
  // What is pointed to outlives it.
  RocePairs(const Options&, Hooks*, wire::Wire*, verbs::MemoryTable*, QueuePairs*);
  ~RocePairs();
  RocePairs(const RocePairs&) = delete;
  RocePairs& operator=(const RocePairs&) = delete;

  roce::Side& side() { return side_; }
  const roce::Side& side() const { return side_; }
  // Of a device that speaks RoCE.
  RoceConnections& connections() { return connections_; }
  const RoceConnections& connections() const { return connections_; }

  // Over the kernel's UDP: the addresses of the machine are these from now on. What is bound to
  // another, or connected from it, stays and hears nothing more.
  void set_addresses(const std::vector<IpPrefix>& now) { wire_.interface().set_addresses(now); }

  // In Reset. Null when no number is left. `loss`: null for those of the options.
  verbs::QueuePair* create(verbs::Service, verbs::PdId, const verbs::WorkQueueSizes&,
                           verbs::CompletionQueue* send, verbs::CompletionQueue* receive,
                           const ib::LossRules* loss = nullptr, std::uint32_t domain = 0);
  // A shared receive queue of XRC: of a domain, with completions of its own. Null when there are as
  // many as may be.
  verbs::SharedReceiveQueue* create_xrc_queue(verbs::PdId, std::uint32_t max_wr,
                                              std::uint32_t max_sge, std::uint32_t domain,
                                              verbs::CompletionQueue* completions);
  // Receiving ends may be in the middle of a message for it: that fails with its next packet.
  void destroy_xrc_queue(verbs::SharedReceiveQueue*);
  // Completions not yet polled stay in their queues; no more come, and no memory of the consumer is
  // touched for it any more. Its connection ends, and its number may have to rest (IB-129).
  void destroy(verbs::QueuePair*, Instant now);
  // A refusal changes nothing. Who posts is kept away meanwhile by the caller.
  roce::Modified modify(verbs::QueuePair&, const roce::QpChange&, Instant now);
  // As roce::Ways::open(), and the way is asked for.
  roce::Ways::Opened create_handle(const ib::AddressVector&, Instant now);
  void work_posted(verbs::QueuePair&, Instant now);
  // It cannot go on: Error, flushed, and told.
  void fail(verbs::QueuePair&, Errc, const std::string& why);
  // All that have a peer beyond the link (E-43).
  void give_up_link(const std::string& why);

  // All but `connections`; what has gone is in `ended`.
  void fill_totals(EngineStats*) const;
  // With the live queue pairs that take requests.
  void fill_stats(EngineStats*) const;
  // The one in that place, one of places(), if there is one.
  std::size_t places() const { return side_.contexts().places(); }
  bool add_connection(std::size_t place, std::vector<ConnectionStats>* out) const;
  static ConnectionStats stats_of(const verbs::QueuePair&);

  // What has come of connections, and is to be acted on now.
  bool has_news() const { return connections_.has_news(); }
  void act(Instant now) {
    if (connections_.has_news() || connections_.next_deadline() <= now) connections_.act(now);
  }
  Instant next_deadline() const {
    return earlier(side_.next_deadline(), connections_.next_deadline());
  }

  // A completion queue has overrun, and the queue pairs on it are to fail (E-47).
  bool overrun_pending() const { return side_.completions().overrun_pending(); }
  bool take_overrun() { return side_.completions().take_overrun(); }
  // Whether one of its completion queues has.
  static bool overrun(const verbs::QueuePair& qp) { return roce::completes_on_overrun(qp); }

 private:
  std::unique_ptr<verbs::QueuePair> new_pair(verbs::Service, verbs::PdId,
                                             const verbs::WorkQueueSizes&,
                                             verbs::CompletionQueue* send,
                                             verbs::CompletionQueue* receive,
                                             const ib::LossRules* loss, std::uint32_t domain);

  wire::Wire& wire_;
  QueuePairs& qps_;
  ib::XrcQueues xrc_queues_;
  RoceConnections connections_;  // hears what the side tells
  roce::Side side_;
};

}  // namespace urnic::engine
