// Two ports as the two ends of one wire: what one receives the other sends (`urnic wire`). Put
// fault and capture wrappers around them first.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "fault/tcp_frame.h"
#include "port/port.h"

namespace urnic::fault {

struct PumpStats {
  std::uint64_t frames = 0, bytes = 0;  // forwarded
  std::uint64_t split = 0;              // larger than the other port's frames; TCP, so cut to fit
  std::uint64_t too_long = 0;           // larger than the other port's frames, lost
  std::uint64_t no_link = 0;            // the other port's link was down, lost
};

class Pump {
 public:
  // The ports must outlive the pump and be used by nobody else meanwhile.
  Pump(port::Port& a, port::Port& b);

  // Forwards what is there, each queue at most a few bursts; true when there was something to do.
  bool run_once();
  // Forwards until `stop` is set; sleeps on the descriptors of both ports when idle. `wake_fd`
  // (an eventfd or signalfd, or -1) becoming readable ends a sleep, so that `stop` is seen; with
  // max_sleep > 0 a sleep also ends by itself. Returns early, false, when a port cannot be slept
  // on.
  bool run(const std::atomic<bool>& stop, int wake_fd, Duration max_sleep = Duration());

  const PumpStats& a_to_b() const { return a_to_b_.stats; }
  const PumpStats& b_to_a() const { return b_to_a_.stats; }

 private:
  struct Leg {
    port::Port* from = nullptr;
    port::Port* to = nullptr;
    PumpStats stats;
    // What the receiving port had no room for yet, per queue: the sender is held back meanwhile.
    std::vector<std::vector<Frame>> late;
  };

  bool forward(Leg& w, unsigned q);
  bool send_late(Leg& w, unsigned q);
  void take(Leg& w, unsigned q, const urnic_frame& f, std::uint32_t max_frame);
  bool sleep(int wake_fd, Duration max_sleep);

  unsigned queues_;
  Leg a_to_b_, b_to_a_;
};

}  // namespace urnic::fault
