// An application thread that takes the place of the driver's thread.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "device/event_queue.h"
#include "device/observed_driver.h"

namespace urnic::device {

struct Seated : ObservedDriver {
  Seated() { ready.signal(); }
  // How long a thread waits if it is not woken: well beyond the delay of a wake-up on a busy
  // machine.
  static constexpr std::chrono::seconds kNotWoken{60};
  // Waits in the seat, while `meanwhile` runs in another thread. On a busy machine it may come back
  // too late to be given the seat: then it tries again.
  template <class F>
  bool wait_seated(F&& meanwhile, bool* slept = nullptr) {
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + test::kSoon; Clock::now() < end;) {
      std::atomic<bool> sits{false};
      std::thread other([&] {
        sits = seated_within(std::chrono::milliseconds(30));
        if (sits) {
          meanwhile();
        } else {
          quiet.signal();
        }
      });
      driver->wait(ready.get(), Duration());
      waits = true;
      const bool result = driver->wait(quiet.get(), Duration::s(kNotWoken.count()));
      waits = false;
      other.join();
      if (slept != nullptr) *slept = result;
      if (sits) return true;
      quiet.clear();
    }
    return false;
  }
  bool seated_within(std::chrono::milliseconds most) {
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + most; Clock::now() < end;) {
      if (waits && seen.armed && seen.by_application) return true;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return false;
  }
  // Our thread serves none of the arrivals in seated waits, starting with the first of this driver.
  void expect_served_by_itself() {
    for (unsigned i = 1; i <= 20; ++i) {
      const unsigned others = seen.sleeper_frames;
      ASSERT_TRUE(wait_seated([&] { arrive(); }));
      ASSERT_TRUE(soon([&] { return seen.frames == i; }));
      EXPECT_EQ(seen.sleeper_frames, others);
    }
  }
  EventFd ready, quiet;
  std::atomic<bool> waits{false};
};

}  // namespace urnic::device
