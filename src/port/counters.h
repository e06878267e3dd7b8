// Counters of one queue: written by the thread that owns the queue, readable by any other.
#pragma once

#include <atomic>
#include <cstdint>

#include "port/port_abi.h"

namespace urnic::port {

// One writer, many readers. Compiles to a plain add.
class Counter {
 public:
  void add(std::uint64_t n = 1) {
    v_.store(v_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  std::uint64_t get() const { return v_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> v_{0};
};

struct QueueCounters {
  Counter rx_frames, rx_bytes, tx_frames, tx_bytes;
  Counter rx_bad, tx_dropped, tx_full, syscalls, wakeups;

  void add_to(urnic_port_stats* s) const {
    s->rx_frames += rx_frames.get();
    s->rx_bytes += rx_bytes.get();
    s->tx_frames += tx_frames.get();
    s->tx_bytes += tx_bytes.get();
    s->rx_bad += rx_bad.get();
    s->tx_dropped += tx_dropped.get();
    s->tx_full += tx_full.get();
    s->syscalls += syscalls.get();
    s->wakeups += wakeups.get();
  }
};

}  // namespace urnic::port
