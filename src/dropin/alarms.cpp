#include "dropin/alarms.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "dropin/signalled_queue.h"

namespace urnic::dropin {

Alarms& alarms() {
  // A child of a fork has its own, because the parent's thread does not exist there. The parent's
  // stay reachable.
  static std::mutex making;
  static std::multimap<unsigned, Alarms*> of_generations;
  const std::lock_guard guard(making);
  const unsigned now = generation.load();
  if (const auto found = of_generations.find(now); found != of_generations.end()) {
    return *found->second;
  }
  return *of_generations.emplace(now, new Alarms)->second;
}

void Alarms::set(Instant due, std::function<void()> what, const void* owner) {
  const std::lock_guard guard(mutex_);
  all_.emplace(due, Alarm{std::move(what), owner});
  if (has_thread_) return changed_.notify_one();
  // Signals belong to the program: block them in our thread.
  sigset_t every, old;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &old);
  try {
    std::thread([this] { serve(); }).detach();
    has_thread_ = true;
  } catch (const std::system_error&) {
    // The next alarm tries again.
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void Alarms::cancel(const void* owner) {
  const std::lock_guard guard(mutex_);
  std::erase_if(all_, [&](const auto& a) { return a.second.owner == owner; });
}

void Alarms::serve() {
  pthread_setname_np(pthread_self(), "urnic-faults");
  std::unique_lock lock(mutex_);
  for (;;) {
    if (all_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Duration left = all_.begin()->first - monotonic_now();
    if (left > Duration::zero()) {
      changed_.wait_for(lock, std::chrono::nanoseconds(left.count_ns()));
      continue;
    }
    const auto first = all_.extract(all_.begin());
    first.mapped().what();
  }
}

}  // namespace urnic::dropin
