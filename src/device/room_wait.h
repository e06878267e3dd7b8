// Does an application that polls leave its core to others because there is no room to send into?
//
// Room in a socket is made by the peer's program through the kernel, which may need this very core:
// it is left at once. Room in a port is made by somebody who polls too, as a rule at this moment,
// and to leave the core to a third one would cost a slice of the scheduler's: it is left only when
// there has been no room for so long that he is not running. A function of the times it is told.
#pragma once

#include "base/time.h"

namespace urnic::engine {

class RoomWait {
 public:
  static constexpr Duration kPatience = Duration::us(50);

  // A poll that found nothing to do, at `now`, and no room: leave the core? `socket`: it is the
  // kernel's that has none.
  bool leaves_core(bool socket, Instant now) {
    if (socket) return true;
    if (since_.is_never()) since_ = now;
    return now - since_ >= kPatience;
  }
  // One that found something, or room.
  void forget() { since_ = Instant::never(); }

 private:
  Instant since_ = Instant::never();  // when there was first none in the port
};

}  // namespace urnic::engine
