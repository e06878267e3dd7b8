// Connection events on their way to the consumer: a queue with a level-triggered eventfd.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

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
  // Sleep until signalled; false on time-out (ms, -1 = for ever).
  bool wait(int timeout_ms) const;

 private:
  int fd_;
};

}  // namespace urnic::device
