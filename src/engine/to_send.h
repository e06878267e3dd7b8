// What a side has to send behind a burst, and whether that can wait for the poll that comes next
// (docs/decisions/acks-that-wait.md).
#pragma once

namespace urnic::engine {

struct ToSend {
  bool acks_wait;  // ACKs are all there is, and may wait
  bool any;        // there is something, these included
};

// Both sides have nothing but ACKs that may wait, and one has some.
inline bool acks_alone(ToSend one, ToSend other) {
  return (one.acks_wait || other.acks_wait) && (one.acks_wait || !one.any) &&
         (other.acks_wait || !other.any);
}

}  // namespace urnic::engine
