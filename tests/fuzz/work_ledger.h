// Work requests and their results: each one that requests a completion has exactly one, in the
// order of posting, unless its queue pair was destroyed or reset, or its completion queue has
// overrun.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "tests/fuzz/input.h"

namespace urnic::fuzz {

struct Work {
  std::uint64_t queue = 0;      // the program's name for the work queue
  std::uint32_t qp_number = 0;  // 0: a shared queue, any QP
  std::uint32_t most = 0;       // room in bytes
  bool receive = false, signaled = true;
};

class WorkLedger {
 public:
  // A name for the next request; it is valid once post() was successful.
  std::uint64_t next_id() const { return last_ + 1; }
  void post(const Work& work) {
    entries_.emplace(++last_, Entry{work});
    ++queues_[work.queue].open;
  }
  // The queue was reset, or discarded with its completions: no more completions may arrive.
  void forget(std::uint64_t queue) { queues_[queue].forgotten_to = last_; }
  // Completions of the queue are uncertain: it was destroyed, or they were lost because there was
  // no room.
  void lose(std::uint64_t queue) { queues_[queue].lost_to = last_; }

  void complete(std::uint64_t id, std::uint32_t qp_number, bool receive, bool success,
                std::uint32_t bytes) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) fail("a completion of what was never posted: " + text(id));
    Entry& e = found->second;
    Queue& q = queues_[e.work.queue];
    if (e.done) fail("a work request completed twice: " + text(id));
    if (id <= q.forgotten_to) fail("a completion of what was forgotten: " + text(id));
    require(receive == e.work.receive, "a completion of the other kind of work");
    require(e.work.qp_number == 0 || qp_number == e.work.qp_number,
            "a completion names another queue pair");
    require(!success || e.work.signaled, "a request that wanted none has a completion");
    require(!receive || !success || bytes <= e.work.most,
            "more was received than there was room for");
    if (e.work.qp_number != 0) {
      if (id < q.last) fail("completions out of order: " + text(id));
      q.last = id;
    }
    e.done = true;
    --q.open;
    ++done_;
  }
  // All work of that queue must have completed.
  void settle(std::uint64_t queue) const {
    if (const std::uint64_t id = unsettled(queue); id != 0) {
      fail("a work request never completed: " + text(id));
    }
  }
  // The first request that has not completed; 0 if there is none.
  std::uint64_t unsettled(std::uint64_t queue) const {
    const auto found = queues_.find(queue);
    if (found == queues_.end()) return 0;
    const Queue& q = found->second;
    for (const auto& [id, e] : entries_) {
      if (e.work.queue != queue || e.done || !e.work.signaled) continue;
      if (id > q.forgotten_to && id > q.lost_to) return id;
    }
    return 0;
  }
  bool knows(std::uint64_t queue) const { return queues_.contains(queue); }
  // The number of posted requests that have not completed.
  std::size_t open(std::uint64_t queue) const { return knows(queue) ? queues_.at(queue).open : 0; }
  std::uint64_t posted() const { return last_; }
  std::uint64_t done() const { return done_; }

 private:
  struct Entry {
    Work work;
    bool done = false;
  };
  struct Queue {
    std::uint64_t last = 0;  // last completed
    std::uint64_t forgotten_to = 0, lost_to = 0;
    std::size_t open = 0;
  };
  static std::string text(std::uint64_t id) { return "number " + std::to_string(id); }

  std::unordered_map<std::uint64_t, Entry> entries_;
  std::unordered_map<std::uint64_t, Queue> queues_;
  std::uint64_t last_ = 0, done_ = 0;
};

}  // namespace urnic::fuzz
