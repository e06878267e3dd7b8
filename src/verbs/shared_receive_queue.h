// Shared receive queue: receives that several queue pairs of a device use, oldest first. A WQE is
// bound to (queue pair, index) when the first part of that Send or of a later one arrives (E-15),
// so that the Sends of every queue pair use receives in the order they were sent, whatever the
// order of arrival; docs/decisions/shared-receive-queue.md gives the reasons.
//
// Two parties, as with a queue pair's own queue (receive_queue.h): one thread at a time posts, the
// engine does everything else under its ownership.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "verbs/wqe_store.h"

namespace urnic::verbs {

class CompletionQueue;

// Additional data of a shared receive queue of XRC: any receiving end of its domain delivers
// messages with its number into it, and they complete on the queue's own completion queue.
struct XrcQueue {
  std::uint32_t number = 0;  // 24 bits; 0: not an XRC queue
  std::uint32_t domain = 0;
  CompletionQueue* completions = nullptr;  // outlives the queue
};

class SharedReceiveQueue {
 public:
  enum class Post : std::uint8_t { Ok, Full, TooManySges };

  // Local keys of its receives are checked against `pd`. At most `max_wr` receives may be posted,
  // bound or lent to unpolled completions at a time.
  SharedReceiveQueue(PdId pd, std::uint32_t max_wr, std::uint32_t max_sge);
  SharedReceiveQueue(const SharedReceiveQueue&) = delete;
  SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;

  Post post(const RecvWr& wr);
  PdId pd() const { return pd_; }
  std::uint32_t max_wr() const { return max_wr_; }
  std::uint32_t max_sge() const { return max_sge_; }

  // Receives that are posted and not bound. Can only grow between two calls of bind().
  std::uint32_t available() const { return tail_.load() - head_; }
  // Position of the receive that would be bound after `ahead` others, ahead < available().
  std::uint32_t peek(std::uint32_t ahead) const {
    return posted_[(head_ + ahead) & store_->mask()];
  }
  // Binds the oldest; available() > 0.
  std::uint32_t bind();
  WqeStore* store() const { return store_.get(); }

  // Requests one event when fewer than `limit` are available, now or later; 0 disarms.
  void set_limit(std::uint32_t limit);
  std::uint32_t limit() const { return limit_; }
  // True if the event is due; it is reported once, then disarmed.
  bool take_limit_event();

  XrcQueue xrc;
  // Number of queue pairs that use it; XRC queue pairs do not count.
  std::uint32_t users = 0;
  // Handles of connections that dropped a Send because no receive was posted (E-17).
  std::vector<std::uint64_t> starved;
  // True if there are such connections: the posting thread must notify the engine.
  std::atomic<bool> wanted{false};
  void* owner = nullptr;  // the receiver of the limit event

 private:
  std::unique_ptr<WqeStore, WqeStore::Abandon> store_;
  std::unique_ptr<std::uint32_t[]> posted_;  // positions, in posting order
  std::uint32_t head_ = 0;                   // free running
  std::atomic<std::uint32_t> tail_{0};
  // bound: shared receive queue; limit: its requested size, up to 65536; beyond: posting fails with
  // queue_full; a receive counts until its message is complete; test:
  // SharedReceiveQueue.HoldsUpToItsLimitAndReturnsTheOldestFirst,
  // SharedReceiveRoom.ADeliveredReceiveIsFreeAgain
  std::uint32_t max_wr_, max_sge_;
  std::uint32_t limit_ = 0;
  PdId pd_;
};

}  // namespace urnic::verbs
