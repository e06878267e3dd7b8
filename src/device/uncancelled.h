// Handles pthread_cancel of application threads that are inside our calls.
#pragma once

#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "base/time.h"
#include "device/nap.h"

namespace urnic::device {

// A cancelled thread ends only where it sleeps, never while it owns the engine.
class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

  // Like ppoll(2), for `most`; negative: without limit.
  int sleep(pollfd* fds, unsigned n, Duration most) const {
    pthread_setcancelstate(before_, nullptr);
    const int woken = ::ppoll(fds, n, Nap(most).get(), nullptr);
    const int error = errno;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    errno = error;
    return woken;
  }

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace urnic::device
