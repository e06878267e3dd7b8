// Allows pthread_cancel only where one of our calls waits, as in a read() of the kernel. Elsewhere
// a cancelled thread could end in the middle of a burst while it owns the engine.
#pragma once

#include <pthread.h>

namespace urnic::dropin {

class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace urnic::dropin
