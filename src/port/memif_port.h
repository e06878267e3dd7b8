// The memif port (D13): exchanges frames through shared memory with another process: urnic, DPDK's
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
  // The state of a queue, used by one thread at a time. It holds its own reference to the
  // connection, so that the memory stays mapped until this queue has returned its frames and
  // detected the end.
  struct alignas(64) Queue {
    std::shared_ptr<memif::Link> link;
    memif::MemifRx rx;
    memif::MemifTx tx;
    bool broken = false;      // the peer violated the protocol; no more frames are taken from it
    bool draining = false;    // the peer is gone; frames it had sent are still delivered
    unsigned drain_left = 0;  // slots
    bool fell_short = false;  // the last reserve returned less than requested
    std::atomic<bool> control_due{false};
    std::uint32_t calls = 0, next_control = 1;
    const void* last_armed_on = nullptr;  // the connection at the last `arm`
    std::uint32_t room_wait_us = 0;
    bool timer_set = false;
    int watched_event = -1;  // the eventfd of `link` that is in `epoll`
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
  std::mutex control_lock_;  // protects control_; the data path only tries to lock it
  std::atomic<memif::Link*> link_{nullptr};  // the current connection, copied from control_
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<std::uint64_t> deadline_ms_{0};  // copied from control_
  std::atomic<bool> shaking_{false};           // copied from control_
};

}  // namespace urnic::port
