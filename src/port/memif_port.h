// The memif port (D13): frames through shared memory to another process, which may be urnic, DPDK's
// net_memif or VPP. Keys and defaults: docs/ports.md.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "port/counters.h"
#include "port/memif_control.h"
#include "port/memif_ring.h"
#include "port/port.h"

namespace urnic::port {

class MemifPort {
 public:
  static Outcome<std::unique_ptr<MemifPort>, std::string> make(Args& args);
  ~MemifPort();

  void info(urnic_port_info* i);
  void stats(urnic_port_stats* s) const;
  std::string why();
  unsigned rx_burst(unsigned q, urnic_frame* frames, unsigned n);
  void rx_release(unsigned q, const urnic_frame* frames, unsigned n);
  unsigned tx_reserve(unsigned q, std::uint32_t len, urnic_frame* frames, unsigned n);
  void tx_commit(unsigned q, urnic_frame* frames, unsigned n);
  unsigned wait_fds(unsigned q, int* fds, unsigned max);
  int arm(unsigned q);
  void disarm(unsigned q);

 private:
  // What one thread at a time works with. Holds its own reference to the connection: memory stays
  // mapped until this queue has given back its frames and noticed the end.
  struct alignas(64) Queue {
    std::shared_ptr<memif::Link> link;
    memif::MemifRx rx;
    memif::MemifTx tx;
    bool broken = false;      // the peer misbehaved; nothing more is taken from it
    bool draining = false;    // the peer is gone; what it had sent is still delivered
    unsigned drain_left = 0;  // slots
    bool fell_short = false;  // the last reserve did not get all it asked for
    std::atomic<bool> control_due{false};
    std::uint32_t calls = 0, next_control = 1;
    const void* last_armed_on = nullptr;  // the connection at the last `arm`
    std::uint32_t room_wait_us = 0;
    bool timer_set = false;
    int watched_event = -1;  // the eventfd of `link` in `epoll`
    Fd epoll, timer;
    QueueCounters counters;
  };

  explicit MemifPort(memif::Config config);
  std::string open_sleepers();
  std::uint32_t control_every() const;
  void serve_control(Queue& me);
  void follow_link(Queue& me);
  bool current(const Queue& me) const {
    return me.link.get() == link_.load(std::memory_order_acquire);
  }
  void attach(Queue& me, unsigned q);
  void detach(Queue& me);
  void report(Queue& me, memif::Reason fault);
  void set_timer(Queue& me, std::uint64_t us);
  void set_sleep_timer(Queue& me, bool newly_asked);
  unsigned index_of(const Queue& me) const { return static_cast<unsigned>(&me - queues_.get()); }

  memif::Config config_;
  pid_t owner_;
  std::unique_ptr<Queue[]> queues_;
  std::unique_ptr<memif::Control> control_;
  std::mutex control_lock_;  // over control_; only ever tried, never waited for, on the data path
  std::atomic<memif::Link*> link_{nullptr};  // the connection in use, as control_ has it
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<std::uint64_t> deadline_ms_{0};  // as control_ has it
  std::atomic<bool> shaking_{false};           // likewise
};

}  // namespace urnic::port
