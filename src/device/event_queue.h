// The eventfd of a queue of events; level-triggered.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "base/time.h"
#include "urnic/verbs.h"

namespace urnic::device {

class EventFd {
 public:
  EventFd();
  ~EventFd();
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;
  int get() const { return fd_; }
  void signal();
  void clear();
  // Sleeps until signalled, at most `most` (kForEver: without limit). False on time-out, or if a
  // signal handler ran (EINTR).
  bool wait(Duration most) const;

 private:
  int fd_;
};

}  // namespace urnic::device
