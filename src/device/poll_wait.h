// Decides what an application whose polls find nothing does with its core.
//
// Room in a socket is made by the peer's program through the kernel, which may need this very core:
// the core is yielded at once. Arrivals, or room in a port, come from a peer that usually is
// polling at this moment, and yielding the core to a third thread would cost a slice of the
// scheduler: the core is yielded only when nothing has arrived for so long that the peer is
// probably not running.
//
// If other threads then keep the core for long, there are more of them than cores. A thread that
// yields such a core gets it back only after all others have had a slice, even if something
// arrives; a thread that sleeps is woken by the arrival, and keeps its unused time as credit. So
// for a while waits are slept through. A function of the times passed to it.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::device {

class PollWait {
 public:
  static constexpr Duration kPatience = Duration::us(50);
  // If other threads keep the core this long, they need it.
  static constexpr Duration kTaken = Duration::us(100);
  // How long that conclusion is valid.
  static constexpr Duration kBelieved = Duration::ms(100);

  enum class For : std::uint8_t { Arrival, PortRoom, SocketRoom };
  enum class Core : std::uint8_t { Kept, Yielded, SleptOn };

  // A poll found nothing to do at `now`.
  Core in_vain(For what, Instant now) {
    if (what != For::SocketRoom) {
      if (since_.is_never()) since_ = now;
      if (now - since_ < kPatience) return Core::Kept;
    }
    if (now < needed_until_) return Core::SleptOn;
    if (what == For::Arrival) since_ = now;
    return Core::Yielded;
  }
  // The core was yielded at `then`, and is ours again at `now`.
  void yielded(Instant then, Instant now) {
    if (now - then >= kTaken) needed_until_ = now + kBelieved;
  }
  // A poll found something.
  void forget() { since_ = Instant::never(); }

 private:
  // start of polls without result, or of those since the last yield
  Instant since_ = Instant::never();
  Instant needed_until_;  // other threads need the core
};

}  // namespace urnic::device
