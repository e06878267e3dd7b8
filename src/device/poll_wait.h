// What becomes of the core of an application that polls in vain.
//
// Room in a socket is made by the peer's program through the kernel, which may need this very core:
// it is left at once. What else is waited for, an arrival or room in a port, comes from somebody
// who polls too, as a rule at this moment, and to leave the core to a third one would cost a slice
// of the scheduler's: it is left only when nothing has come for so long that he is not running.
//
// Where others then keep it for long there are more of them than cores. Who leaves a core there by
// yielding gets it back when all others have had a slice, whatever has come meanwhile; who sleeps
// is woken by what comes, and has what it did not use to its credit. So for a while waits are slept
// through. A function of the times it is told.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace urnic::device {

class PollWait {
 public:
  static constexpr Duration kPatience = Duration::us(50);
  // Others kept the core for so long: it is one that they need.
  static constexpr Duration kTaken = Duration::us(100);
  // That is believed for so long.
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
  // The core was yielded then, and is ours again.
  void yielded(Instant then, Instant now) {
    if (now - then >= kTaken) needed_until_ = now + kBelieved;
  }
  // A poll found something.
  void forget() { since_ = Instant::never(); }

 private:
  Instant since_ = Instant::never();  // polls in vain, or since they last yielded
  Instant needed_until_;              // others need the core
};

}  // namespace urnic::device
