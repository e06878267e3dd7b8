// pthread_cancel ends a thread where a call of ours waits, as it would in a read of the kernel's,
// and nowhere else: not in the middle of a burst, with the engine in its hands.
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
