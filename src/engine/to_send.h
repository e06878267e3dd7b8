// The pending output of a side after a burst, and whether it can wait for the next poll
// (docs/decisions/acks-that-wait.md).
#pragma once

namespace urnic::engine {

struct ToSend {
  bool acks_wait;  // there are only ACKs, and they may wait
  bool any;        // there is something, ACKs included
};

// True if both sides have nothing to send except ACKs that may wait, and at least one has some.
inline bool acks_alone(ToSend one, ToSend other) {
  return (one.acks_wait || other.acks_wait) && (one.acks_wait || !one.any) &&
         (other.acks_wait || !other.any);
}

}  // namespace urnic::engine
