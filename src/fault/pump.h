// Connects two ports like a wire: each sends what the other receives (`urnic wire`). Fault and
// capture wrappers go around the ports before that.
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
  std::uint64_t split = 0;              // larger than the other port's frames; TCP, so it was split
  std::uint64_t too_long = 0;           // larger than the other port's frames: lost
  std::uint64_t no_link = 0;            // the other port's link was down: lost
};

class Pump {
 public:
  // The ports must outlive the pump, and nothing else may use them meanwhile.
  Pump(port::Port& a, port::Port& b);

  // Forwards available frames, at most a few bursts per queue; true if there was any work.
  bool run_once();
  // Forwards until `stop` is set. Sleeps on the descriptors of both ports when idle. If `wake_fd`
  // (an eventfd or signalfd, or -1) becomes readable, a sleep ends, so that `stop` is checked; with
  // max_sleep > 0 a sleep also ends after that time. Returns early with false if it is impossible
  // to sleep on a port.
  bool run(const std::atomic<bool>& stop, int wake_fd, Duration max_sleep = Duration());

  const PumpStats& a_to_b() const { return a_to_b_.stats; }
  const PumpStats& b_to_a() const { return b_to_a_.stats; }

 private:
  struct Leg {
    port::Port* from = nullptr;
    port::Port* to = nullptr;
    PumpStats stats;
    // Frames that the sending port has no room for yet, per queue. No more are received meanwhile.
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
