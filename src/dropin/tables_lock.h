// The lock of the process-wide tables: queue pair numbers, known channels, destroyed queues. The
// process never forks while another thread holds it, so that a child finds the tables consistent.
// It is held only briefly, and no other lock is taken while holding it.
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

  // Called before and after a fork, on the thread that forks. A signal handler may fork: if it has
  // interrupted this thread while it holds the lock, waiting would deadlock, and the interrupted
  // frame releases the lock in both processes.
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
  // number of this thread's frames that hold it or wait for it
  static inline thread_local int depth_ = 0;
  static inline thread_local bool held_for_fork_ = false;
};

inline TablesLock tables_lock;

}  // namespace urnic::dropin
