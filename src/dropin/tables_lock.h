// The lock of the tables a whole process has: of queue pair numbers, of channels that are known, of
// queues that were destroyed. Nobody holds it while the process forks, so that a child finds them
// whole. Held for a moment, and no other lock is taken under it.
#pragma once

#include <mutex>

namespace urnic::dropin {

class TablesLock {
 public:
  void lock() {
    ++depth_;
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
    --depth_;
  }

  // Around a fork, on the thread that forks. A signal handler may fork: when it has interrupted
  // this thread inside of the lock, waiting for it would not end, and the interrupted frame gives
  // it up in both processes.
  void before_fork() {
    held_for_fork_ = depth_ == 0;
    if (held_for_fork_) mutex_.lock();
  }
  void after_fork() {
    if (held_for_fork_) mutex_.unlock();
    held_for_fork_ = false;
  }

 private:
  std::mutex mutex_;
  static inline thread_local int depth_ = 0;  // of this thread's frames that take it or have it
  static inline thread_local bool held_for_fork_ = false;
};

inline TablesLock tables_lock;

}  // namespace urnic::dropin
