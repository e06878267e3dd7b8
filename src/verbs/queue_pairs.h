// The queue pairs of an engine and their shared receive queues, which it owns from creation to
// destruction. A shared queue outlives the queue pairs that use it. The transport's part of a queue
// pair is in verbs::TransportHalf.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/hash_map.h"
#include "base/siphash.h"
#include "base/stag_form.h"
#include "verbs/queue_pair.h"

namespace urnic::verbs {

class QueuePairs {
 public:
  // `key`: permutes the numbers that are visible to peers (E-49).
  explicit QueuePairs(const SipKey& key) : numbers_(key) {}

  verbs::PdId new_pd() { return ++last_pd_; }
  // Returns a number in 24 bits, never 0, and hard to predict (E-49). 0 when none is left. Numbers
  // in use are skipped: the consumer may have chosen one, and other transports have numbers of
  // their own. When all have been used they are used again, the longest unused first.
  std::uint32_t new_number() {
    if (by_number_.size() >= kMostNumbers) return 0;
    for (;;) {
      last_qp_ = last_qp_ == kMostNumbers ? 1 : last_qp_ + 1;
      const std::uint32_t number = numbers_.outside(last_qp_);
      if (!has(number)) return number;
    }
  }
  // True also for a number that rests.
  bool has(std::uint32_t number) const { return by_number_.find(number) != nullptr; }
  // The number is not in use. On std::bad_alloc the caller still owns the queue pair.
  verbs::QueuePair* add(std::unique_ptr<verbs::QueuePair>&& qp) {
    qps_.emplace_back();
    try {
      by_number_.insert(qp->number(), qp.get());
    } catch (...) {
      qps_.pop_back();
      throw;
    }
    qps_.back() = std::move(qp);
    return qps_.back().get();
  }
  // Removes the queue pair. `rests`: its number is not used again before release().
  std::unique_ptr<verbs::QueuePair> take(const verbs::QueuePair* qp, bool rests = false) {
    const auto at =
        std::find_if(qps_.begin(), qps_.end(), [&](const auto& q) { return q.get() == qp; });
    std::unique_ptr<verbs::QueuePair> taken = std::move(*at);
    qps_.erase(at);
    if (rests) {
      *by_number_.find(taken->number()) = nullptr;
    } else {
      by_number_.erase(taken->number());
    }
    return taken;
  }
  void release(std::uint32_t number) { by_number_.erase(number); }
  std::size_t size() const { return qps_.size(); }
  // Calls f(QueuePair&) for each; f must not create or destroy any.
  template <class F>
  void for_each(F&& f) const {
    for (const auto& qp : qps_) f(*qp);
  }

  verbs::SharedReceiveQueue* create_shared(verbs::PdId pd, std::uint32_t max_wr,
                                           std::uint32_t max_sge) {
    shared_.push_back(std::make_unique<verbs::SharedReceiveQueue>(pd, max_wr, max_sge));
    return shared_.back().get();
  }
  // False, with nothing done, while a queue pair uses it.
  bool destroy_shared(const verbs::SharedReceiveQueue* queue) {
    if (queue->users != 0) return false;
    std::erase_if(shared_, [&](const auto& q) { return q.get() == queue; });
    return true;
  }
  // Calls f(SharedReceiveQueue*) for each whose limit event is due.
  template <class F>
  void take_limit_events(F&& f) {
    for (const auto& q : shared_) {
      if (q->take_limit_event()) f(q.get());
    }
  }

 private:
  // bound: queue pair numbers of iWARP; beyond: creating fails with no_memory; numbers are reused
  // after all have been used; test: QueuePairNumbers.AreReusedAfterAllHaveBeenUsedExceptThoseInUse
  static constexpr std::uint32_t kMostNumbers = 0xffffff;
  // Numbers are already evenly distributed.
  struct AsItIs {
    std::uint64_t operator()(std::uint32_t number) const { return number; }
  };
  std::vector<std::unique_ptr<verbs::SharedReceiveQueue>> shared_;
  std::vector<std::unique_ptr<verbs::QueuePair>> qps_;
  HashMap<std::uint32_t, verbs::QueuePair*, AsItIs> by_number_;
  std::uint32_t last_qp_ = 0;
  StagForm numbers_;
  verbs::PdId last_pd_ = 0;
};

}  // namespace urnic::verbs
