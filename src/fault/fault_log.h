// Records the faults of a line, so that a test can compare them with the engine's counters.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "base/time.h"
#include "fault/plan.h"

namespace urnic::fault {

enum class Direction : std::uint8_t { Rx, Tx };

struct FaultCounters {
  std::uint64_t frames = 0;    // frames received
  std::uint64_t eligible = 0;  // frames that the plan may change
  std::uint64_t spared = 0;    // protected by after= or skip_handshake
  std::uint64_t delivered = 0;
  // By kind. Cut counts cut segments, Join counts joined pairs; all other kinds count frames.
  std::array<std::uint64_t, static_cast<std::size_t>(FaultKind::Count)> injected{};

  std::uint64_t of(FaultKind k) const { return injected[static_cast<std::size_t>(k)]; }
  FaultCounters& operator+=(const FaultCounters& o) {
    frames += o.frames;
    eligible += o.eligible;
    spared += o.spared;
    delivered += o.delivered;
    for (std::size_t i = 0; i < injected.size(); ++i) injected[i] += o.injected[i];
    return *this;
  }
};

struct FaultRecord {
  Instant time;
  FaultKind kind = FaultKind::Loss;
  Direction direction = Direction::Rx;
  bool tcp = false, roce = false;
  std::uint16_t queue = 0;
  std::uint32_t seq = 0;      // TCP sequence number or PSN; else 0
  std::uint32_t payload = 0;  // its payload bytes
  std::uint32_t length = 0;   // length of the frame
  std::uint32_t at = 0;       // Corrupt and BadSum: offset of the first changed byte in the frame
};

// Keeps the last `capacity` records, shared by all lines of a wrapper. Thread safe.
class FaultLog {
 public:
  // bound: records of injected faults; limit: `FaultOptions::log_capacity`; beyond: the oldest are
  // dropped; test: FaultPortTest.WatcherSeesEveryRecord
  explicit FaultLog(std::size_t capacity, std::function<void(const FaultRecord&)> watch = {})
      : capacity_(capacity), watch_(std::move(watch)) {}

  void add(const FaultRecord& r) {
    std::lock_guard hold(lock_);
    if (watch_) watch_(r);
    if (capacity_ == 0) return;
    if (records_.size() == capacity_) records_.pop_front();
    records_.push_back(r);
  }
  // Returns the records, oldest first.
  std::vector<FaultRecord> records() const {
    std::lock_guard hold(lock_);
    return {records_.begin(), records_.end()};
  }

 private:
  const std::size_t capacity_;
  const std::function<void(const FaultRecord&)> watch_;  // called with the lock held
  mutable std::mutex lock_;
  std::deque<FaultRecord> records_;
};

}  // namespace urnic::fault
