// A queue of values with a descriptor on which a program can sleep: readable, level-triggered,
// exactly while there are values. The program may make the descriptor non-blocking.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <new>

#include "dropin/cancel.h"
#include "dropin/restart.h"

namespace urnic::dropin {

// The number of forks between the process that loaded the library and this one. Objects of another
// generation share their descriptors with a process that still runs, so they are left as they are.
inline std::atomic<unsigned> generation{0};

template <class T>
class SignalledQueue {
 public:
  SignalledQueue() : fd_(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)) {}
  ~SignalledQueue() {
    if (fd_ >= 0) close(fd_);
  }
  SignalledQueue(const SignalledQueue&) = delete;
  SignalledQueue& operator=(const SignalledQueue&) = delete;

  int fd() const { return fd_; }

  void push(T value) {
    std::list<T> one;
    one.push_back(std::move(value));
    put(std::move(one));
  }
  // Appends the values of another list; allocates no memory.
  void put(std::list<T>&& values) noexcept {
    const std::uint64_t many = values.size();
    const std::lock_guard guard(mutex_);
    values_.splice(values_.end(), values);
    if (many == 0 || generation.load() != of_) return;
    [[maybe_unused]] const auto n = ::write(fd_, &many, sizeof many);
  }

  // Takes a value. Returns 0, or an errno value: EAGAIN when there is none and the descriptor is
  // non-blocking, or EINTR. A thread that is cancelled in it has taken nothing. `then` is called
  // with the value before other threads can see that it is gone.
  template <class Then>
  int pop(T* out, Then&& then) {
    for (;;) {
      if (take(out, then)) return 0;
      if ((fcntl(fd_, F_GETFL) & O_NONBLOCK) != 0) return EAGAIN;
      pollfd p{fd_, POLLIN, 0};
      if (::poll(&p, 1, -1) < 0 && !(errno == EINTR && restarts())) return EINTR;
    }
  }

  int pop(T* out) {
    return pop(out, [](const T&) {});
  }

  // Takes the next value; false if there is none.
  bool take(T* out) {
    return take(out, [](const T&) {});
  }
  template <class Then>
  bool take(T* out, Then&& then) {
    const Uncancelled uncancelled;
    const std::lock_guard guard(mutex_);
    if (values_.empty()) return false;
    *out = std::move(values_.front());
    values_.pop_front();
    count_down();
    then(static_cast<const T&>(*out));
    return true;
  }

  // Removes and returns the values for which `is` returns true; allocates no memory.
  template <class Is>
  std::list<T> take_if(Is&& is) {
    std::list<T> taken;
    const std::lock_guard guard(mutex_);
    for (auto i = values_.begin(); i != values_.end();) {
      const auto at = i++;
      if (!is(*at)) continue;
      taken.splice(taken.end(), values_, at);
      count_down();
    }
    return taken;
  }

  // Drops the values for which `is` returns true, except the last `most`.
  template <class Is>
  void keep_last(std::size_t most, Is&& is) {
    std::list<T> gone;
    const std::lock_guard guard(mutex_);
    auto n = static_cast<std::size_t>(std::count_if(values_.begin(), values_.end(), is));
    for (auto i = values_.begin(); n > most;) {
      const auto at = i++;
      if (!is(*at)) continue;
      gone.splice(gone.end(), values_, at);
      count_down();
      --n;
    }
  }

  // Call only in a child of a fork while no other thread runs. Counts the parent's values for which
  // `is` returns true; 0 if the parent was changing the list during the fork.
  template <class Is>
  std::size_t count_inherited(Is&& is) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock ? static_cast<std::size_t>(std::count_if(values_.begin(), values_.end(), is)) : 0;
  }
  // Creates the list and its lock anew, because the parent may have held the lock.
  void drop_inherited() {
    new (&mutex_) std::mutex;
    new (&values_) std::list<T>;
  }
  // The parent has ended: this process now owns the descriptor that both shared.
  void take_over() {
    const std::lock_guard guard(mutex_);
    of_ = generation.load();
    for (pollfd p{fd_, POLLIN, 0}; ::poll(&p, 1, 0) > 0;) count_down();
  }

 private:
  // The eventfd's counter equals the number of values, so this never waits.
  void count_down() {
    if (generation.load() != of_) return;
    std::uint64_t v;
    [[maybe_unused]] const auto n = ::read(fd_, &v, sizeof v);
  }

  const int fd_;
  unsigned of_ = generation.load();
  std::mutex mutex_;
  std::list<T> values_;
};

}  // namespace urnic::dropin
