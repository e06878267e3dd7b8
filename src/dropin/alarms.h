// Calls functions at given times, in a thread that the first alarm starts.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>

#include "base/time.h"

namespace urnic::dropin {

class Alarms {
 public:
  // `what` is called with the lock of the alarms held, so it must set no other. `owner`: for
  // cancel().
  void set(Instant due, std::function<void()> what, const void* owner = nullptr);
  // After it no alarm of this owner is called, and none is being called.
  void cancel(const void* owner);

 private:
  void serve();

  struct Alarm {
    std::function<void()> what;
    const void* owner;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Instant, Alarm> all_;
  bool has_thread_ = false;
};

// Those of this process; never destroyed, because threads may be inside when a program ends.
Alarms& alarms();

}  // namespace urnic::dropin
